"""A node in security mode bound, alone in its quorum, with a listener for each kind of caller."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from quorate.config.sections import ListenerConfig, MetricsConfig, NodeConfig, TlsConfig
from quorate.config.security import SecurityConfig
from quorate.config.server_config import ServerConfig
from quorate.controller.config import ControllerConfig
from quorate.demo.ports import free_ports
from quorate.formatting import FormatPlan, format_directory
from quorate.server.node import ServerNode
from quorum.log.filesystem import OsFileSystem
from quorum.transport.security import TlsFiles
from quorum.types import Endpoint, ReplicaKey, Voter


@asynccontextmanager
async def bound_node(
    folder: Path,
    files: TlsFiles,
    *,
    crl: Path | None = None,
    has_peer_port: bool = False,
    **security: Any,
) -> AsyncIterator[tuple[str, str, ServerNode]]:
    """Yield the addresses of the node, with and without a certificate, and the node.

    ``crl`` is its list of revoked certificates; ``security`` are settings of that section. Peers
    use the port of clients, unless it ``has_peer_port`` (``listeners.peer`` of its settings).
    """
    port, sasl_port, peer_port = free_ports(3)
    address, sasl = f"127.0.0.1:{port}", f"127.0.0.1:{sasl_port}"
    me = ReplicaKey(1, b"d" * 16)
    voters = (Voter(me, (Endpoint("CONTROLLER", "127.0.0.1", port),)),)
    plan = FormatPlan(folder / "n1", "c2ltdWxhdGVkLWNsdXN0ZQ", 1, me.directory_id, voters)
    format_directory(OsFileSystem(), plan)
    config = ServerConfig(
        node=NodeConfig(id=1, data_dir=folder / "n1"),
        listeners=ListenerConfig(
            client=address, sasl=sasl, peer=f"127.0.0.1:{peer_port}" if has_peer_port else ""
        ),
        metrics=MetricsConfig(listen=""),
        # No record comes by itself, so a held Fetch ends with what a test writes.
        controller=ControllerConfig(cluster_id="", idle_interval_ms=0),
        tls=TlsConfig(
            files.certificate,
            files.key,
            files.authorities,
            require_client_cert=True,
            node_name="node-{id}.quorum.test",
            observer_name="observer-{id}.quorum.test",
            crl_file=crl or Path(),
        ),
        security=SecurityConfig(mode="bound", **{"operators": ("User:admin.test",), **security}),
    )
    config.validate()
    failures: list[BaseException] = []
    rng = random.Random(1)
    made = ServerNode(config, OsFileSystem(), rng=rng, on_failure=failures.append)
    await made.start()
    try:
        yield address, sasl, made
    finally:
        await made.stop()
        assert failures == []


def is_refused_by_role(text: str, method: str) -> bool:
    """Whether a call's status says that no role of its caller may call the method."""
    return text.endswith(f": {method}") and (" may not: " in text or "authenticate first" in text)
