"""A new node that has nobody to ask for a leader is noticed at its start."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from pathlib import Path

import pytest

from quorate.config.sections import BootstrapConfig
from quorate.config.server_config import ServerConfig
from quorate.formatting import FormatPlan, format_directory
from quorate.server.node import ServerNode
from quorum.log.filesystem import OsFileSystem
from tests.support.lone_server import lone_config


def knows_no_peer(config: ServerConfig) -> bool:
    async def opened() -> bool:
        node = ServerNode(config, OsFileSystem(), rng=random.Random(1), on_failure=print)
        found = node.knows_no_peer
        await node.stop()
        return found

    return asyncio.run(opened())


@pytest.mark.parametrize(
    ("servers", "expected"),
    [((), True), (("localhost:9",), False), (("localhost:0",), True)],
)
def test_an_observer_needs_a_server_besides_itself(
    tmp_path: Path, servers: tuple[str, ...], expected: bool
) -> None:
    config = lone_config(tmp_path / "voter", shutdown_ms_max=100)
    plan = FormatPlan(tmp_path / "observer", "c2ltdWxhdGVkLWNsdXN0ZQ", 1, b"o" * 16, ())
    format_directory(OsFileSystem(), plan)
    own = replace(config.node, data_dir=tmp_path / "observer")
    bootstrap = BootstrapConfig(servers=servers)
    assert knows_no_peer(replace(config, node=own, bootstrap=bootstrap)) is expected


def test_a_voter_knows_its_voters(tmp_path: Path) -> None:
    assert not knows_no_peer(lone_config(tmp_path, shutdown_ms_max=100))
