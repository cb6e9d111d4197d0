"""The follower's side of Fetch: acknowledging, appending, truncating, finding the leader."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorum.core.contract.events import LogDiverged, MessageIgnored, TruncationRefused
from quorum.core.contract.local_events import RequestFailed
from quorum.core.contract.output import (
    Append,
    LogTruncated,
    Output,
    Promise,
    Truncate,
    VotersChanged,
)
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.received_records import ReceivedRecords, VotersAt
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, EpochStart, OffsetAndEpoch
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import Disk, disk_with, key, voter

LOG = "1:a 1:b 2:c"


def following(disk: Disk | None = None, *, epoch: int = 5) -> CoreCluster:
    """Node 1 follows leader 2 in ``epoch`` and has its first Fetch under way."""
    cluster = CoreCluster(disks={1: disk or disk_with(LOG)})
    cluster.queue.clear()
    request = BeginQuorumEpochRequest(9, CLUSTER, key(1), key(2), epoch)
    cluster.call(1, lambda node: node.receive(cluster.now_ms, 2, request))
    assert cluster[1].role_name == "Follower"
    return cluster


def last_fetch(cluster: CoreCluster) -> FetchRequest:
    return cluster.sent_by(1, FetchRequest)[-1]


def answer(cluster: CoreCluster, **fields: object) -> Output:
    """The leader's answer to the Fetch under way."""
    values: dict[str, object] = {
        "error": ErrorCode.NONE,
        "leader_id": 2,
        "epoch": 5,
        "high_watermark": 0,
    }
    values.update(fields)
    response = FetchResponse(last_fetch(cluster).request_id, **values)  # type: ignore[arg-type]
    return cluster.call(1, lambda node: node.receive(cluster.now_ms, 2, response))


def records(base: int, end: int, *epochs: tuple[int, int]) -> ReceivedRecords:
    return ReceivedRecords(base, end, tuple(EpochStart(*each) for each in epochs), (), b"data")


GOOD = records(3, 6, (2, 3), (5, 4))


def test_the_next_fetch_acknowledges_only_what_is_flushed_and_leaves_at_once_then() -> None:
    """Goal: the acknowledgement is a promise. Method: append on a slow disk, then persist."""
    cluster = following()
    cluster.slow_disks.add(1)
    output = answer(cluster, records=GOOD, high_watermark=4)
    assert [type(each) for each in output.persist] == [Append]
    assert output.immediate == []
    (promise,) = output.after_persist
    assert isinstance(promise, Promise)
    assert promise.ticket == output.ticket
    assert isinstance(promise.message, FetchRequest)
    assert (promise.message.fetch_offset, promise.message.last_fetched_epoch) == (6, 5)
    sent = len(cluster.sent)
    cluster.persist(1)
    assert [to for _, to, _ in cluster.sent[sent:]] == [2]


def test_a_slow_disk_is_not_taken_for_a_silent_leader() -> None:
    """Goal: the request timer starts when the Fetch leaves. Method: persist after a long time."""
    cluster = following()
    cluster.slow_disks.add(1)
    answer(cluster, records=GOOD)
    cluster.now_ms += 1_900
    cluster.persist(1)
    assert cluster.members[1].deadline_ms is not None
    request = last_fetch(cluster)
    cluster.now_ms += 90
    cluster.tick(1)
    assert last_fetch(cluster) == request


def test_the_high_watermark_is_never_beyond_the_own_log_and_never_falls() -> None:
    """Goal: min(own end, leader's), monotone. Method: answers far ahead, then behind."""
    cluster = following()
    answer(cluster, high_watermark=99)
    assert cluster[1].high_watermark == 3
    answer(cluster, high_watermark=1)
    assert cluster[1].high_watermark == 3


@pytest.mark.parametrize(
    "received",
    [
        records(4, 6, (2, 4)),
        records(2, 6, (2, 2)),
        records(3, 3, (2, 3)),
        records(3, 6),
        records(3, 6, (2, 4)),
        records(3, 6, (1, 3)),
        records(3, 6, (6, 3)),
        records(3, 6, (3, 3), (3, 4)),
        records(3, 6, (4, 3), (3, 4)),
        records(3, 6, (3, 3), (4, 6)),
        replace(GOOD, voters=(VotersAt(2, (voter(1),)),)),
        replace(GOOD, voters=(VotersAt(6, (voter(1),)),)),
        replace(GOOD, voters=(VotersAt(4, (voter(1), voter(1))),)),
        replace(GOOD, voters=(VotersAt(4, ()),)),
    ],
)
def test_records_that_do_not_follow_are_dropped_without_a_trace(received: ReceivedRecords) -> None:
    """Goal: append only what is contiguous and of known epochs. Method: one flaw at a time."""
    cluster = following()
    output = answer(cluster, records=received)
    assert cluster[1].log_end == OffsetAndEpoch(3, 2)
    assert output.persist == []
    (ignored,) = [each for each in output.events if isinstance(each, MessageIgnored)]
    assert ignored.is_violation
    cluster.now_ms += 20
    cluster.tick(1)
    answer(cluster, records=GOOD)
    assert cluster[1].log_end == OffsetAndEpoch(6, 5)


