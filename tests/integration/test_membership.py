"""Voters come and go under the command line: grow, shrink, replace, and ask what may stop."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorate.cli.exits import Exit
from quorate.demo.local_cluster import LocalNode
from tests.integration.processes import Processes, running
from tests.integration.traffic import config_value, wait_equal_images, write_configs

pytestmark = [pytest.mark.integration, pytest.mark.long]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Processes]:
    """Three voters."""
    with running(tmp_path) as cluster:
        write_configs(cluster, ["1"])
        yield cluster


def quorum(cluster: Processes, *arguments: str, status: int = Exit.OK) -> Any:
    """``quorate quorum ARGUMENTS`` with a given exit code: the document, or what was complained."""
    servers = ",".join(node.address for node in cluster.running_nodes)
    ended = cluster.run("--bootstrap", servers, "-o", "json", "quorum", *arguments)
    assert ended.status == status, (ended.status, ended.out, ended.err)
    return ended.json if status == Exit.OK else ended.out + ended.err


def voter_ids(cluster: Processes) -> list[int]:
    return [each["id"] for each in quorum(cluster, "describe", "status")["current_voters"]]


def join(cluster: Processes, node_id: int) -> LocalNode:
    """A fresh node that follows, level with the leader."""
    node = cluster.add_observer(node_id)
    cluster.format(node)
    cluster.start(node)
    cluster.wait_ready([node])
    return node


def add(cluster: Processes, node: LocalNode, *options: str) -> Any:
    return quorum(cluster, "add-voter", str(node.id), "--at", node.address, *options)


def repeated_changes_end_well(cluster: Processes, node: LocalNode) -> None:
    """Goal: a script's repeat names the disk, and changes nothing (--if-needed)."""
    done = add(cluster, node, "--if-needed")
    assert (done["is_done_already"], "offset" in done) == (True, False)
    disk = str(done["directory_id"])
    output = quorum(cluster, "add-voter", str(node.id), "--if-needed", status=Exit.USAGE)
    assert "does not say which disk" in output
    output = quorum(cluster, "remove-voter", str(node.id), "--if-needed", status=Exit.USAGE)
    assert "does not say which disk" in output
    remove = ("remove-voter", str(node.id), "--directory-id", disk, "--if-needed")
    assert quorum(cluster, *remove)["is_done_already"] is False
    before = voter_ids(cluster)
    done = quorum(cluster, *remove)
    assert (done["is_done_already"], voter_ids(cluster)) == (True, before)
    output = quorum(cluster, *remove[:-1], status=Exit.NOT_FOUND)
    assert "is no voter with that directory" in output
    never = ("remove-voter", str(node.id), "--directory-id", "A" * 22, "--if-needed")
    quorum(cluster, *never, status=Exit.NOT_FOUND)
    quorum(cluster, "add-voter", str(node.id), "--at", node.address, "--if-needed",
           status=Exit.REFUSED)  # fmt: skip
    assert add(cluster, node, "--if-needed", "--readmit")["is_done_already"] is False
    assert sorted(voter_ids(cluster)) == sorted([*before, node.id])


def test_grow_to_five_and_shrink_to_three_with_the_leader_removing_itself(
    cluster: Processes,
) -> None:
    four = join(cluster, 4)
    planned = add(cluster, four, "--dry-run")
    assert [row["majority"] for row in planned["rows"]] == [2, 3]
    assert planned["rows"][1]["able"] == [1, 2, 3, 4]
    assert planned["warnings"] == ["4 voters bear no more failures than 3"]
    assert voter_ids(cluster) == [1, 2, 3]

    assert add(cluster, four)["offset"] > 0
    assert voter_ids(cluster) == [1, 2, 3, 4]
    five = join(cluster, 5)
    add(cluster, five)
    assert voter_ids(cluster) == [1, 2, 3, 4, 5]
    write_configs(cluster, ["2"])

    # Five bear two failures.
    gone = [node for node in cluster.voters if node is not cluster.leader()][:2]
    cluster.kill_together(gone)
    write_configs(cluster, ["3"])
    for node in gone:
        cluster.start(node)
    cluster.wait_ready(list(cluster.nodes.values()))

    leader = cluster.leader()
    quorum(cluster, "remove-voter", str(leader.id))
    others = [node for node in cluster.nodes.values() if node is not leader]
    cluster.until("another leader", lambda: cluster.find_leader() in others or None)
    assert leader.id not in voter_ids(cluster)
    write_configs(cluster, ["4"])
    follower = next(node for node in others if node is not cluster.leader())
    quorum(cluster, "remove-voter", str(follower.id))
    left = voter_ids(cluster)
    assert len(left) == 3
    assert not {leader.id, follower.id} & set(left)
    # Both fetch on as observers, and every view says what they were (KIP-853).
    cluster.until(
        "both removed voters to be observers",
        lambda: (
            sorted(quorum(cluster, "describe", "status")["removed_observers"])
            == sorted((leader.id, follower.id))
            or None
        ),
    )
    write_configs(cluster, ["4"])
    wait_equal_images(cluster, cluster.running_nodes)
    for node in (leader, follower):
        assert cluster.stop(node) == 0
    write_configs(cluster, ["5"])
    assert config_value(cluster) == "5"
    wait_equal_images(cluster, cluster.running_nodes)


