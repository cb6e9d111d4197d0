"""The leader's side of Fetch: answers, holding, and what becomes committed when."""

from __future__ import annotations

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.events import ReplicaRegressed
from quorum.core.contract.output import HighWatermarkAdvanced, Output, Send
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.state.timers import Timer
from quorum.errors import ErrorCode, QuorumUsageError
from quorum.types import OffsetAndEpoch, ReplicaKey
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import disk_with, key


def led(*, config: QuorumConfig | None = None, disk_log: str = "") -> CoreCluster:
    """Node 1 leads; from here on the test speaks for the others."""
    disks = {each: disk_with(disk_log) for each in (1, 2, 3)} if disk_log else None
    cluster = CoreCluster(config=config, disks=disks)
    cluster.elect(1)
    cluster.members[2].is_up = cluster.members[3].is_up = False
    cluster.now_ms += cluster.config.fetch_max_wait_ms
    cluster.tick(1)
    cluster.queue.clear()
    for each in (2, 3):
        fetch(cluster, each)
    return cluster


_ids = iter(range(1, 1 << 30))


def fetch(
    cluster: CoreCluster,
    sender: int,
    offset: int | None = None,
    *,
    epoch: int | None = None,
    last: int | None = None,
    **fields: object,
) -> Output:
    """A Fetch by ``sender``, by default at the leader's end and knowing all it knows."""
    leader = cluster[1]
    values: dict[str, object] = {
        "replica": key(max(sender, 0)),
        "high_watermark": leader.high_watermark,
        "max_wait_ms": 500,
    }
    values.update(fields)
    request = FetchRequest(
        next(_ids),
        CLUSTER,
        epoch=leader.epoch if epoch is None else epoch,
        fetch_offset=leader.log_end_offset if offset is None else offset,
        last_fetched_epoch=leader.log_end.epoch if last is None else last,
        **values,  # type: ignore[arg-type]
    )
    return cluster.call(1, lambda node: node.receive(cluster.now_ms, sender, request))


def answers(output: Output) -> list[FetchResponse]:
    return [each.message for each in output.immediate if isinstance(each.message, FetchResponse)]


def test_records_are_served_to_held_fetches_before_they_are_flushed_here() -> None:
    """Goal: a follower's disk may be quicker. Method: propose on a slow disk."""
    cluster = led()
    cluster.slow_disks.add(1)
    output = cluster.propose(1, 2)
    assert [each.to for each in output.immediate] == [2, 3]
    for answer in answers(output):
        assert (answer.records.offset, answer.records.end_offset) == (3, 5)
        assert answer.records.bytes_max == cluster.config.fetch_bytes_max


def test_a_response_is_limited_by_the_leaders_own_maximum() -> None:
    """Goal: no answer that fits no message. Method: a Fetch for a gibibyte."""
    cluster = led(config=QuorumConfig(fetch_bytes_max=64, append_delay_ms=0))
    cluster.propose(1, 2)
    for asked, served in ((1 << 30, 64), (1, 1)):
        responses = answers(fetch(cluster, 2, 3, last=1, max_bytes=asked))
        assert [each.records.bytes_max for each in responses if each.records.offset == 3] == [
            served
        ]


def test_the_leader_counts_itself_only_up_to_what_is_flushed() -> None:
    """Goal: ADR 7. Method: one voter acknowledges, the leader's disk lags."""
    cluster = led()
    cluster.slow_disks.add(1)
    cluster.propose(1, 2)
    fetch(cluster, 2)
    assert cluster[1].high_watermark == 3
    cluster.persist(1)
    assert cluster[1].high_watermark == 5


def test_two_voters_commit_without_the_leaders_disk() -> None:
    """Goal: any majority commits. Method: both others acknowledge first."""
    cluster = led()
    cluster.slow_disks.add(1)
    cluster.propose(1, 2)
    fetch(cluster, 2)
    output = fetch(cluster, 3)
    assert HighWatermarkAdvanced(5) in output.progress


def test_an_advanced_high_watermark_answers_held_fetches() -> None:
    """Goal: without a delay, at once. Method: hold one, let the other commit."""
    cluster = led()
    cluster.propose(1, 2)
    fetch(cluster, 2, 3)
    held = fetch(cluster, 2, 5, high_watermark=3)
    assert [each.high_watermark for each in answers(held)] == [5]
    assert answers(fetch(cluster, 3)) == []
    cluster.propose(1, 1)
    output = fetch(cluster, 2)
    assert [each.high_watermark for each in answers(output)] == [6]