def test_voters_take_effect_when_appended_and_revert_when_cut() -> None:
    """Goal: effective when appended. Method: append a set without this node, truncate it."""
    cluster = following()
    answer(cluster, records=replace(GOOD, voters=(VotersAt(5, (voter(2), voter(3))),)))
    assert [each.key.id for each in cluster[1].voters] == [2, 3]
    assert not cluster[1].is_voter
    output = answer(cluster, diverging=OffsetAndEpoch(5, 5))
    assert [each.key.id for each in cluster[1].voters] == [1, 2, 3]
    assert cluster[1].is_voter
    assert any(isinstance(each, VotersChanged) for each in output.progress)


@pytest.mark.parametrize(
    ("point", "cut"),
    [
        (OffsetAndEpoch(2, 1), 2),
        (OffsetAndEpoch(1, 1), 1),
        (OffsetAndEpoch(9, 1), 2),
        (OffsetAndEpoch(0, 0), 0),
        (OffsetAndEpoch(2, 2), 2),
    ],
)
def test_a_diverging_log_is_cut_to_the_common_prefix(point: OffsetAndEpoch, cut: int) -> None:
    """Goal: KIP-279's rule. Method: the leader's answers around epoch 1 of ``LOG``."""
    cluster = following()
    output = answer(cluster, diverging=point)
    assert output.persist == [Truncate(cut)]
    assert LogTruncated(cut) in output.progress
    assert LogDiverged(cut, OffsetAndEpoch(3, 2), point) in output.events
    assert last_fetch(cluster).fetch_offset == cut


def test_nothing_below_the_high_watermark_is_ever_cut() -> None:
    """Goal: 279.4. Method: a leader asks for it; the follower reports, backs off, asks again."""
    cluster = following(disk_with(LOG, high_watermark=2))
    output = answer(cluster, diverging=OffsetAndEpoch(1, 1))
    assert TruncationRefused(1, 2) in output.events
    assert output.persist == []
    assert cluster[1].log_end_offset == 3
    before = len(cluster.sent_by(1, FetchRequest))
    cluster.advance(50)
    assert len(cluster.sent_by(1, FetchRequest)) > before


@pytest.mark.parametrize(
    "point", [OffsetAndEpoch(3, 2), OffsetAndEpoch(5, 4), OffsetAndEpoch(-1, 1)]
)
def test_a_divergence_that_cuts_nothing_is_a_violation(point: OffsetAndEpoch) -> None:
    """Goal: no endless loop with a confused leader. Method: points at or above our end."""
    cluster = following()
    output = answer(cluster, diverging=point)
    (ignored,) = [each for each in output.events if isinstance(each, MessageIgnored)]
    assert ignored.is_violation
    assert output.immediate == [] or all(each.to != 2 for each in output.immediate)


def test_only_one_fetch_is_under_way_whatever_happens() -> None:
    """Goal: no offset is appended twice. Method: ticks, and an answer that comes twice."""
    cluster = following()
    request = last_fetch(cluster)
    cluster.tick(1)
    assert last_fetch(cluster) == request
    answer(cluster, records=GOOD)
    stale = FetchResponse(request.request_id, ErrorCode.NONE, 2, 5, records=GOOD)
    output = cluster.call(1, lambda node: node.receive(cluster.now_ms, 2, stale))
    assert cluster[1].log_end_offset == 6
    assert any(isinstance(each, MessageIgnored) for each in output.events)


def test_an_unreachable_leader_is_looked_for_elsewhere_and_asked_again_soon() -> None:
    """Goal: discovery. Method: fail the Fetch; the next goes to the other voter, then back."""
    cluster = following()
    cluster.queue.clear()
    request = last_fetch(cluster)
    cluster.call(
        1, lambda node: node.on_local_event(cluster.now_ms, RequestFailed(2, request.request_id))
    )
    ((_, to, _),) = cluster.queue
    assert to == 3
    cluster.queue.clear()
    cluster.now_ms += 20
    cluster.tick(1)
    assert [to for _, to, _ in cluster.queue] == [2]


def test_an_answer_that_names_a_newer_leader_is_followed() -> None:
    """Goal: fencing leads to the new leader. Method: FENCED with its name."""
    cluster = following()
    answer(cluster, error=ErrorCode.FENCED_LEADER_EPOCH, leader_id=3, epoch=8)
    assert (cluster[1].leader_id, cluster[1].epoch) == (3, 8)
    assert last_fetch(cluster).epoch == 8


