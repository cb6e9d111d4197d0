"""A download that an earlier process run left: when it resumes, and when it restarts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorum.core.contract.events import DownloadEnded, DownloadStarted
from quorum.core.contract.local_events import SnapshotRejected
from quorum.core.contract.outcomes import DownloadOutcome
from quorum.core.contract.output import AbandonDownload, BeginDownload, SealDownload, WriteChunk
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest
from quorum.errors import ErrorCode
from quorum.types import OffsetAndEpoch
from simulation.harness.core_disk import Disk
from tests.support.core_cluster import CoreCluster
from tests.support.core_disk import disk_with
from tests.support.download_steps import SNAPSHOT, asked, chunk, follow, following, name_snapshot

FOUND = 6
"""Bytes of the part file that were verified at the start."""


def restarted(disk: Disk | None = None) -> CoreCluster:
    """Node 1 has found ``FOUND`` bytes of ``SNAPSHOT``, and follows leader 2 in epoch 5."""
    disk = disk or disk_with("1:a 1:b")
    return following(replace(disk, chunks={SNAPSHOT: b"x" * FOUND}))


def test_it_waits_for_the_leader_and_goes_on_behind_what_was_found() -> None:
    """Goal: no byte twice. Method: the same id; the first request, the effects, the image."""
    cluster = restarted()
    assert cluster.sent_by(1, FetchSnapshotRequest) == []
    output = name_snapshot(cluster)
    assert output.persist == []
    assert DownloadStarted(SNAPSHOT, 2, FOUND) in output.events
    assert asked(cluster).position == FOUND
    cluster.slow_disks.add(1)
    output = chunk(cluster)
    assert output.persist == [WriteChunk(SNAPSHOT, FOUND, b"abcd"), SealDownload(SNAPSHOT, b"d")]
    cluster.persist(1)
    assert cluster[1].log_start == cluster[1].log_end == SNAPSHOT


def test_another_checkpoint_takes_its_place() -> None:
    """Goal: never the rest of another file. Method: the leader names a newer one."""
    cluster = restarted()
    newer = OffsetAndEpoch(20, 4)
    output = name_snapshot(cluster, newer)
    assert output.persist == [AbandonDownload(SNAPSHOT), BeginDownload(newer)]
    assert asked(cluster).position == 0


@pytest.mark.parametrize("error", [ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE])
def test_a_leader_that_has_less_lets_it_begin_anew(error: ErrorCode) -> None:
    """Goal: back to Fetch, and to byte 0. Method: the leader refuses the position."""
    cluster = restarted()
    name_snapshot(cluster)
    output = chunk(cluster, b"", error=error)
    assert AbandonDownload(SNAPSHOT) in output.persist
    output = name_snapshot(cluster)
    assert output.persist == [BeginDownload(SNAPSHOT)]
    assert asked(cluster).position == 0


def test_a_leader_that_names_no_digest_lets_it_begin_anew() -> None:
    """Goal: nothing is put together unseen. Method: a chunk that fits, without a digest."""
    cluster = restarted()
    name_snapshot(cluster)
    output = chunk(cluster, file_digest=b"")
    assert output.persist == [BeginDownload(SNAPSHOT)]
    assert asked(cluster).position == 0
    # What has begun at byte 0 is as any other.
    assert chunk(cluster, file_digest=b"").persist == [WriteChunk(SNAPSHOT, 0, b"abcd")]


def test_a_change_of_leader_before_the_first_chunk_does_not_end_it() -> None:
    """Goal: it may wait for long. Method: two leaders name it; the second answers."""
    cluster = restarted()
    name_snapshot(cluster)
    follow(cluster, 3, 6)
    output = name_snapshot(cluster, leader=3, epoch=6)
    assert DownloadStarted(SNAPSHOT, 3, FOUND) in output.events
    output = chunk(cluster, leader_id=3, epoch=6)
    assert WriteChunk(SNAPSHOT, FOUND, b"abcd") in output.persist


def test_a_rejected_one_begins_anew_at_once_and_then_pauses() -> None:
    """Goal: the found part may be bad, so the first retry has no pause; then the sender is bad.
    Method: two rejections.
    """
    cluster = restarted()
    name_snapshot(cluster)
    cluster.slow_disks.add(1)
    chunk(cluster)
    rejected = SnapshotRejected(SNAPSHOT, "digest")
    fetches = _fetches_from_leader(cluster)
    output = cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, rejected))
    assert DownloadEnded(SNAPSHOT, DownloadOutcome.REJECTED, "digest") in output.events
    assert _fetches_from_leader(cluster) == fetches + 1
    output = name_snapshot(cluster)
    assert BeginDownload(SNAPSHOT) in output.persist
    assert asked(cluster).position == 0
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, rejected))
    assert _fetches_from_leader(cluster) == fetches + 1


def _fetches_from_leader(cluster: CoreCluster) -> int:
    return sum(
        (by, to) == (1, 2) and isinstance(message, FetchRequest) for by, to, message in cluster.sent
    )


@pytest.mark.parametrize(
    "disk",
    [
        pytest.param(disk_with("1:a", high_watermark=1), id="needed"),
        pytest.param(disk_with("1:a " * 3 + "3:b " * 7), id="the log has its position"),
        pytest.param(disk_with("3:b " * 12, high_watermark=11), id="below the high watermark"),
        pytest.param(
            disk_with(start=OffsetAndEpoch(12, 3), snapshots={OffsetAndEpoch(12, 3): 9}),
            id="below a checkpoint",
        ),
    ],
)
def test_one_that_the_log_needs_no_longer_is_removed_at_the_start(
    disk: Disk, request: pytest.FixtureRequest
) -> None:
    """Goal: nothing stale is kept. Method: logs that reach it, and one that does not."""
    is_needed = "needed" in request.node.name
    disk = replace(disk, chunks={SNAPSHOT: b"x" * FOUND})
    cluster = CoreCluster(disks={1: disk}, autostart=False)
    output = cluster.start(1)
    assert (AbandonDownload(SNAPSHOT) in output.persist) == (not is_needed)
    ended = DownloadEnded(SNAPSHOT, DownloadOutcome.NOT_NEEDED)
    assert (ended in output.events) == (not is_needed)
    assert cluster[1].is_downloading == is_needed
    assert (SNAPSHOT in cluster.members[1].disk.chunks) == is_needed


def test_a_leader_that_has_the_records_ends_it() -> None:
    """Goal: the file goes. Method: a plain Fetch answer."""
    cluster = CoreCluster(disks={1: Disk(chunks={SNAPSHOT: b"x" * FOUND})})
    cluster.elect(2)
    cluster.propose(2, 3)
    cluster.advance(1_000)
    assert cluster[1].log_end_offset == cluster[2].log_end_offset
    assert not cluster[1].is_downloading
    assert cluster.members[1].disk.chunks == {}