def test_a_moved_high_watermark_waits_for_records_to_go_along_with() -> None:
    """Goal: one answer instead of two. Method: commit while a Fetch is held, then append."""
    cluster = led(config=QuorumConfig(append_delay_ms=0))
    cluster.propose(1, 2)
    fetch(cluster, 2, 3)
    assert answers(fetch(cluster, 2, 5, high_watermark=3)) == []
    before = len(cluster.sent)
    cluster.propose(1, 1)
    responses = [each[-1] for each in cluster.sent[before:]]
    assert [each.high_watermark for each in responses if isinstance(each, FetchResponse)] == [5]


def test_an_advanced_high_watermark_is_sent_soon_without_new_records() -> None:
    """Goal: replicas are never far behind. Method: commit, append nothing, let the delay pass."""
    cluster = led(config=QuorumConfig(append_delay_ms=0))
    cluster.propose(1, 2)
    fetch(cluster, 2, 3)
    assert answers(fetch(cluster, 2, 5, high_watermark=3)) == []
    assert answers(fetch(cluster, 3)) == []
    delay_ms = cluster.config.high_watermark_delay_ms
    assert cluster.members[1].deadline_ms == cluster.now_ms + delay_ms
    before = len(cluster.sent)
    cluster.now_ms += delay_ms
    cluster.tick(1)
    responses = [each[-1] for each in cluster.sent[before:]]
    assert [each.high_watermark for each in responses if isinstance(each, FetchResponse)] == [5]


def test_a_held_fetch_is_answered_in_time_with_what_is_true_then() -> None:
    """Goal: the long poll ends. Method: wait it out; a higher max wait does not prolong it."""
    cluster = led()
    assert answers(fetch(cluster, 2, max_wait_ms=60_000)) == []
    assert cluster.members[1].deadline_ms == cluster.now_ms + 500
    before = len(cluster.sent)
    cluster.now_ms += 500
    cluster.tick(1)
    timed_out = [m for by, to, m in cluster.sent[before:] if by == 1 and to == 2]
    assert [m.error for m in timed_out if isinstance(m, FetchResponse)] == [ErrorCode.NONE] * 2


def test_the_number_of_held_fetches_is_bounded() -> None:
    """Goal: a named limit. Method: one more than fits is answered empty-handed at once."""
    cluster = led(config=QuorumConfig(held_fetches_max=4))
    for observer in (11, 12):
        assert answers(fetch(cluster, observer)) == []
    assert len(answers(fetch(cluster, 13))) == 1
    assert len(answers(fetch(cluster, -1, replica=ReplicaKey(-1), epoch=-1, last=-1))) == 1


def test_a_repeated_request_id_displaces_and_answers_the_older_one() -> None:
    """Goal: every request is answered exactly once. Method: the same id twice."""
    cluster = led()
    request = FetchRequest(77, CLUSTER, key(2), 1, 3, 1, 3, max_wait_ms=500)
    cluster.call(1, lambda node: node.receive(cluster.now_ms, 2, request))
    output = cluster.call(1, lambda node: node.receive(cluster.now_ms, 2, request))
    assert [each.request_id for each in answers(output)] == [77]


def test_records_of_an_older_epoch_are_not_committed_by_counting() -> None:
    """Goal: Raft 5.4.2, figure 8. Method: a majority has the old record, not the new one."""
    cluster = led(disk_log="1:a 1:b")
    assert cluster[1].high_watermark == cluster[1].log_end_offset
    restarted = CoreCluster(disks={1: disk_with("1:a 1:b"), 2: disk_with("1:a"), 3: disk_with()})
    restarted.cut = {(1, 2), (1, 3)}
    restarted.cut.clear()
    restarted.slow_disks |= {2, 3}
    restarted.elect_without_replicating(1)
    leader = restarted[1]
    assert leader.is_leader
    fetch(restarted, 2, 2, last=1)
    fetch(restarted, 3, 2, last=1)
    assert leader.high_watermark == 0
    assert not leader.can_write
    fetch(restarted, 2)
    assert leader.high_watermark == leader.log_end_offset
    assert leader.can_write


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"epoch": 0, "last": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": 2}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"offset": -1}, ErrorCode.INVALID_REQUEST),
        ({"last": -1}, ErrorCode.INVALID_REQUEST),
        ({"last": 2}, ErrorCode.INVALID_REQUEST),
        ({"max_wait_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"max_bytes": -1}, ErrorCode.INVALID_REQUEST),
        ({"replica": key(1)}, ErrorCode.INVALID_REQUEST),
        ({"replica": ReplicaKey(-7)}, ErrorCode.INVALID_REQUEST),
        ({"replica": ReplicaKey(-1), "offset": 99}, ErrorCode.OFFSET_OUT_OF_RANGE),
    ],
)
def test_a_refused_fetch_counts_for_nothing(fields: dict[str, object], error: ErrorCode) -> None:
    """Goal: validation before bookkeeping. Method: one wrong field at a time."""
    cluster = led()
    before = cluster[1].replicas()
    output = fetch(cluster, 2, **fields)  # type: ignore[arg-type]
    (answer,) = answers(output)
    assert answer.error == error
    assert answer.leader_id == 1
    assert [each.log_end_offset for each in cluster[1].replicas()] == [
        each.log_end_offset for each in before
    ]


