"""A disk that hangs under a running node: the cluster continues, the node reports and recovers."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.cli.exits import Exit
from quorate.demo.local_cluster import LocalNode
from tests.integration import hanging_disk
from tests.integration.processes import Processes, running
from tests.integration.traffic import config_value, wait_equal_images, write_configs

pytestmark = [pytest.mark.integration, pytest.mark.long]

STALL_MS = 1000
SETTINGS: dict[str, object] = {
    "node.filesystem": hanging_disk.NAME,
    "quorum.disk_stall_ms": STALL_MS,
    # A hung disk blocks the writer thread; the last test is about the event loop's.
    "log.inline_sync_ms_max": 0,
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Processes]:
    """Three voters whose disks can be hung one by one."""
    with running(tmp_path, settings=SETTINGS) as cluster:
        yield cluster


def switch(node: LocalNode) -> Path:
    return node.folder / hanging_disk.SWITCH


def test_another_leads_while_the_leaders_disk_hangs(cluster: Processes) -> None:
    write_configs(cluster, ["1", "2"])
    hung = cluster.leader()
    epoch = cluster.metric(hung, "quorate_raft_epoch")
    assert epoch is not None
    switch(hung).touch()
    # Acknowledged by the two others, the first ones still under the old leader.
    write_configs(cluster, [str(value) for value in range(3, 30)])
    line = cluster.until_logged(hung, "event=disk_stalled")
    assert "waited_ms=" in line
    cluster.until_logged(hung, "reason=disk-stalled")
    others = [node for node in cluster.voters if node is not hung]
    leader = cluster.until(
        "another leader", lambda: next((n for n in others if cluster.find_leader() is n), None)
    )
    write_configs(cluster, ["30"])
    assert "disk_writes" in cluster.readiness(hung)
    assert not cluster.is_ready(hung)
    assert cluster.metric(hung, "quorate_raft_disk_stalls_total") == 1
    # It does not lead while its disk hangs, even if no other node could.
    cluster.kill(leader)
    cluster.until_logged(hung, "event=campaign_refused")
    assert cluster.find_leader() is None
    cluster.start(leader)
    cluster.until("a leader again", cluster.find_leader)
    switch(hung).unlink()
    cluster.until_logged(hung, "event=disk_recovered")
    cluster.wait_ready(cluster.voters)
    write_configs(cluster, ["31"])
    assert config_value(cluster) == "31"
    wait_equal_images(cluster, cluster.voters)


def test_a_node_with_a_hung_disk_can_be_stopped(cluster: Processes) -> None:
    """It cannot complete its writes, reports that, and ends nevertheless."""
    write_configs(cluster, ["1"])
    hung = next(node for node in cluster.voters if node is not cluster.leader())
    switch(hung).touch()
    write_configs(cluster, ["2"])
    cluster.until_logged(hung, "event=disk_stalled")
    assert cluster.stop(hung) != 0
    assert "the disk hangs" in hung.log_tail(5)
    switch(hung).unlink()
    cluster.start(hung)
    cluster.wait_ready(cluster.voters)
    write_configs(cluster, ["3"])
    wait_equal_images(cluster, cluster.voters)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_a_node_that_a_hung_disk_holds(tmp_path: Path, number: int) -> None:
    """Goal: an immediate end, although the event loop waits for the writer. Method: hang the disk
    for longer than all timeouts, and signal again when everything but the writer is closed.
    """
    settings = {**SETTINGS, "limits.shutdown_ms_max": 3_600_000}
    with running(tmp_path, settings=settings) as cluster:
        write_configs(cluster, ["1"])
        hung = next(node for node in cluster.voters if node is not cluster.leader())
        switch(hung).touch()
        write_configs(cluster, ["2"])
        cluster.until_logged(hung, "event=disk_stalled")
        assert hung.process is not None
        hung.process.send_signal(number)
        cluster.until("closed metrics", lambda: "refused" in cluster.readiness(hung))
        assert hung.process.poll() is None
        hung.process.send_signal(number)
        assert cluster.wait_ended(hung) == Exit.FAILED
        assert "event=stopped" not in hung.log_tail(5)

        switch(hung).unlink()
        cluster.start(hung)
        cluster.wait_ready(cluster.voters)
        write_configs(cluster, ["3"])
        wait_equal_images(cluster, cluster.voters)


def test_another_leads_while_the_disk_blocks_the_leaders_event_loop(tmp_path: Path) -> None:
    """Goal: a hang that begins while the loop's thread writes (ADR 77) costs one election, leaves a
    line in the log, and ends with the hang. Method: any sync counts as fast, so that small writes
    are the loop's.
    """
    settings = {**SETTINGS, "log.inline_sync_ms_max": 1000}
    with running(tmp_path, settings=settings) as cluster:
        hung = cluster.leader()
        inline = "quorate_log_inline_syncs_total"
        write_configs(cluster, [str(value) for value in range(150)])
        assert cluster.metric(hung, inline)
        switch(hung).touch()
        write_configs(cluster, [str(value) for value in range(150, 160)])
        assert "waited_ms=" in cluster.until_logged(hung, "event=disk_stalled")
        others = [node for node in cluster.voters if node is not hung]
        assert any(cluster.metric(node, "quorate_raft_can_write") == 1 for node in others)
        switch(hung).unlink()
        cluster.wait_ready(cluster.voters)
        write_configs(cluster, ["160"])
        assert config_value(cluster) == "160"
        wait_equal_images(cluster, cluster.voters)
        assert cluster.metric(hung, "quorate_raft_disk_stalls_total") == 1