def test_replace_a_voter_whose_disk_is_gone(cluster: Processes) -> None:
    """The same number on another disk is another replica: the old one goes, the new one comes."""
    lost = next(node for node in cluster.voters if node is not cluster.leader())
    others = [node for node in cluster.voters if node is not lost]
    cluster.kill(lost)
    shutil.rmtree(lost.data_dir)
    cluster.until(
        "the loss to be noticed",
        lambda: quorum(cluster, "may-stop", str(lost.id))["unable"] or None,
    )
    # With one node fewer, nothing can be committed.
    output = quorum(cluster, "may-stop", str(others[0].id), status=Exit.REFUSED)
    assert f"node {lost.id} is silent" in output
    output = quorum(cluster, "remove-voter", str(others[0].id), status=Exit.REFUSED)
    assert "1 of 2 voters could acknowledge" in output
    assert len(voter_ids(cluster)) == 3

    lost.is_voter = False
    cluster.format(lost)
    cluster.start(lost)
    cluster.wait_ready([lost])
    output = quorum(cluster, "add-voter", str(lost.id), "--at", lost.address, status=Exit.REFUSED)
    assert "is a voter already" in output
    quorum(cluster, "remove-voter", str(lost.id))
    assert len(voter_ids(cluster)) == 2
    add(cluster, lost)
    assert sorted(voter_ids(cluster)) == [1, 2, 3]
    write_configs(cluster, ["2"])
    # The new disk counts: one of the others may go now.
    gone = next(node for node in others if node is not cluster.leader())
    repeated_changes_end_well(cluster, lost)
    cluster.until(
        "the margin to be back",
        lambda: quorum(cluster, "may-stop", str(gone.id))["margin"] == 1 or None,
    )
    cluster.kill(gone)
    write_configs(cluster, ["3"])
    assert config_value(cluster) == "3"


def test_a_voter_that_was_killed_a_moment_ago_does_not_count(cluster: Processes) -> None:
    leader = cluster.leader()
    victim, other = (node for node in cluster.voters if node is not leader)
    assert quorum(cluster, "may-stop", str(other.id))["may_stop"]
    cluster.kill(victim)
    output = quorum(cluster, "may-stop", str(other.id), status=Exit.REFUSED)
    assert f"node {victim.id} is silent" in output
    cluster.start(victim)
    assert quorum(cluster, "may-stop", str(other.id), "--wait", "30")["may_stop"]


def test_leadership_is_transferred_and_what_cannot_be_is_refused(cluster: Processes) -> None:
    leader = cluster.leader()
    target = next(node for node in cluster.voters if node is not leader)
    done = quorum(cluster, "transfer-leader", str(target.id))
    assert (done["leader_id"], done["previous_leader_id"]) == (target.id, leader.id)
    assert cluster.leader() is target
    assert quorum(cluster, "transfer-leader")["leader_id"] != target.id
    still = cluster.leader().id
    unchanged = quorum(cluster, "transfer-leader", "--if-leader", str(1 + still % 3))
    assert unchanged["leader_id"] == unchanged["previous_leader_id"] == cluster.leader().id == still
    moved = quorum(cluster, "transfer-leader", "--if-leader", str(still))
    assert moved["leader_id"] != moved["previous_leader_id"] == still
    quorum(cluster, "transfer-leader", "9", status=Exit.NOT_FOUND)
    victim = next(node for node in cluster.voters if node is not cluster.leader())
    cluster.kill(victim)
    cluster.until(
        "the loss to be noticed",
        lambda: quorum(cluster, "may-stop", str(victim.id))["unable"] or None,
    )
    output = quorum(cluster, "transfer-leader", str(victim.id), status=Exit.REFUSED)
    assert "has been silent for" in output


def test_a_voter_moves_to_another_address(cluster: Processes) -> None:
    leader = cluster.leader()
    moved = next(node for node in cluster.voters if node is not leader)
    (spare,) = [cluster.add_observer(9)]
    del cluster.nodes[9]
    assert cluster.stop(moved) == 0
    moved.port = spare.port
    cluster.configure(moved)
    cluster.start(moved)
    cluster.wait_ready([moved])
    quorum(cluster, "update-voter", str(moved.id), "--at", moved.address)
    status = quorum(cluster, "describe", "status")
    (entry,) = [each for each in status["current_voters"] if each["id"] == moved.id]
    assert entry["endpoints"][0].endswith(f":{spare.port}")
    write_configs(cluster, ["2"])
    wait_equal_images(cluster, cluster.voters)
    # Reached there by the others as well: it can lead.
    assert quorum(cluster, "transfer-leader", str(moved.id))["leader_id"] == moved.id
    write_configs(cluster, ["3"])


def test_without_a_leader_the_answer_is_unknown(cluster: Processes) -> None:
    leader = cluster.leader()
    others = [node for node in cluster.voters if node is not leader]
    cluster.kill_together([leader, others[0]])
    output = quorum(cluster, "may-stop", str(others[1].id), "--timeout", "10", status=7)
    assert "no leader" in output