def test_a_request_of_another_cluster_is_refused() -> None:
    """Goal: clusters do not mix. Method: another cluster id."""
    cluster = led()
    request = FetchRequest(1, "other", key(2), 1, 3, 1)
    output = cluster.call(1, lambda node: node.receive(cluster.now_ms, 2, request))
    assert [each.error for each in answers(output)] == [ErrorCode.INCONSISTENT_CLUSTER_ID]


def test_a_position_beyond_the_log_is_diverging_and_acknowledges_nothing() -> None:
    """Goal: only a prefix acknowledges. Method: claim more than there is."""
    cluster = led()
    (answer,) = answers(fetch(cluster, 2, 50))
    assert answer.diverging == OffsetAndEpoch(3, 1)
    assert max(each.log_end_offset for each in cluster[1].replicas()) == 3


def test_a_voter_on_another_disk_is_an_observer() -> None:
    """Goal: a wiped voter acknowledges nothing. Method: fetch with another directory."""
    cluster = led()
    cluster.slow_disks.add(1)
    cluster.propose(1, 1)
    fetch(cluster, 2, replica=ReplicaKey(2, b"another disk 16B"))
    assert cluster[1].high_watermark == 3
    views = [each for each in cluster[1].replicas() if each.key.id == 2]
    assert [each.is_voter for each in views] == [True, False]


def test_a_plain_consumer_sees_only_what_is_committed() -> None:
    """Goal: 320.1 and what differs from Kafka. Method: an uncommitted tail."""
    cluster = led()
    cluster.slow_disks.add(1)
    cluster.propose(1, 2)
    consumer = ReplicaKey(-1)
    (early,) = answers(fetch(cluster, -1, 0, replica=consumer, epoch=-1, last=-1))
    assert (early.records.offset, early.records.end_offset) == (0, 3)
    assert answers(fetch(cluster, -1, 3, replica=consumer, epoch=-1, last=-1)) == []
    output = fetch(cluster, 2)
    assert answers(output) == []
    cluster.persist(1)
    assert cluster[1].high_watermark == 5
    late = [m for _, to, m in cluster.sent if to == -1 and isinstance(m, FetchResponse)][-1]
    assert (late.records.base_offset, late.records.end_offset) == (3, 5)
    assert [each.key.id for each in cluster[1].replicas()] == [1, 2, 3]


def test_a_plain_consumer_that_will_not_wait_or_has_another_log_is_answered_at_once() -> None:
    cluster = led()
    consumer = ReplicaKey(-1)
    asked = fetch(cluster, -1, 3, replica=consumer, epoch=-1, last=-1, max_wait_ms=0)
    assert [each.error for each in answers(asked)] == [ErrorCode.NONE]
    (other,) = answers(fetch(cluster, -1, 3, replica=consumer, epoch=-1, last=0))
    assert (other.error, other.diverging) == (ErrorCode.NONE, OffsetAndEpoch(0, 0))


def test_a_plain_consumer_at_the_log_start_has_no_history_to_differ_in() -> None:
    """Goal: it may begin to read, whatever it read elsewhere. Method: an epoch that never was."""
    cluster = led()
    (answer,) = answers(fetch(cluster, -1, 0, replica=ReplicaKey(-1), epoch=-1, last=1))
    assert (answer.error, answer.diverging, answer.records.end_offset) == (ErrorCode.NONE, None, 3)


