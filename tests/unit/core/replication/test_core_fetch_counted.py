"""What a leader concludes from a Fetch beside the answer, and what the disk's word changes."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.events import FetchClassified, ReplicaRegressed
from quorum.core.contract.local_events import SnapshotCreated, TransferLeadership
from quorum.core.messages.fetch_messages import FetchRequest, Subtree
from quorum.core.state.peer_requests import Purpose
from quorum.core.state.timers import Timer
from quorum.errors import ErrorCode, QuorumUsageError
from quorum.types import OffsetAndEpoch, ReplicaKey, VersionRange
from tests.support.core_cluster import CoreCluster
from tests.support.core_disk import key
from tests.support.lone_leader import LoneLeader, fetch_answers

CONSUMER = ReplicaKey(-1)
OBSERVER = 9


def test_a_fetch_reports_its_senders_versions_and_subtree() -> None:
    """Versions come only in some Fetches: one without them changes nothing."""
    cluster = LoneLeader()
    supported = (VersionRange("f", 1, 2),)
    below = Subtree(2, 1, ((20, OBSERVER),))
    cluster.fetch(OBSERVER, supported=supported, subtree=below)
    for subtree in (below, None):
        cluster.fetch(OBSERVER, subtree=subtree)
        view = cluster.view(key(OBSERVER))
        assert view is not None
        assert (view.supported, view.subtree) == (supported, subtree)


@pytest.mark.parametrize("subtree", [Subtree(-1, 2), Subtree(2, -1)])
def test_a_subtree_below_nothing_is_refused(subtree: Subtree) -> None:
    (answer,) = fetch_answers(LoneLeader().fetch(OBSERVER, subtree=subtree))
    assert answer.error is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"epoch": -1, "last_fetched_epoch": -1}, ErrorCode.NONE),
        ({"epoch": -1, "last_fetched_epoch": 1}, ErrorCode.NONE),
        ({"epoch": 1, "last_fetched_epoch": 1}, ErrorCode.NONE),
        ({"epoch": -1, "last_fetched_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"epoch": 0, "last_fetched_epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": 2, "last_fetched_epoch": 1}, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_consumer_may_name_an_epoch_and_is_held_to_it(
    fields: dict[str, Any], error: ErrorCode
) -> None:
    cluster = LoneLeader()
    (answer,) = fetch_answers(cluster.fetch(-1, 1, replica=CONSUMER, **fields))
    assert answer.error is error


def test_the_first_fetch_of_a_replica_is_answered_at_once_and_the_next_may_gather() -> None:
    """Method: one record behind, twice."""
    cluster = LoneLeader(config=QuorumConfig(append_delay_ms=5))
    cluster.propose(1)
    for each in (2, 3):
        cluster.fetch(each)
    behind = cluster[1].log_end_offset - 1
    assert len(fetch_answers(cluster.fetch(OBSERVER, behind))) == 1
    assert fetch_answers(cluster.fetch(OBSERVER, behind)) == []


def test_who_asks_from_a_history_that_parted_has_acknowledged_nothing() -> None:
    """Its earlier position is not on its disk; the response names the divergence point."""
    cluster = LoneLeader()
    cluster.fetch(OBSERVER, 3)
    output = cluster.fetch(OBSERVER, 2, last_fetched_epoch=0)
    assert ReplicaRegressed(key(OBSERVER), 3, 2) in output.events
    (event,) = (each for each in output.events if isinstance(each, FetchClassified))
    assert (event.replica, event.offset, event.answer) == (key(OBSERVER), 2, "diverging")
    assert event.detail == str(OffsetAndEpoch(0, 0))
    view = cluster.view(key(OBSERVER))
    assert view is not None
    assert view.log_end_offset == -1


def test_who_is_sent_to_a_checkpoint_is_reported_as_that() -> None:
    cluster = LoneLeader()
    cluster.report(SnapshotCreated(OffsetAndEpoch(3, 1), 40))
    output = cluster.fetch(OBSERVER, 0, last_fetched_epoch=0)
    (event,) = (each for each in output.events if isinstance(each, FetchClassified))
    assert (event.answer, event.detail) == ("snapshot", str(OffsetAndEpoch(3, 1)))


@pytest.mark.parametrize(("is_proven", "error"), [
    (True, ErrorCode.NONE), (False, ErrorCode.REPLICA_REGRESSED),
])  # fmt: skip
def test_a_voter_that_reports_lost_records_may_fetch_below_its_acknowledgement(
    is_proven: bool, error: ErrorCode
) -> None:
    """Unless another sender may have reported it. Method: it fetches from a diverged history, with
    a report of its loss; then from the beginning, without."""
    cluster = LoneLeader()
    cluster.fetch(2, 2, last_fetched_epoch=0, has_lost_records=True, is_proven=is_proven)
    (answer,) = fetch_answers(cluster.fetch(2, 0, last_fetched_epoch=0))
    assert answer.error is error


def test_who_waits_at_the_end_of_a_log_that_is_trimmed_to_there_has_all_of_it() -> None:
    cluster = LoneLeader()
    end = cluster[1].log_end_offset
    cluster.report(SnapshotCreated(OffsetAndEpoch(end, 1), 40))
    assert cluster[1].log_start.offset == end
    cluster.now_ms += cluster.config.fetch_max_wait_ms
    output = cluster.call(1, lambda node: node.tick(cluster.now_ms))
    answers = fetch_answers(output)
    assert [(each.error, each.snapshot_id) for each in answers] == [(ErrorCode.NONE, None)] * 2


def test_a_consumers_wait_is_a_held_fetch_whatever_is_appended_meanwhile() -> None:
    """What lies above the high watermark is nothing that it waits for."""
    cluster = LoneLeader(config=QuorumConfig(append_delay_ms=5, high_watermark_delay_ms=7))
    cluster.now_ms += cluster.config.fetch_max_wait_ms
    cluster.tick(1)
    cluster.slow_disks.add(1)
    cluster.propose(1)
    before = cluster[1].timers_fired.copy()
    cluster.fetch(-1, 3, replica=CONSUMER, epoch=-1, last_fetched_epoch=-1, max_wait_ms=100)
    cluster.now_ms += 100
    output = cluster.call(1, lambda node: node.tick(cluster.now_ms))
    assert [each.error for each in fetch_answers(output)] == [ErrorCode.NONE]
    assert cluster[1].timers_fired - before == {Timer.HELD_FETCH: 1}


def test_a_delayed_high_watermark_counts_as_that_timer() -> None:
    cluster = LoneLeader(config=QuorumConfig(append_delay_ms=0, high_watermark_delay_ms=7))
    cluster.propose(1)
    cluster.fetch(2)
    cluster.fetch(3)
    cluster.fetch(2, high_watermark=3)
    before = cluster[1].timers_fired.copy()
    cluster.now_ms += 7
    output = cluster.call(1, lambda node: node.tick(cluster.now_ms))
    assert {each.high_watermark for each in fetch_answers(output)} == {4}
    assert cluster[1].timers_fired - before == {Timer.WATERMARK_DELAY: len(fetch_answers(output))}


def test_without_a_delay_records_are_served_at_once() -> None:
    cluster = LoneLeader(config=QuorumConfig(append_delay_ms=0))
    cluster.propose(1)
    cluster.fetch(2)
    cluster.fetch(3)
    assert cluster.fired(Timer.APPEND_DELAY) == 0


def test_a_replica_without_the_voters_record_in_force_is_served_at_once() -> None:
    """It may not know yet that it votes, or that another does no longer."""
    cluster = LoneLeader((1, 2, 3, 4, 5), config=QuorumConfig(append_delay_ms=5))
    cluster.fetch(OBSERVER)
    record = cluster[1].voters_offset
    for each in (2, 3, 4, 5):
        cluster.fetch(each)
    end = cluster[1].log_end_offset
    (answer,) = fetch_answers(cluster.fetch(OBSERVER, record))
    assert answer.records.end_offset == end  # type: ignore[attr-defined]
    cluster.propose(1)
    for each in (2, 3, 4, 5):
        cluster.fetch(each)
    assert fetch_answers(cluster.fetch(OBSERVER, record + 1)) == []


def test_the_disk_cannot_report_what_it_was_not_given() -> None:
    cluster = LoneLeader()
    with pytest.raises(QuorumUsageError, match="never given"):
        cluster[1].persisted(cluster.now_ms, 1_000)


def test_a_repeated_report_of_the_disk_takes_nothing_back() -> None:
    """What depends on the election state still leaves at once."""
    cluster = LoneLeader()
    cluster.call(1, lambda node: node.persisted(cluster.now_ms, 0))
    output = cluster.fetch(OBSERVER, 0, last_fetched_epoch=0, max_wait_ms=0)
    assert len(fetch_answers(output)) == 1
    assert output.after_persist == []


def test_an_acknowledgement_waits_for_all_that_it_names_and_its_time_begins_then() -> None:
    """Method: a follower with a slow disk that stores its high watermark, then an append; the disk
    takes the first one only."""
    cluster = CoreCluster(config=QuorumConfig(append_delay_ms=0, high_watermark_delay_ms=0))
    cluster.elect(1)
    cluster.settle()
    cluster.slow_disks.add(2)
    cluster.advance(cluster.config.high_watermark_store_ms)
    cluster.tick(2)
    cluster.propose(1)
    cluster.settle()
    pending = [ticket for ticket, _ in cluster.members[2].pending]
    assert len(set(pending)) == 2
    before = len(cluster.sent_by(2, FetchRequest))
    cluster.call(2, lambda node: node.persisted(cluster.now_ms, pending[0]))
    cluster.advance(cluster.config.request_timeout_ms + 100)
    assert cluster[2].timers_fired[Timer.REQUEST_TIMEOUT, Purpose.FETCH] == 0
    assert len(cluster.sent_by(2, FetchRequest)) == before


def test_what_is_committed_no_longer_counts_against_the_bound_of_uncommitted_bytes() -> None:
    """Method: three records of one byte; two voters acknowledge one of them after the other."""
    cluster = LoneLeader(config=QuorumConfig(uncommitted_bytes_max=3))
    cluster.slow_disks.add(1)
    start = cluster[1].log_end_offset
    for _ in range(3):
        cluster.propose(1)
    assert cluster[1].uncommitted_bytes == 3
    with pytest.raises(QuorumUsageError, match="3 uncommitted bytes"):
        cluster.propose(1)
    for done in (1, 2, 3):
        cluster.fetch(2, start + done)
        assert cluster[1].uncommitted_bytes == 4 - done
        cluster.fetch(3, start + done)
        assert cluster[1].uncommitted_bytes == 3 - done


def test_a_leader_in_a_transfer_takes_no_writes() -> None:
    cluster = LoneLeader()
    cluster.report(TransferLeadership(7, 2))
    with pytest.raises(QuorumUsageError, match="may not write"):
        cluster.propose(1)


def test_who_waits_hears_of_a_commit_within_the_delay_and_at_once_without_one() -> None:
    """Method: a voter acknowledges and waits; then the leader's own disk makes it a majority."""
    for delay_ms in (0, 7):
        cluster = LoneLeader(
            config=QuorumConfig(append_delay_ms=0, high_watermark_delay_ms=delay_ms)
        )
        cluster.slow_disks.add(1)
        cluster.propose(1)
        cluster.fetch(2)
        before, fired = len(cluster.sent), cluster.fired(Timer.WATERMARK_DELAY)
        cluster.persist(1)
        assert cluster[1].high_watermark == cluster[1].log_end_offset
        notified = [to for _, to, _ in cluster.sent[before:]]
        assert notified == ([] if delay_ms else [2])
        assert cluster.fired(Timer.WATERMARK_DELAY) == fired
        if delay_ms:
            assert cluster.members[1].deadline_ms == cluster.now_ms + delay_ms