@pytest.mark.parametrize("leader_id", [3, 1])
def test_an_answer_that_contradicts_the_leader_is_ignored(leader_id: int) -> None:
    """Goal: one leader per epoch, also against liars. Method: another name, our own name."""
    cluster = following()
    answer(cluster)
    output = answer(cluster, leader_id=leader_id)
    assert cluster[1].leader_id == 2
    assert any(isinstance(each, MessageIgnored) and each.is_violation for each in output.events)


def test_a_leader_that_has_answered_nothing_yet_may_have_been_the_wrong_one() -> None:
    """Goal: a wrong hint does not last for its epoch. Method: its first answer names another."""
    cluster = following()
    answer(cluster, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader_id=3)
    assert (cluster[1].leader_id, cluster[1].epoch) == (3, 5)


def test_a_silent_leader_makes_a_voter_campaign_and_an_observer_search() -> None:
    """Goal: the fetch timer is for voters. Method: silence for longer than it."""
    cluster = following()
    cluster.isolate(1)
    cluster.advance(2_300)
    assert cluster[1].role_name == "Prospective"
    cluster = CoreCluster(observers=(9,))
    cluster.elect(1)
    cluster.advance(1_000)
    cluster.isolate(9)
    cluster.advance(10_000)
    assert cluster[9].role_name == "Follower"
    cluster.heal()
    cluster.propose(1, 2)
    cluster.advance(cluster.config.request_timeout_ms + 500)
    assert cluster[9].log_end_offset == 5


def test_an_observer_finds_a_new_leader_from_any_bootstrap_server() -> None:
    """Goal: observers cycle over servers. Method: the followed leader dies."""
    cluster = CoreCluster(observers=(9,))
    cluster.elect(1)
    cluster.advance(500)
    cluster.crash(1)
    cluster.advance(12_000)
    (leader,) = cluster.leaders()
    assert cluster[9].leader_id == leader != NO_NODE
    assert cluster[9].high_watermark == cluster[leader].high_watermark


def test_three_replicas_converge_after_a_leader_with_an_uncommitted_tail_returns() -> None:
    """Goal: the clean case end to end. Method: an isolated leader appends, loses, returns."""
    cluster = CoreCluster()
    cluster.elect(1)
    cluster.isolate(1)
    cluster.propose(1, 3)
    cluster.advance(8_000)
    cluster.heal()
    cluster.advance(3_000)
    (leader,) = cluster.leaders()
    assert leader != 1
    assert cluster[1].log_end == cluster[leader].log_end
    assert cluster.members[1].disk.log == cluster.members[leader].disk.log


def with_log(records_: str) -> Disk:
    return disk_with(records_)


A_LOG = " ".join(["1:x"] * 21 + ["3:x"] * 10)


@pytest.mark.parametrize("length", [15, 20, 25])
def test_scenario_one_of_279_is_resolved_in_one_round(length: int) -> None:
    """Goal: 279.6 scenario 1 and 279.3. Method: A has epochs 1 and 3, B has 1 and 2."""
    follower = with_log(" ".join(["1:x"] * 11 + ["2:x"] * (length - 10)))
    cluster = CoreCluster(disks={1: with_log(A_LOG), 2: follower, 3: with_log(A_LOG)})
    cluster.elect(1)
    cuts = [each for each in cluster.members[2].effects if isinstance(each, Truncate)]
    assert cuts == [Truncate(11)]
    assert cluster.members[2].disk.log == cluster.members[1].disk.log


def test_scenario_three_of_279_takes_one_round_per_unknown_epoch() -> None:
    """Goal: 279.6 scenario 3. Method: three unclean fail-overs laid down directly."""
    leader = with_log("1:x 1:x 3:x 3:x 5:x 5:x")
    follower = with_log("1:x 1:x 2:x 2:x 4:x 4:x")
    cluster = CoreCluster(disks={1: leader, 2: follower, 3: with_log("1:x 1:x 3:x 3:x 5:x 5:x")})
    cluster.elect(1)
    cuts = [each.end_offset for each in cluster.members[2].effects if isinstance(each, Truncate)]
    assert cuts == [4, 2]
    assert cluster.members[2].disk.log == cluster.members[1].disk.log


def test_scenario_two_of_279_loses_nothing_after_a_restart_with_a_lagging_high_watermark() -> None:
    """Goal: 279.6 scenario 2. Method: a follower restarts knowing less than is committed."""
    cluster = CoreCluster()
    cluster.elect(1)
    cluster.propose(1, 2)
    cluster.settle()
    cluster.crash(2)
    cluster.members[2].disk = replace(cluster.members[2].disk, high_watermark=0)
    cluster.restart(2)
    cluster.settle()
    assert not [each for each in cluster.members[2].effects if isinstance(each, Truncate)]
    cluster.crash(1)
    cluster.advance(8_000)
    (leader,) = cluster.leaders()
    assert cluster[leader].high_watermark >= 6
