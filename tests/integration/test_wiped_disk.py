"""A voter's disk is wiped and formatted by the very same command, on real processes."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from quorate.demo.local_cluster import LocalNode
from tests.integration.processes import Processes, running

pytestmark = pytest.mark.integration

VOTES_OF = 'quorate_raft_votes_total{kind="%s",verdict="granted"}'
SILENCE_S = 8.0
"""Several election and fetch time-outs of the default settings."""


def write(cluster: Processes, value: int) -> None:
    """One acknowledged write."""
    cluster.command(
        "config", "set", "broker", "", f"log.retention.ms={value}",
        "--bootstrap", ",".join(cluster.addresses),
    )  # fmt: skip


def holds(cluster: Processes, node: LocalNode, value: int) -> bool:
    shown = cluster.command("config", "get", "broker", "", "--bootstrap", node.address)
    return str(value) in shown


def leader_of(cluster: Processes) -> LocalNode:
    for node in cluster.running_nodes:
        if cluster.metric(node, 'quorate_raft_state{state="leader"}') == 1:
            return node
    raise AssertionError("nobody leads")


def granted(cluster: Processes, node: LocalNode) -> float:
    return sum(cluster.metric(node, VOTES_OF % kind) or 0 for kind in ("vote", "pre_vote"))


def until_it_says(cluster: Processes, node: LocalNode, text: str, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while text not in cluster.readiness(node):
        assert time.monotonic() < deadline, cluster.readiness(node) + node.log_tail()
        time.sleep(0.05)


def test_a_wiped_voter_never_votes_again(tmp_path: Path) -> None:
    with running(tmp_path) as cluster:
        write(cluster, 1001)
        leader = leader_of(cluster)
        wiped, good = (node for node in cluster.nodes.values() if node is not leader)

        cluster.kill(wiped)
        shutil.rmtree(wiped.data_dir)
        assert wiped.directory_id in cluster.format(wiped)
        cluster.start(wiped)
        until_it_says(cluster, wiped, "never votes with its directory id")
        assert "event=voter_disqualified" in wiped.log_path.read_text()
        write(cluster, 1002)

        cluster.kill(leader)
        time.sleep(SILENCE_S)
        assert granted(cluster, wiped) == 0
        for node in (wiped, good):
            assert cluster.metric(node, 'quorate_raft_state{state="leader"}') == 0

        cluster.start(leader)
        cluster.wait_ready([leader, good])
        assert holds(cluster, good, 1002)
        write(cluster, 1003)
        assert holds(cluster, good, 1003)
        assert granted(cluster, wiped) == 0
        until_it_says(cluster, wiped, "never votes with its directory id")
