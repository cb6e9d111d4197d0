"""FetchSnapshot responses that bring no chunk: what ends the download, and what it survives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorum.core.contract.events import DownloadEnded, MessageIgnored
from quorum.core.contract.local_events import SnapshotRejected, SnapshotSealed
from quorum.core.contract.outcomes import DownloadOutcome
from quorum.core.contract.output import AbandonDownload, BeginDownload, WriteChunk
from quorum.core.contract.reasons import IgnoreReason
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.message_types import Message
from quorum.core.messages.read_messages import ReadRound
from quorum.core.messages.received_records import VotersAt
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest
from quorum.core.positions.download import SealedSnapshot
from quorum.core.protocol.epoch_claims import RESPONSE_RAISE_MAX
from quorum.core.state.core_state import CoreState
from quorum.core.state.roles import Follower
from quorum.core.state.timers import Timer
from quorum.errors import ErrorCode
from quorum.types import OffsetAndEpoch
from tests.support.core_cluster import CoreCluster
from tests.support.core_disk import disk_with, voter
from tests.support.download_steps import SNAPSHOT, asked, chunk, following, name_snapshot

PAUSE_MS = 20
"""``retry_backoff_ms``: for so long a peer that failed once is not asked."""


def begun(*, slices: int = 1) -> CoreCluster:
    """Node 1 has one of three slices, and has asked leader 2 for the next one."""
    cluster = following(slices=slices, unwritten=10)
    name_snapshot(cluster)
    chunk(cluster)
    assert core_of(cluster).following.download is not None
    return cluster


def last_sent(cluster: CoreCluster) -> tuple[int, type[Message]]:
    _, to, message = [each for each in cluster.sent if each[0] == 1][-1]
    return to, type(message)


def core_of(cluster: CoreCluster) -> CoreState:
    return cluster[1]._core


def deadline_ms(cluster: CoreCluster) -> int:
    """When node 1 gives its leader up."""
    role = core_of(cluster).role
    assert isinstance(role, Follower)
    return role.fetch_deadline_ms


def pass_time(cluster: CoreCluster, ms: int) -> None:
    cluster.now_ms += ms
    cluster.tick(1)


@pytest.mark.parametrize(
    "fields",
    [
        {"error": ErrorCode.UNKNOWN_SERVER_ERROR},
        {"epoch": 4},
        {"epoch": 5 + RESPONSE_RAISE_MAX + 1},
        {"leader_id": 3, "sender": 2},
    ],
    ids=["an error", "a stale epoch", "an epoch out of reach", "another leader of this epoch"],
)
def test_an_answer_that_fails_is_not_taken_and_costs_no_byte(fields: dict[str, Any]) -> None:
    """The sender is left alone for a while. It is asked by Fetch then whether it has the file."""
    cluster = begun()
    pass_time(cluster, 100)
    before_ms = deadline_ms(cluster)
    output = chunk(cluster, **fields)
    assert output.persist == []
    assert deadline_ms(cluster) == before_ms
    assert last_sent(cluster) == (3, FetchRequest)
    pass_time(cluster, PAUSE_MS - 1)
    assert last_sent(cluster) == (3, FetchRequest)
    pass_time(cluster, 1)
    assert last_sent(cluster) == (2, FetchRequest)
    assert name_snapshot(cluster).persist == []
    assert asked(cluster).position == 4


@pytest.mark.parametrize("error", [ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE])
@pytest.mark.parametrize("epoch", [4, 5])
def test_only_a_refusal_of_the_current_epoch_counts_as_leader_contact(
    error: ErrorCode, epoch: int
) -> None:
    """The file is given up either way: the next Fetch shows what there is instead."""
    cluster = begun()
    pass_time(cluster, 100)
    before_ms = deadline_ms(cluster)
    output = chunk(cluster, b"", error=error, epoch=epoch)
    assert AbandonDownload(SNAPSHOT) in output.persist
    assert last_sent(cluster) == (2, FetchRequest)
    assert deadline_ms(cluster) == (before_ms + 100 if epoch == 5 else before_ms)


def test_a_chunk_counts_as_leader_contact() -> None:
    cluster = begun()
    before_ms = deadline_ms(cluster)
    cluster.now_ms += 100
    chunk(cluster)
    assert deadline_ms(cluster) == before_ms + 100


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.SNAPSHOT_NOT_FOUND])
def test_a_response_of_a_later_epoch_does_not_affect_the_download(error: ErrorCode) -> None:
    """It names another leader, which may have the file: the download continues there."""
    cluster = begun()
    request = asked(cluster)
    output = chunk(cluster, request=request, error=error, epoch=6, leader_id=2)
    assert not [each for each in output.persist if isinstance(each, AbandonDownload | WriteChunk)]
    assert cluster[1].epoch == 6
    assert cluster[1].is_downloading
    # The sender has answered well, so it is not left alone.
    assert last_sent(cluster) == (2, FetchRequest)
    assert name_snapshot(cluster, epoch=6).persist == []
    assert asked(cluster).position == 4


def test_a_chunk_after_the_end_of_its_download_is_dropped() -> None:
    """Here the file was found to name one voter twice while a request was under way."""
    cluster = begun()
    request = asked(cluster)
    frozen = SnapshotSealed(SNAPSHOT, (VotersAt(9, (voter(2), voter(2))),), 10)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, frozen))
    assert not cluster[1].is_downloading
    assert chunk(cluster, request=request).persist == []
    # The former source gets no further request.
    assert last_sent(cluster) == (3, FetchRequest)


@pytest.mark.parametrize("slices", [1, 3])
def test_a_sender_of_a_chunk_that_does_not_fit_is_left_alone(slices: int) -> None:
    """Another peer is asked for the leader meanwhile, but not for the file."""
    cluster = begun(slices=slices)
    request = cluster.sent_by(1, FetchSnapshotRequest)[1]
    output = chunk(cluster, position=5, request=request)
    assert [each.is_violation for each in output.events if isinstance(each, MessageIgnored)]
    assert last_sent(cluster) == (3, FetchRequest)
    before = len(cluster.sent_by(1, FetchSnapshotRequest))
    pass_time(cluster, PAUSE_MS)
    again = cluster.sent_by(1, FetchSnapshotRequest)[before:]
    assert again
    elsewhere = [to for by, to, message in cluster.sent if by == 1 and message in again and to != 2]
    assert elsewhere == []
    assert again[0].position == 4


def test_another_file_of_the_same_name_ends_a_download_and_begins_one() -> None:
    cluster = begun()
    output = chunk(cluster, size=11)
    assert output.persist == [BeginDownload(SNAPSHOT)]
    assert DownloadEnded(SNAPSHOT, DownloadOutcome.ANOTHER_FILE) in output.events
    assert asked(cluster).position == 0


def test_while_a_file_is_verified_its_leader_hears_four_times_per_fetch_timeout() -> None:
    """With Fetch, which acknowledges what the log holds already; and no more often than that."""
    cluster = following(fetch_timeout_ms=2003)
    name_snapshot(cluster)
    cluster.slow_disks.add(1)
    before = len(cluster.sent_by(1, FetchRequest))
    chunk(cluster, bytes(10))
    for contact in (1, 2):
        pass_time(cluster, 499)
        assert len(cluster.sent_by(1, FetchRequest)) == before + contact - 1
        pass_time(cluster, 1)
        assert len(cluster.sent_by(1, FetchRequest)) == before + contact
        # The leader names the snapshot, as before.
        name_snapshot(cluster)
    assert cluster[1].timers_fired[Timer.DOWNLOAD_CONTACT] == 2


def test_a_read_round_only_rises_and_is_of_the_present_epoch() -> None:
    """An echo of it confirms the leader's reads, so an old one must not come back."""
    cluster = following()
    name_snapshot(cluster)
    for epoch, number, echoed in ((5, 3, 3), (5, 2, 3), (4, 9, 3), (6, 9, 3), (5, 4, 4)):
        chunk(cluster, size=100, read_round=ReadRound(epoch, number))
        assert asked(cluster).read_round == ReadRound(5, echoed)


