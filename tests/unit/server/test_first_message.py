"""A replica answers no message before it has read its own disk."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from quorate.config.sections import ListenerConfig, MetricsConfig, NodeConfig
from quorate.config.server_config import ServerConfig
from quorate.formatting import FormatPlan, format_directory
from quorate.server.node import ServerNode
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.log.filesystem import OsFileSystem
from quorum.types import Endpoint, ReplicaKey, Voter
from simulation.harness.arrival import arrived

ME = ReplicaKey(1, b"d" * 16)
STRANGER = ReplicaKey(9, b"s" * 16)


def test_a_message_that_comes_with_the_first_connection_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: no message reaches a replica that was not started. Method: one at the first moment."""
    fs = OsFileSystem()
    voters = (Voter(ME, (Endpoint("CONTROLLER", "localhost", 9093),)),)
    format_directory(
        fs, FormatPlan(tmp_path / "n1", "c2ltdWxhdGVkLWNsdXN0ZQ", 1, ME.directory_id, voters)
    )
    config = ServerConfig(
        node=NodeConfig(id=1, data_dir=tmp_path / "n1"),
        listeners=ListenerConfig(client="localhost:0"),
        metrics=MetricsConfig(listen="localhost:0"),
    )
    failures: list[BaseException] = []

    async def live() -> None:
        node = ServerNode(config, fs, rng=random.Random(1), on_failure=failures.append)
        listen = node._listeners.start

        async def listen_and_hear() -> None:
            node.host.receive(
                9, arrived(FetchRequest(1, "c2ltdWxhdGVkLWNsdXN0ZQ", STRANGER, 0, 0, 0))
            )
            await listen()

        monkeypatch.setattr(node._listeners, "start", listen_and_hear)
        await node.start()
        assert node.replica.node.log_end_offset >= 0
        await node.stop()

    asyncio.run(live())
    assert not failures
