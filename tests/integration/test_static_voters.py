"""A cluster with voters from `bootstrap.voters`: bootstrap, a lost disk, and the recovery."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorate.cli.exits import Exit
from quorate.demo.local_cluster import LocalNode
from tests.integration.processes import Processes
from tests.integration.traffic import config_value, wait_equal_images, write_configs

pytestmark = [pytest.mark.integration, pytest.mark.long]


@contextlib.contextmanager
def static_cluster(folder: Path) -> Iterator[Processes]:
    """Three voters that know each other from their configuration only."""
    cluster = Processes(folder)
    try:
        for node in cluster.voters:
            node.settings["bootstrap.voters"] = [
                f"{each.id}@{each.address}" for each in cluster.voters
            ]
            format_static(cluster, node)
        cluster.start_all()
        yield cluster
    except BaseException as error:
        error.add_note(cluster.report())
        raise
    finally:
        cluster.end_all()


def format_static(cluster: Processes, node: LocalNode) -> str:
    """Format without initial voters on the command line; the directory id that was drawn."""
    cluster.configure(node)
    output = cluster.command(
        "-o", "json", "format", "--config", str(node.config_path),
        "--cluster-id", cluster.cluster_id,
    )  # fmt: skip
    return str(json.loads(output)["directory_id"])


def quorum(cluster: Processes, *arguments: str, status: int = Exit.OK) -> Any:
    servers = ",".join(node.address for node in cluster.running_nodes)
    ended = cluster.run("--bootstrap", servers, "-o", "json", "quorum", *arguments)
    assert ended.status == status, (ended.status, ended.out, ended.err)
    return ended.json if status == Exit.OK else ended.out + ended.err


def entries(cluster: Processes) -> dict[int, str | None]:
    """Directory id by voter, as the leader has them."""
    voters = quorum(cluster, "describe", "status")["current_voters"]
    return {each["id"]: each.get("directory_id") for each in voters}


def until_all_are_known(cluster: Processes) -> None:
    """Each voter has reported its directory id, which distinguishes a wiped disk."""
    cluster.until(
        "directory ids in the voter set",
        lambda: all(entries(cluster).values()) or None,
        seconds=40.0,
    )


def test_a_lost_disk_comes_back_as_another_replica(tmp_path: Path) -> None:
    """The documented way: out of `bootstrap.voters`, format empty, remove the old, add the new."""
    with static_cluster(tmp_path) as cluster:
        write_configs(cluster, ["1"])
        until_all_are_known(cluster)
        before = entries(cluster)
        lost = next(node for node in cluster.voters if node is not cluster.leader())
        others = [node for node in cluster.voters if node is not lost]

        cluster.kill(lost)
        shutil.rmtree(lost.data_dir)
        del lost.settings["bootstrap.voters"]
        lost.is_voter = False
        cluster.format(lost)
        cluster.start(lost)
        cluster.wait_ready([lost])
        wait_equal_images(cluster, [*others, lost])
        assert entries(cluster) == before
        output = quorum(
            cluster, "add-voter", str(lost.id), "--at", lost.address, status=Exit.REFUSED
        )
        assert "is a voter already" in output

        quorum(cluster, "remove-voter", str(lost.id))
        quorum(cluster, "add-voter", str(lost.id), "--at", lost.address)
        after = entries(cluster)
        assert after.keys() == before.keys()
        assert {each for each in after if after[each] != before[each]} == {lost.id}

        # It counts: with another one gone, it is needed for every commit.
        gone = next(node for node in others if node is not cluster.leader())
        cluster.kill(gone)
        write_configs(cluster, ["2"])
        # The others still have their configuration of the first day, and come back with it.
        cluster.start(gone)
        cluster.wait_ready([gone])
        write_configs(cluster, ["3"])
        wait_equal_images(cluster, [*others, lost])
        assert config_value(cluster) == "3"


def test_a_wiped_disk_with_its_old_configuration_does_not_vote(tmp_path: Path) -> None:
    """It takes itself for a voter, learns the others' epoch, and reports its disqualification."""
    with static_cluster(tmp_path) as cluster:
        write_configs(cluster, ["1"])
        until_all_are_known(cluster)
        leader = cluster.leader()
        wiped, left = [node for node in cluster.voters if node is not leader]
        cluster.kill(wiped)
        shutil.rmtree(wiped.data_dir)
        format_static(cluster, wiped)
        cluster.start(wiped)
        cluster.until_logged(wiped, "event=voter_disqualified")
        # Without it an election would need the wiped disk's vote.
        cluster.kill(leader)
        output = quorum(
            cluster, "may-stop", str(left.id), "--timeout", "10", status=Exit.UNREACHABLE
        )
        assert "no leader" in output
        granted = 'quorate_raft_votes_total{kind="vote",verdict="granted"}'
        assert not cluster.metric(wiped, granted)
        cluster.start(leader)
        cluster.wait_ready([leader, left])
        write_configs(cluster, ["2"])
        assert config_value(cluster) == "2"
