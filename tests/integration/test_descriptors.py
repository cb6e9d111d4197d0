"""A shortage of descriptors that has passed leaves nothing behind: all nodes talk again."""

from __future__ import annotations

import contextlib
import resource
import socket
from functools import partial
from pathlib import Path

import pytest

from quorate.demo.local_cluster import HOST, LocalNode
from tests.integration.processes import Processes, running
from tests.integration.traffic import write_configs

pytestmark = pytest.mark.integration

DESCRIPTORS = 256
CONNECTIONS = 300
"""To each node: more than it has descriptors."""


def limit_descriptors(cluster: Processes) -> None:
    """What every node of the cluster may have open from now on, until it is started again."""
    for node in cluster.voters:
        assert node.process is not None
        _, hard = resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, hard))


def lacked_a_descriptor_for(node: LocalNode, peer: int) -> bool | None:
    """Whether a connect to ``peer`` failed for want of a descriptor; gRPC's lines do not count."""
    lines = node.log_path.read_text(encoding="utf-8", errors="replace").splitlines()
    return any(f"peer {peer}: " in line and "Too many open files" in line for line in lines) or None


def outlast_a_shortage(cluster: Processes) -> None:
    """Use up every node's descriptors, kill the leader meanwhile, and see all pairs talk again."""
    write_configs(cluster, ["5"])
    limit_descriptors(cluster)
    leader = cluster.leader()
    others = [node for node in cluster.voters if node is not leader]
    with contextlib.ExitStack() as stack:
        for node in cluster.voters:
            for _ in range(CONNECTIONS):
                with contextlib.suppress(OSError):
                    held = socket.create_connection((HOST, node.port), timeout=1)
                    stack.enter_context(held)
        cluster.kill(leader)
        # The two that are left try to reach the dead leader, and have no descriptor for it.
        for node in others:
            cluster.until(
                "a connect that failed for want of a descriptor",
                partial(lacked_a_descriptor_for, node, leader.id),
            )
    cluster.start(leader)
    cluster.wait_ready(cluster.voters)
    write_configs(cluster, ["6"])
    # Each pair in turn: a task that died would leave one of them apart.
    for absent in cluster.voters:
        cluster.kill(absent)
        write_configs(cluster, [str(10 + absent.id)])
        cluster.start(absent)
        cluster.wait_ready(cluster.voters)
    for node in others:
        assert cluster.metric(node, "quorate_tasks_restarted_total") == 0


def test_any_two_nodes_form_a_quorum_after_a_shortage(tmp_path: Path) -> None:
    with running(tmp_path / "home") as cluster:
        outlast_a_shortage(cluster)