@pytest.mark.parametrize(
    ("committed", "named", "is_taken"),
    [
        ("1:a 3:b", OffsetAndEpoch(10, 2), False),
        ("1:a 3:b", OffsetAndEpoch(2, 2), False),
        ("1:a 3:b", OffsetAndEpoch(10, 3), True),
        ("1:a 3:b", OffsetAndEpoch(10, 4), True),
        ("", OffsetAndEpoch(10, 2), True),
    ],
)
def test_no_checkpoint_of_an_earlier_epoch_follows_a_committed_record(
    committed: str, named: OffsetAndEpoch, is_taken: bool
) -> None:
    """Epochs do not decrease along a log. Only the epoch of committed records counts: the log
    continues with a record of epoch 4, which its leader may lack.
    """
    records = committed.split()
    disk = replace(disk_with(f"{committed} 4:c".strip()), high_watermark=len(records))
    cluster = following(disk)
    output = name_snapshot(cluster, named)
    assert (BeginDownload(named) in output.persist) is is_taken
    refused = [each for each in output.events if isinstance(each, MessageIgnored)]
    assert [each.reason for each in refused] == [IgnoreReason.BAD_SNAPSHOT] * (not is_taken)
    assert all("after a committed record of epoch 3" in each.detail for each in refused)
    assert cluster[1].log_end_offset == len(records) + 1


def test_a_verified_file_that_the_log_has_reached_meanwhile_is_kept_and_not_installed() -> None:
    """It waited for the end of a campaign; the log would lose its records beyond that file."""
    cluster = following(disk_with("1:a 1:b 1:c"))
    reached = OffsetAndEpoch(2, 1)
    core_of(cluster).following.sealed_snapshot = SealedSnapshot(reached, (), 10)
    cluster.tick(1)
    assert DownloadEnded(reached, DownloadOutcome.NOT_NEEDED) in cluster.members[1].events
    assert (cluster[1].log_end_offset, cluster[1].snapshots) == (3, (reached,))


def test_a_rejected_file_leaves_the_fetch_that_is_under_way_alone() -> None:
    """That Fetch keeps contact with the leader, and its response may name the next snapshot."""
    cluster = following()
    name_snapshot(cluster)
    cluster.slow_disks.add(1)
    chunk(cluster, bytes(10))
    pass_time(cluster, cluster.config.fetch_timeout_ms // 4)
    assert last_sent(cluster) == (2, FetchRequest)
    before = len(cluster.sent)
    rejected = SnapshotRejected(SNAPSHOT, "checksum")
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, rejected))
    assert len(cluster.sent) == before
    assert BeginDownload(SNAPSHOT) in name_snapshot(cluster).persist
