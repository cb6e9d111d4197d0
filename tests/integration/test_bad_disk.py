"""Damaged files and a full disk under running nodes: reported, repaired, nothing lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.cli.exits import Exit
from quorate.client.client import Client
from quorate.client.errors import ClientError
from quorate.demo.local_cluster import LocalNode
from quorum.v1 import commands_pb2 as wire
from tests.integration import full_disk
from tests.integration.processes import Processes, running
from tests.integration.traffic import (
    CONFIG,
    config_value,
    wait_equal_images,
    write_configs,
    write_many,
)

pytestmark = pytest.mark.integration

SETTINGS: dict[str, object] = {
    "log.segment_bytes": 16 << 10,
    "snapshot.max_bytes_between": 64 << 10,
    "snapshot.min_changed_records_ratio": 0.2,
}
RESOURCE = (wire.CONFIG_RESOURCE_TYPE_BROKER, "")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """Three voters with several segments and a checkpoint each."""
    with running(tmp_path_factory.mktemp("cluster"), settings=SETTINGS) as cluster:
        write_configs(cluster, ["1"])
        fill(cluster)
        yield cluster


def fill(cluster: Processes) -> None:
    def every_voter_has_a_checkpoint() -> bool | None:
        sizes = [cluster.metric(node, "quorate_snapshot_size_bytes") for node in cluster.voters]
        return True if all(sizes) else None

    write_many(cluster, 600)
    cluster.until("a checkpoint on every voter", every_voter_has_a_checkpoint)
    # Segments above the checkpoint, so that there is a middle to damage.
    write_many(cluster, 200)
    wait_equal_images(cluster, cluster.voters)


def partition(node: LocalNode) -> Path:
    return node.data_dir / "__cluster_metadata-0"


def flip(path: Path, position: int) -> None:
    path.chmod(0o640)
    with path.open("r+b") as file:
        file.seek(position)
        (byte,) = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ 0x55]))


def a_follower(cluster: Processes) -> LocalNode:
    leader = cluster.leader()
    return next(node for node in cluster.voters if node is not leader)


def log_since(node: LocalNode, position: int) -> str:
    return node.log_path.read_text()[position:]


def assert_intact_again(cluster: Processes, value: str) -> None:
    write_configs(cluster, [value])
    wait_equal_images(cluster, cluster.voters)
    assert config_value(cluster) == value


@pytest.mark.long
def test_a_segment_damaged_in_its_middle(cluster: Processes) -> None:
    """Set aside under another name, reported with file and position, and fetched again."""
    node = a_follower(cluster)
    assert cluster.stop(node) == 0
    segments = sorted(partition(node).glob("*.log"))
    victim = segments[0]
    assert victim.stat().st_size > 1000
    flip(victim, victim.stat().st_size // 2)
    seen = len(node.log_path.read_text())
    cluster.start(node)
    cluster.wait_ready([node])
    line = next(line for line in log_since(node, seen).splitlines() if "log_damaged" in line)
    assert str(victim) in line
    assert "position" in line
    assert "vote_floor" in line
    set_aside = [path for path in partition(node).iterdir() if path.name.startswith(victim.name)]
    assert [path for path in set_aside if path != victim], "nothing was kept to look at"
    assert_intact_again(cluster, "10")


def test_a_damaged_checkpoint(cluster: Processes) -> None:
    """Never loaded: set aside, reported, and replaced by the leader's."""
    node = a_follower(cluster)
    assert cluster.stop(node) == 0
    checkpoints = sorted(partition(node).glob("*.checkpoint"))
    victim = checkpoints[-1]
    flip(victim, victim.stat().st_size // 2)
    seen = len(node.log_path.read_text())
    cluster.start(node)
    cluster.wait_ready([node])
    line = next(
        line for line in log_since(node, seen).splitlines() if "checkpoint_quarantined" in line
    )
    assert victim.name in line
    assert "position" in line or "checksum" in line
    kept = [path.name for path in partition(node).iterdir() if path.name.startswith(victim.name)]
    assert any(name != victim.name for name in kept), kept
    assert_intact_again(cluster, "20")


def test_a_lone_voter_that_lost_records_does_not_lead(tmp_path: Path) -> None:
    """There is no peer to fetch from, so it refuses to start instead of serving half of its log."""
    with running(tmp_path, voters=1) as cluster:
        (node,) = cluster.voters
        write_configs(cluster, [str(value) for value in range(100, 140)])
        assert cluster.stop(node) == 0
        (segment,) = partition(node).glob("*.log")
        intact = segment.read_bytes()
        flip(segment, len(intact) // 2)
        cluster.start(node)
        cluster.until_logged(node, "event=log_damaged")
        cluster.until_logged(node, "event=campaign_refused")
        assert not cluster.is_ready(node)
        assert cluster.metric(node, 'quorate_raft_state{state="leader"}') == 0
        with pytest.raises((AssertionError, ClientError)):
            write_configs(cluster, ["1"], timeout=1.0)


@pytest.fixture
def filling(tmp_path: Path) -> Iterator[Processes]:
    """Return three voters whose disks can be filled one by one."""
    settings = {**SETTINGS, "node.filesystem": full_disk.NAME}
    with running(tmp_path, settings=settings) as cluster:
        yield cluster


def fill_disk(*nodes: LocalNode) -> None:
    for node in nodes:
        (node.folder / full_disk.SWITCH).touch()


def make_room(*nodes: LocalNode) -> None:
    for node in nodes:
        (node.folder / full_disk.SWITCH).unlink()


def assert_stopped_for_space(node: LocalNode) -> None:
    """The last line names the problem, the place and the next step."""
    last = node.log_tail(1)
    assert last.startswith(f"error: the node stopped: {node.data_dir}")
    assert "No space left (make room" in last
    assert "start the node again" in last


def test_the_leaders_disk_is_full(filling: Processes) -> None:
    """Writes go on under another leader; with space again the node is back, nothing is lost."""
    write_configs(filling, ["1", "2"])
    node = filling.leader()
    fill_disk(node)
    write_configs(filling, [str(value) for value in range(3, 30)])
    assert config_value(filling) == "29"
    assert filling.wait_ended(node) == Exit.DAMAGED
    assert_stopped_for_space(node)
    make_room(node)
    filling.start_all()
    assert_intact_again(filling, "30")


@pytest.mark.long
def test_every_disk_is_full(filling: Processes) -> None:
    """No write succeeds: clients get an error in time; acknowledged writes survive."""
    cluster = filling
    write_configs(cluster, ["1", "2"])

    async def write_into_a_full_disk() -> None:
        async with Client(cluster.addresses, timeout_seconds=3) as client:
            for value in ("100", "101"):
                with pytest.raises(ClientError):
                    await client.set_config(*RESOURCE, CONFIG, value)

    fill_disk(*cluster.voters)
    asyncio.run(write_into_a_full_disk())
    stopped = [node for node in cluster.voters if not node.is_running]
    assert stopped
    for node in stopped:
        assert_stopped_for_space(node)
    make_room(*cluster.voters)
    cluster.start_all()
    # The outcome of those two is unknown.
    assert config_value(cluster) in ("2", "100", "101")
    assert_intact_again(cluster, "30")


@pytest.mark.long
def test_low_disk_space_is_reported_before_the_disk_is_full(tmp_path: Path) -> None:
    with running(tmp_path, voters=1) as cluster:
        (node,) = cluster.voters
        write_configs(cluster, ["1"])
        assert cluster.stop(node) == 0
        node.settings["limits.disk_free_bytes_min"] = 1 << 62
        cluster.configure(node)
        cluster.start(node)
        cluster.until("the probe", lambda: "disk_space" in cluster.readiness(node) or None)
        cluster.until("a leader", lambda: cluster.find_leader())
        assert not cluster.is_ready(node)
        write_configs(cluster, ["2"])
        assert config_value(cluster) == "2"
