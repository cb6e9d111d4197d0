"""A voter's data directory is copied and started as a second process, on real processes."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from quorate.demo.local_cluster import LocalNode
from quorate.demo.ports import free_ports
from tests.integration.processes import Processes, running

pytestmark = [pytest.mark.integration, pytest.mark.long]

REFUSED = "quorate_raft_clones_refused_total"
OBSERVED_S = 6.0
"""Several election and fetch time-outs of the default settings."""


def copy_of(cluster: Processes, node: LocalNode) -> LocalNode:
    """A second node with the disk of one that runs: same id, same directory id, other ports."""
    port, metrics_port = free_ports(2)
    copy = LocalNode(
        node.id, cluster.folder / f"copy-of-{node.id}", node.directory_id, port, metrics_port,
        is_voter=False,
    )  # fmt: skip
    cluster.freeze(node)
    shutil.copytree(node.data_dir, copy.data_dir)
    cluster.thaw(node)
    cluster.configure(copy)
    cluster.nodes[100 + node.id] = copy
    return copy


def epochs(cluster: Processes) -> dict[int, float | None]:
    return {node.id: cluster.metric(node, "quorate_raft_epoch") for node in cluster.voters}


@pytest.mark.parametrize("whose", ["follower", "leader"])
def test_peers_refuse_a_copy_of_a_running_voter(tmp_path: Path, whose: str) -> None:
    """Every other voter refuses, logs and counts the copy. Epoch, leader and writes stay.

    A leader sends nothing to followers that fetch, so its own streams are silent; even so, the copy
    must not take its place.
    """
    with running(tmp_path) as cluster:
        leader = cluster.leader()
        cluster.command(
            "config", "set", "broker", "", "log.retention.ms=100",
            "--bootstrap", ",".join(cluster.addresses),
        )  # fmt: skip
        others = [node for node in cluster.voters if node is not leader]
        original = leader if whose == "leader" else others[0]
        # Until then its streams may be younger than a silence that could be taken for death.
        time.sleep(OBSERVED_S)
        before = epochs(cluster)
        copy = copy_of(cluster, original)
        cluster.start(copy)
        for node in cluster.voters:
            if node is not original:
                cluster.until(f"node {node.id} refuses", lambda n=node: cluster.metric(n, REFUSED))
                cluster.until_logged(node, f"another live process speaks as node {original.id}")
        cluster.until_logged(copy, f"another live process speaks as node {original.id}")

        until, value = time.monotonic() + OBSERVED_S, 200
        while time.monotonic() < until:
            value += 1
            cluster.command(
                "config", "set", "broker", "", f"log.retention.ms={value}",
                "--bootstrap", ",".join(cluster.addresses),
            )  # fmt: skip
        assert epochs(cluster) == before
        assert cluster.leader() is leader
        assert not cluster.is_ready(copy)
        assert (cluster.metric(copy, "quorate_raft_high_watermark") or 0) < (
            cluster.metric(leader, "quorate_raft_high_watermark") or 0
        )
        assert cluster.metric(copy, 'quorate_raft_state{state="leader"}') == 0
        cluster.kill(copy)
        cluster.wait_ready(cluster.voters)
        assert cluster.ended_by_itself() == []
