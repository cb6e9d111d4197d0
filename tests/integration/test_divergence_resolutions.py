"""Histories that differ and corruption under running processes: named, settled, healed, nothing
lost.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.cli.exits import Exit
from quorate.demo.local_cluster import LocalNode
from quorum.batch import scan_batches
from quorum.log.filesystem import OsFileSystem
from quorum.log.readonly import open_readonly
from simulation.forgery import forge_batch
from tests.integration.processes import Processes, running
from tests.integration.traffic import config_value, wait_equal_images, write_configs, write_many

pytestmark = pytest.mark.integration

SETTINGS: dict[str, object] = {"log.segment_bytes": 16 << 10}
"""Many sealed segments, and no checkpoint that would trim them."""


def partition(node: LocalNode) -> Path:
    return node.data_dir / "__cluster_metadata-0"


def forge(node: LocalNode) -> int:
    """Give a stopped node another batch in its newest segment; the batch's base offset."""
    path = sorted(partition(node).glob("*.log"))[-1]
    batches = scan_batches(path.read_bytes())
    offset = batches[len(batches) // 2].base_offset
    assert forge_batch(OsFileSystem(), partition(node), offset) is not None
    return offset


def until_ended(cluster: Processes, node: LocalNode) -> int:
    def status() -> int | None:
        return None if node.process is None else node.process.poll()

    return cluster.until(f"node {node.id} stopped", status)


def digest_at_end(node: LocalNode) -> tuple[int, bytes]:
    log = open_readonly(node.data_dir)
    try:
        assert log.problems == []
        return log.end.offset, log.digest_at(log.end.offset)
    finally:
        log.close()


def start_again(cluster: Processes, node: LocalNode) -> None:
    cluster.start(node)
    cluster.wait_ready([node])


def test_a_follower_with_another_history(tmp_path: Path) -> None:
    """It stops by itself, names the first offset that differs, and comes back with the rest."""
    with running(tmp_path, settings=SETTINGS) as cluster:
        write_configs(cluster, ["1"])
        write_many(cluster, 400)
        wait_equal_images(cluster, cluster.voters)
        leader = cluster.leader()
        node = next(each for each in cluster.voters if each is not leader)
        assert cluster.stop(node) == 0
        offset = forge(node)
        cluster.start(node)
        assert until_ended(cluster, node) == Exit.DAMAGED
        log_text = node.log_path.read_text()
        assert f"the log differs from that of node {leader.id} from offset {offset} on" in log_text
        write_configs(cluster, ["2"])
        start_again(cluster, node)
        assert list(partition(node).glob("*.log.damaged")), "nothing was kept to look at"
        write_configs(cluster, ["3"])
        wait_equal_images(cluster, cluster.voters)
        assert config_value(cluster) == "3"
        for each in cluster.voters:
            assert cluster.stop(each) == 0
        ends = [digest_at_end(each) for each in cluster.voters]
        assert ends[0][1] != b""
        shortest = min(end for end, _ in ends)
        assert len({digest for end, digest in ends if end == shortest}) == 1


def test_a_leader_whose_disk_becomes_corrupt_while_it_runs(tmp_path: Path) -> None:
    """A divergence makes it read its files: it resigns and stops, the others have everything."""
    with running(tmp_path, settings=SETTINGS) as cluster:
        write_configs(cluster, ["1"])
        write_many(cluster, 400)
        observer = cluster.add_observer(9)
        cluster.format(observer)
        start_again(cluster, observer)
        wait_equal_images(cluster, [*cluster.voters, observer])
        assert cluster.stop(observer) == 0
        forge(observer)
        leader = cluster.leader()
        victim = sorted(partition(leader).glob("*.log"))[0]
        with victim.open("r+b") as file:
            file.seek(victim.stat().st_size // 2)
            (byte,) = file.read(1)
            file.seek(victim.stat().st_size // 2)
            file.write(bytes([byte ^ 0x10]))
        cluster.start(observer)
        assert until_ended(cluster, leader) == Exit.DAMAGED
        assert str(victim) in leader.log_path.read_text()
        write_configs(cluster, ["2"])
        start_again(cluster, leader)
        until_ended(cluster, observer)
        start_again(cluster, observer)
        write_configs(cluster, ["3"])
        wait_equal_images(cluster, [*cluster.voters, observer])
        assert config_value(cluster) == "3"
        assert list(partition(leader).glob(victim.name + ".damaged"))
