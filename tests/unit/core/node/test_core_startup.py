"""From what is on disk to the first role."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.local_events import DurableState, FeatureLevels
from quorum.core.contract.output import ReplaceLogWith, SnapshotInstalled
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.vote_messages import VoteRequest
from quorum.core.node.raft_node import RaftNode
from quorum.errors import QuorumUsageError
from quorum.types import LOG_BEGINNING, ElectionState, EpochStart, OffsetAndEpoch
from simulation.harness.core_disk import Disk
from tests.support.core_cluster import CoreCluster
from tests.support.core_disk import disk_with, key

INTACT = {
    "election": ElectionState(),
    "log_start": LOG_BEGINNING,
    "log_end": OffsetAndEpoch(2, 1),
    "epochs": (EpochStart(1, 0),),
    "snapshots": (),
    "voters": (),
}


@pytest.mark.parametrize(
    ("disk", "role", "epoch"),
    [
        (Disk(), "Unattached", 0),
        (disk_with("1:a", epoch=4), "Unattached", 4),
        (disk_with("1:a", epoch=4, voted=2), "Unattached", 4),
        (disk_with("1:a", epoch=4, voted=1), "Unattached", 4),
        (disk_with("1:a", epoch=4, leader=2), "Follower", 4),
        (disk_with("1:a", epoch=4, leader=9), "Unattached", 4),
        (disk_with("1:a", epoch=4, leader=1, voted=1), "Resigned", 4),
    ],
)
def test_the_first_role_follows_from_the_election_file(disk: Disk, role: str, epoch: int) -> None:
    """Goal: the start-up rules. Method: one election file per rule."""
    cluster = CoreCluster(disks={1: disk})
    assert cluster[1].role_name == role
    assert cluster[1].epoch == epoch


def test_an_epoch_file_older_than_the_log_is_brought_up_to_it() -> None:
    """Goal: never an epoch below the log's. Method: epoch 1 on file, 3 in the log."""
    disk = disk_with("1:a 3:b")
    disk = replace(disk, election=ElectionState(1, 2, key(2)))
    cluster = CoreCluster(disks={1: disk})
    assert cluster[1].epoch == 3
    assert cluster.members[1].disk.election == ElectionState(3)


def test_a_node_never_asks_again_in_the_epoch_it_voted_for_itself_in() -> None:
    """Goal: ADR 7. Method: restart with its own vote on disk and check its requests."""
    cluster = CoreCluster(disks={1: disk_with("1:a", epoch=4, voted=1)})
    cluster.elect(1)
    votes = [each for each in cluster.sent_by(1, VoteRequest) if not each.pre_vote]
    assert votes
    assert all(each.epoch > 4 for each in votes)


def test_a_restarted_leader_is_elected_only_in_a_newer_epoch() -> None:
    """Goal: others may know it as leader. Method: crash and restart a lone leader."""
    cluster = CoreCluster((1,))
    assert cluster[1].epoch == 1
    cluster.crash(1)
    cluster.restart(1)
    assert cluster[1].can_write
    assert cluster[1].epoch > 2


def test_the_high_watermark_starts_from_its_lower_bounds() -> None:
    """Goal: truncation is guarded from the first moment. Method: a stored value and a snapshot."""
    snapshot = OffsetAndEpoch(2, 1)
    log = "1:a 1:b 1:c 1:d"
    stored = CoreCluster(disks={1: disk_with(log, high_watermark=3)})
    assert stored[1].high_watermark == 3
    by_snapshot = CoreCluster(disks={1: disk_with(log, snapshots={snapshot: 9})})
    assert by_snapshot[1].high_watermark == 2
    beyond = CoreCluster(disks={1: disk_with(log, high_watermark=99)})
    assert beyond[1].high_watermark == 4


def test_a_snapshot_newer_than_the_log_takes_its_place() -> None:
    """Goal: 630.14, a crash before the log was replaced. Method: both on disk."""
    snapshot = OffsetAndEpoch(10, 3)
    cluster = CoreCluster(disks={1: disk_with("1:a 1:b", snapshots={snapshot: 9})})
    assert cluster[1].log_start == cluster[1].log_end == snapshot
    assert ReplaceLogWith(snapshot) in cluster.members[1].effects
    assert SnapshotInstalled(snapshot) in cluster.members[1].progress


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"log_start": OffsetAndEpoch(5, 1)}, "not within"),
        ({"epochs": (EpochStart(2, 0), EpochStart(1, 1))}, "does not rise"),
        ({"epochs": ()}, "the epoch history ends with 0"),
        (
            {"log_start": OffsetAndEpoch(1, 1), "snapshots": ()},
            "no snapshot ends at or above",
        ),
    ],
)
def test_a_contradicting_disk_state_is_refused_with_its_numbers(
    change: dict[str, object], words: str
) -> None:
    """Goal: a clear error instead of strange behaviour. Method: one contradiction at a time."""
    node = RaftNode(config=QuorumConfig(), cluster_id="c", me=key(1), rng=random.Random(1))
    with pytest.raises(QuorumUsageError, match=words):
        node.start(0, DurableState(**{**INTACT, **change}))  # type: ignore[arg-type]
    node.start(0, DurableState(**INTACT))  # type: ignore[arg-type]


def test_a_core_before_its_start_sends_nothing() -> None:
    """Goal: a request before it knows its own disk would be one of an empty replica."""
    node = RaftNode(
        config=QuorumConfig(), cluster_id="c", me=key(1), rng=random.Random(1), bootstrap=(2,)
    )
    with pytest.raises(QuorumUsageError, match="not been started"):
        node.on_local_event(0, FeatureLevels((), {}))
    with pytest.raises(QuorumUsageError, match="not been started"):
        node.tick(10_000)
    with pytest.raises(QuorumUsageError, match="not been started"):
        node.process_paused(10_000, 5_000)
    output = node.start(10_000, DurableState(**INTACT))  # type: ignore[arg-type]
    (asked,) = [each.message for each in [*output.immediate, *output.after_persist]]
    assert isinstance(asked, FetchRequest)
    assert asked.fetch_offset == 2