@pytest.mark.parametrize("sender", [2, -1], ids=["replica", "consumer"])
@pytest.mark.parametrize("max_wait_ms", [0, 1])
def test_a_fetch_is_held_for_its_max_wait_and_without_one_sets_no_timer(
    sender: int, max_wait_ms: int
) -> None:
    """Goal: 0 is no wait and 1 is one. Method: no news; check now, and a millisecond later."""
    cluster = led()
    cluster.now_ms += 500
    cluster.tick(1)
    before = cluster[1].timers_fired[Timer.HELD_FETCH]
    fields = {"replica": ReplicaKey(sender) if sender < 0 else key(sender)}
    output = fetch(cluster, sender, max_wait_ms=max_wait_ms, **fields)
    assert len(answers(output)) == 1 - max_wait_ms
    cluster.now_ms += 1
    output = cluster.call(1, lambda node: node.tick(cluster.now_ms))
    assert len(answers(output)) == max_wait_ms
    assert cluster[1].timers_fired[Timer.HELD_FETCH] == before + max_wait_ms


def test_observers_are_tracked_up_to_a_limit_and_forgotten_when_silent() -> None:
    """Goal: bounded bookkeeping. Method: one observer too many, then a session of silence."""
    cluster = led(config=QuorumConfig(observers_max=2, observer_session_ms=3_000))
    for index, observer in enumerate((11, 12, 13)):
        cluster.now_ms += index
        fetch(cluster, observer)
    observers = [each.key.id for each in cluster[1].replicas() if not each.is_voter]
    assert observers == [12, 13]
    cluster.now_ms += 2_900
    fetch(cluster, 2)
    fetch(cluster, 13)
    cluster.now_ms += 1_200
    fetch(cluster, 2)
    observers = [each.key.id for each in cluster[1].replicas() if not each.is_voter]
    assert observers == [13]


def test_a_voter_that_falls_behind_what_it_acknowledged_is_reported() -> None:
    """Goal: lost or rolled-back data is detected. Method: an older position."""
    cluster = led()
    output = fetch(cluster, 2, 1)
    assert ReplicaRegressed(key(2), 3, 1) in output.events
    assert cluster[1].high_watermark == 3


def test_a_voter_that_knows_of_its_loss_is_served_and_counts_for_what_it_has() -> None:
    """Goal: a vote floor is no rolled-back disk. Method: a Fetch that reports the loss."""
    cluster = led()
    output = fetch(cluster, 2, 1, has_lost_records=True)
    assert not [each for each in output.events if isinstance(each, ReplicaRegressed)]
    (answer,) = answers(output)
    assert (answer.error, answer.records.offset) == (ErrorCode.NONE, 1)
    assert [each.log_end_offset for each in cluster[1].replicas() if each.key.id == 2] == [1]
    assert cluster[1].high_watermark == 3


def test_describe_quorum_reports_when_a_replica_was_last_caught_up() -> None:
    """Goal: KIP-836 times. Method: caught up, then one append behind, then two."""
    cluster = led()
    start_ms = cluster.now_ms
    cluster.propose(1, 1)
    cluster.now_ms += 10
    fetch(cluster, 2, 3)
    cluster.now_ms += 10
    cluster.propose(1, 1)
    fetch(cluster, 2, 4)
    (view,) = [each for each in cluster[1].replicas() if each.key.id == 2]
    assert (view.last_fetch_ms, view.last_caught_up_ms) == (start_ms + 20, start_ms + 10)


def test_propose_is_refused_without_a_trace_where_it_may_not_be() -> None:
    """Goal: misuse changes nothing. Method: a follower, an empty range, too many bytes."""
    cluster = led(config=QuorumConfig(uncommitted_bytes_max=10))
    cluster.slow_disks.add(1)
    end = cluster[1].log_end_offset
    for node_id, end_offset, payload in (
        (2, end + 1, b"x"),
        (1, end, b"x"),
        (1, end + 1, bytes(11)),
    ):
        with pytest.raises(QuorumUsageError):
            cluster[node_id].propose(cluster.now_ms, end_offset=end_offset, payload=payload)
    cluster[1].propose(cluster.now_ms, end_offset=end + 1, payload=bytes(6))
    with pytest.raises(QuorumUsageError, match="uncommitted"):
        cluster[1].propose(cluster.now_ms, end_offset=end + 2, payload=bytes(6))
    assert cluster[1].log_end_offset == end + 1
    assert cluster[1].uncommitted_bytes == 6


def test_answers_of_an_established_leader_need_no_promise() -> None:
    """Goal: serving bytes promises nothing. Method: all answers are immediate."""
    cluster = led()
    output = fetch(cluster, 2, 0, last=0)
    assert output.after_persist == []
    assert [type(each) for each in output.immediate] == [Send]
