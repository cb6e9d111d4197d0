"""A disk failure after SIGTERM is reported like one before it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from quorate.cli.exits import Exit
from quorate.demo.local_cluster import LocalNode
from tests.chaos import disk
from tests.integration.processes import Processes, running
from tests.integration.traffic import config_value, wait_equal_images, write_configs

pytestmark = pytest.mark.integration

SETTINGS: dict[str, object] = {
    "node.filesystem": disk.NAME,
    # A transfer lasts until the others wake up, however slow the machine is.
    "limits.shutdown_ms_max": 60_000,
}


def ask_to_stop(cluster: Processes, node: LocalNode) -> None:
    """Send SIGTERM, and wait until the node is not ready any more."""
    assert node.process is not None
    node.process.send_signal(signal.SIGTERM)
    cluster.until("a node that drains", lambda: "is shutting down" in cluster.readiness(node))


def test_a_disk_that_fails_during_a_transfer(tmp_path: Path) -> None:
    """Whatever it stores next, a watermark or a vote, ends it with the code of a failed disk."""
    with running(tmp_path, settings=SETTINGS) as cluster:
        write_configs(cluster, ["1"])
        leader = cluster.leader()
        others = [node for node in cluster.voters if node is not leader]
        for node in others:
            cluster.freeze(node)
        ask_to_stop(cluster, leader)
        (leader.folder / disk.SYNC_FAILS).touch()
        for node in others:
            cluster.thaw(node)
        assert cluster.wait_ended(leader) == Exit.DAMAGED
        lines = leader.log_path.read_text().splitlines()
        assert any("event=node_failed" in line and "cannot sync" in line for line in lines)
        assert lines[-1].startswith("error: the node stopped: ")
        assert not any("event=stopped" in line for line in lines)

        (leader.folder / disk.SYNC_FAILS).unlink()
        cluster.start_all()
        write_configs(cluster, ["2"])
        wait_equal_images(cluster, cluster.voters)
        assert config_value(cluster) == "2"
