"""A checkpoint that an operator asks for: through a client, a service and a real server."""

from __future__ import annotations

import asyncio
import random
import socket
from pathlib import Path

import pytest

from quorate.client import BROKER, Client, RefusedError, UnavailableError
from quorate.server.node import ServerNode
from quorum.errors import ErrorCode
from quorum.log.filesystem import OsFileSystem
from snapshot.naming import parse_name
from tests.support.lone_server import lone_config


def test_a_checkpoint_is_written_when_it_is_asked_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        with socket.create_server(("localhost", 0)) as found:
            port = found.getsockname()[1]
        failures: list[BaseException] = []
        config = lone_config(tmp_path, shutdown_ms_max=5000, port=port)
        node = ServerNode(config, OsFileSystem(), rng=random.Random(1), on_failure=failures.append)
        await node.start()
        try:
            async with Client([f"localhost:{port}"], timeout_seconds=30) as client:
                before = await client.set_config(BROKER, "", "log.retention.ms", "7")
                planned = await client.create_snapshot(dry_run=True)
                assert files(tmp_path) == {0}
                made = await client.create_snapshot()
                again = await client.create_snapshot()
        finally:
            await node.stop()
        assert failures == []
        assert planned.end_offset >= before.offset
        assert (planned.is_new, planned.size_bytes) == (True, 0)
        assert made.end_offset >= planned.end_offset
        assert (made.node_id, made.is_new, made.size_bytes > 0) == (1, True, True)
        # Unless a NoOpRecord came between.
        assert again.is_new is (again.end_offset > made.end_offset)
        assert made.end_offset in files(tmp_path)

    asyncio.run(asyncio.wait_for(scenario(), 60))


def files(folder: Path) -> set[int]:
    """End offsets of the checkpoints there."""
    names = [path.name for path in (folder / "n1" / "__cluster_metadata-0").iterdir()]
    return {found[0].offset for name in names if (found := parse_name(name)) is not None}


def test_what_stands_in_the_way_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        with socket.create_server(("localhost", 0)) as found:
            port = found.getsockname()[1]
        config = lone_config(tmp_path, shutdown_ms_max=5000, port=port)
        node = ServerNode(config, OsFileSystem(), rng=random.Random(1), on_failure=print)
        await node.start()
        checkpoints = node.replica.checkpoints
        try:
            async with Client([f"localhost:{port}"], timeout_seconds=30) as client:
                await client.set_config(BROKER, "", "log.retention.ms", "7")
                for dry_run in (True, False):
                    with monkeypatch.context() as patch:
                        patch.setattr(type(checkpoints), "is_writing", True)
                        # It asks again until its time is over.
                        with pytest.raises(UnavailableError, match="is being written"):
                            await client.create_snapshot(dry_run=dry_run, timeout_seconds=0.5)
                    with monkeypatch.context() as patch:
                        patch.setattr(type(checkpoints.space), "is_waiting", True)
                        with pytest.raises(RefusedError, match="no room") as full:
                            await client.create_snapshot(dry_run=dry_run)
                        assert full.value.code == ErrorCode.UNKNOWN_SERVER_ERROR
        finally:
            await node.stop()

    asyncio.run(asyncio.wait_for(scenario(), 60))
