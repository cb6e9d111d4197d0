"""A running cluster as the source of a backup: what it says if the leader does not serve it."""

from __future__ import annotations

import asyncio
import re
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from quorate.backup.node_source import NodeSource
from quorate.client.errors import UnavailableError


class _Client:
    """Answers for a leader whose log begins at offset 5, in epoch 1."""

    def __init__(self, node_port: int) -> None:
        self._endpoint = SimpleNamespace(host="127.0.0.1", port=node_port)

    async def describe_quorum(self) -> Any:
        node = SimpleNamespace(node_id=1, endpoints=[self._endpoint])
        return SimpleNamespace(nodes=[node], leader_id=1, leader_epoch=1, cluster_id="c")

    async def describe_image(self, **_read: Any) -> Any:
        return SimpleNamespace(position=SimpleNamespace(offset=9), state_digest="")

    async def fetch_log(self, _request: Any) -> Any:
        return SimpleNamespace(log_start_offset=5, leader_epoch=1, high_watermark=9)

    async def list_offsets(self, _timestamp: int) -> Any:
        return SimpleNamespace(offset=5, leader_epoch=1)


def test_a_port_for_nodes_that_refuses_is_named_with_its_reason() -> None:
    async def refused() -> None:
        server = grpc.aio.server()
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        client: Any = _Client(port)
        source = NodeSource(client, grpc.aio.insecure_channel, timeout_seconds=5)
        await source.state()
        said = (
            f"no password counts.*127.0.0.1:{port}: {re.escape('Method not found!')}.*certificate"
        )
        with pytest.raises(UnavailableError, match=said):
            await source.checkpoint()
        await server.stop(None)

    asyncio.run(refused())
