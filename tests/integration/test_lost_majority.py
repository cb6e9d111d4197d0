"""Two of three voters die, one of them the leader: nothing names the dead leader any more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.processes import running

pytestmark = pytest.mark.integration


def test_a_dead_leader_is_not_named(tmp_path: Path) -> None:
    with running(tmp_path) as cluster:
        leader = cluster.leader()
        alone, other = (node for node in cluster.voters if node is not leader)
        shown = cluster.ask("quorum", "describe", "status")
        assert shown["leader_id"] == leader.id
        cluster.kill_together([leader, other])
        cluster.until(
            "no leader",
            lambda: cluster.metric(alone, "quorate_raft_leader_id") == -1 or None,
        )
        # For several fetch timeouts: the node follows and asks for pre-votes in turn.
        for _ in range(6):
            assert cluster.metric(alone, "quorate_raft_leader_id") == -1
            asked = cluster.run(
                "--bootstrap", alone.address, "-o", "json", "quorum", "describe", "status"
            )
            assert (asked.status, json.loads(asked.out)["leader_id"]) == (7, -1)
            assert f"node {alone.id} knows no leader" in asked.err
        asked = cluster.run("--bootstrap", alone.address, "quorum", "describe", "replication")
        assert asked.status == 7
        assert "Leader" not in asked.out
        asked = cluster.run("--bootstrap", alone.address, "-o", "json", "health")
        rows = {each["node_id"]: each["problem"] for each in json.loads(asked.out)["rows"]}
        assert (asked.status, rows[alone.id]) == (7, "knows no leader")
        cluster.start_all()
        led_by = cluster.leader().id
        cluster.until(
            "the new leader is named",
            lambda: cluster.metric(alone, "quorate_raft_leader_id") == led_by or None,
        )
