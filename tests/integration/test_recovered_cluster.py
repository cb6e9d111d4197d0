"""Recoveries on real processes: a majority is lost, a backup is restored, and the past returns."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from quorate.cli.exits import Exit
from quorate.demo.local_cluster import LocalNode
from quorum.types import uuid_to_text
from tests.integration.processes import Processes, running
from tests.integration.traffic import config_value, wait_equal_images, write_configs

pytestmark = [pytest.mark.integration, pytest.mark.long]

CLUSTER = "integration"
MISMATCH = "LOG_INCARNATION_MISMATCH"
REFUSED = "quorate_raft_hellos_refused_total"


def quorum(cluster: Processes, *arguments: str) -> Any:
    servers = ",".join(node.address for node in cluster.running_nodes)
    return cluster.run("--bootstrap", servers, "-o", "json", "quorum", *arguments).json


def voter_ids(cluster: Processes) -> list[int]:
    return [each["id"] for each in quorum(cluster, "describe", "status")["current_voters"]]


def join(cluster: Processes, node: LocalNode, incarnation: str) -> None:
    """Format a node for the incarnation, and add it to the voters."""
    cluster.configure(node)
    cluster.command(
        "format", "--config", str(node.config_path), "--cluster-id", CLUSTER,
        "--no-initial-voters", "--log-incarnation", incarnation,
    )  # fmt: skip
    cluster.start(node)
    cluster.wait_ready([node])
    quorum(cluster, "add-voter", str(node.id), "--at", node.address)


def return_to(cluster: Processes, node: LocalNode, directory: Path) -> None:
    """Start a node with an earlier directory of it, and check that it is refused by name."""
    assert cluster.stop(node) == 0
    shutil.rmtree(node.data_dir)
    shutil.copytree(directory, node.data_dir)
    others = [each for each in cluster.running_nodes if each is not node]
    refused = {each.id: cluster.metric(each, REFUSED) for each in others}
    epoch = cluster.metric(cluster.leader(), "quorate_raft_epoch")
    cluster.start(node)
    leader = cluster.leader()
    cluster.until_logged(leader, f"{MISMATCH}: the directory of the peer {node.id} is of the first")
    cluster.until_logged(node, MISMATCH)
    for each in others:
        cluster.until(
            f"node {each.id} refuses",
            lambda n=each: cluster.metric(n, REFUSED) > refused[n.id] or None,
        )
    assert not cluster.is_ready(node)
    servers = ",".join(each.address for each in others)
    added = cluster.run(
        "--bootstrap", servers, "--timeout", "8", "quorum", "add-voter", "9", "--force",
        "--directory-id", uuid_to_text(b"9" * 16), "--endpoint", f"CONTROLLER://{node.address}",
    )  # fmt: skip
    assert (added.status, MISMATCH in added.err) == (Exit.CONFLICT, True), added.err
    write_configs(cluster, ["1000"])
    assert cluster.metric(leader, "quorate_raft_epoch") == epoch
    cluster.kill(node)


def test_a_cluster_goes_on_with_one_of_three_disks(tmp_path: Path) -> None:
    """Two of three voters are lost, two fresh ones take their place, and an old one returns."""
    with running(tmp_path / "nodes") as cluster:
        write_configs(cluster, ["1", "2"])
        left, *lost = cluster.nodes.values()
        cluster.kill_together(cluster.voters)
        kept = tmp_path / "old"
        for node in lost:
            shutil.move(node.data_dir, kept / str(node.id))
        home = str(left.data_dir)
        assert cluster.run("recover", "plan", home).status == Exit.UNHEALTHY
        assert cluster.run("recover", "apply", home).status == Exit.REFUSED
        done = cluster.run(
            "recover", "apply", home, "--cluster-id", CLUSTER, "--reason", "fire", "-o", "json"
        ).json
        incarnation = done["log_incarnation"]["id"]
        assert done["end_epoch"] >= 1001

        cluster.start(left)
        cluster.wait_ready([left])
        assert cluster.leader() is left
        write_configs(cluster, ["3"])
        for node in lost:
            join(cluster, node, incarnation)
        assert voter_ids(cluster) == [1, 2, 3]
        write_configs(cluster, ["4"])
        assert config_value(cluster) == "4"
        wait_equal_images(cluster, cluster.running_nodes)
        shown = quorum(cluster, "describe", "status")["log_incarnation"]
        assert (shown["number"], shown["id"]) == (1, incarnation)

        # The new quorum bears the loss of the recovered disk, and knows its incarnation.
        cluster.kill(left)
        write_configs(cluster, ["5"])
        assert quorum(cluster, "describe", "status")["log_incarnation"]["id"] == incarnation
        cluster.start(left)
        cluster.wait_ready([left])
        return_to(cluster, lost[1], kept / "3")
        reports = cluster.run("recover", "report", home, "-o", "json").json
        assert [row["reason"] for row in reports["rows"]] == ["fire"]


def test_a_backup_is_restored_and_the_former_voters_are_refused(tmp_path: Path) -> None:
    """A change is undone by a restore to the offset before it; a former voter returns."""
    with running(tmp_path / "nodes") as cluster:
        write_configs(cluster, ["1"])
        target = str(tmp_path / "backup")
        before = cluster.ask("backup", "create", target)["end_offset"]
        write_configs(cluster, ["2"])
        assert cluster.ask("backup", "create", target)["end_offset"] > before
        first, *others = cluster.nodes.values()
        kept = tmp_path / "old"
        cluster.kill_together(cluster.voters)
        for node in cluster.nodes.values():
            shutil.move(node.data_dir, kept / str(node.id))
        done = cluster.run(
            "backup", "restore", target, str(first.data_dir), "--node-id", "1", "--endpoint",
            first.address, "--at-offset", str(before), "--cluster-id", CLUSTER, "-o", "json",
        ).json  # fmt: skip
        assert done["restored_to"] <= before
        cluster.start(first)
        cluster.wait_ready([first])
        assert config_value(cluster) == "1"
        for node in others:
            join(cluster, node, done["log_incarnation"]["id"])
        write_configs(cluster, ["3"])
        assert voter_ids(cluster) == [1, 2, 3]
        return_to(cluster, others[0], kept / "2")
        # The backup has records that were given up: it is not continued.
        refused = cluster.run(
            "--bootstrap", ",".join(each.address for each in cluster.running_nodes),
            "backup", "create", target,
        )  # fmt: skip
        assert refused.status == Exit.REFUSED, refused.err
