"""A real server node of a cluster of one, on a disk that a test chooses."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from quorate.config.sections import LimitsConfig, ListenerConfig, MetricsConfig, NodeConfig
from quorate.config.server_config import ServerConfig
from quorate.formatting import FormatPlan, format_directory
from quorate.server.node import ServerNode
from quorum.log.filesystem import OsFileSystem
from quorum.ports import FileSystem
from quorum.types import Endpoint, ReplicaKey, Voter

ME = ReplicaKey(1, b"d" * 16)


def lone_config(folder: Path, *, shutdown_ms_max: int, port: int = 0) -> ServerConfig:
    """Format ``folder``; return the configuration of a node that serves it."""
    voters = (Voter(ME, (Endpoint("CONTROLLER", "localhost", 9093),)),)
    plan = FormatPlan(folder / "n1", "c2ltdWxhdGVkLWNsdXN0ZQ", 1, ME.directory_id, voters)
    format_directory(OsFileSystem(), plan)
    return ServerConfig(
        node=NodeConfig(id=1, data_dir=folder / "n1"),
        listeners=ListenerConfig(client=f"localhost:{port}"),
        metrics=MetricsConfig(listen=""),
        limits=LimitsConfig(shutdown_ms_max=shutdown_ms_max),
    )


async def start_lone_server(
    folder: Path,
    fs: FileSystem,
    on_failure: Callable[[BaseException], None],
    *,
    shutdown_ms_max: int,
) -> ServerNode:
    """Format ``folder``, start the node and return it; the caller must stop it."""
    config = lone_config(folder, shutdown_ms_max=shutdown_ms_max)
    node = ServerNode(config, fs, rng=random.Random(1), on_failure=on_failure)
    await node.start()
    return node
