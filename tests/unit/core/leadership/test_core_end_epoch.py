"""EndQuorumEpoch on both sides: retries, the senders that may end an epoch, and refusals."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from quorum.core.contract.local_events import ConnectionRefused, RequestFailed, Resign, ShutDown
from quorum.core.messages.epoch_messages import EndQuorumEpochRequest, EndQuorumEpochResponse
from quorum.core.messages.vote_messages import VoteRequest
from quorum.core.state.peer_requests import Purpose
from quorum.core.state.peers import backoff_ms
from quorum.core.state.roles import Prospective
from quorum.core.state.timers import Timer
from quorum.errors import ErrorCode
from quorum.types import ReplicaKey
from simulation.harness.arrival import arrived
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import key

RETRIED = Timer.RETRY_BACKOFF, Purpose.END_EPOCH
TIMED_OUT = Timer.REQUEST_TIMEOUT, Purpose.END_EPOCH

# The side that resigns.


def resigned(*, stays: bool = True) -> CoreCluster:
    """Node 1 has led and resigned; no voter receives it. ``stays``: in that epoch."""
    cluster = CoreCluster()
    cluster.elect(1)
    cluster.advance(600)
    cluster.crash(2)
    cluster.crash(3)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, Resign()))
    if stays:
        cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, ShutDown()))
    assert cluster[1].role_name == "Resigned"
    return cluster


def end_requests(cluster: CoreCluster, voter_id: int) -> list[EndQuorumEpochRequest]:
    return [
        message
        for by, to, message in cluster.sent
        if (by, to) == (1, voter_id) and isinstance(message, EndQuorumEpochRequest)
    ]


def answer(cluster: CoreCluster, voter_id: int, **fields: Any) -> None:
    values = {"error": ErrorCode.NONE, "leader_id": 1, "epoch": 1, **fields}
    response = EndQuorumEpochResponse(end_requests(cluster, voter_id)[-1].request_id, **values)
    cluster.call(1, lambda node: node.receive(cluster.now_ms, voter_id, response))


def pass_time(cluster: CoreCluster, ms: int) -> None:
    cluster.now_ms += ms
    cluster.tick(1)


def test_end_epoch_is_repeated_with_growing_pauses_until_a_voter_answers() -> None:
    cluster = resigned()
    times = [cluster.now_ms]
    for _ in range(5 * 4100 // 10):
        before = len(end_requests(cluster, 2))
        cluster.advance(10)
        times += [cluster.now_ms] * (len(end_requests(cluster, 2)) - before)
    timeout_ms = cluster.config.request_timeout_ms
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert pauses[1:4] == [timeout_ms + backoff_ms(cluster.config, each) for each in (2, 3, 4)]
    fired = cluster[1].timers_fired
    again = len(end_requests(cluster, 2)) + len(end_requests(cluster, 3)) - 2
    assert (fired[RETRIED], fired[TIMED_OUT]) == (again, again)


def test_end_epoch_is_not_repeated_after_agreement() -> None:
    cluster = resigned()
    answer(cluster, 2)
    cluster.advance(10_000)
    assert len(end_requests(cluster, 2)) == 1
    assert len(end_requests(cluster, 3)) > 2


@pytest.mark.parametrize(
    "fields",
    [{"error": ErrorCode.UNKNOWN_SERVER_ERROR}, {"epoch": 0}, {"leader_id": 3}],
    ids=["an error", "a stale epoch", "another leader"],
)
def test_end_epoch_is_repeated_after_disagreement(fields: dict[str, Any]) -> None:
    cluster = resigned()
    answer(cluster, 2, **fields)
    pass_time(cluster, cluster.config.retry_backoff_ms - 1)
    assert len(end_requests(cluster, 2)) == 1
    pass_time(cluster, 1)
    assert len(end_requests(cluster, 2)) == 2


def test_a_request_that_fails_is_repeated_and_no_other() -> None:
    cluster = resigned()
    first = end_requests(cluster, 2)[0].request_id
    for request_id in (first + 1000, first):
        failure = RequestFailed(2, request_id)
        cluster.call(1, lambda node, event=failure: node.on_local_event(cluster.now_ms, event))
        pass_time(cluster, cluster.config.retry_backoff_ms)
        assert len(end_requests(cluster, 2)) == (2 if request_id == first else 1)
    assert len(end_requests(cluster, 3)) == 1


def test_an_answer_counts_once() -> None:
    """The second one comes while nothing is asked: the EndQuorumEpoch waits for its pause."""
    cluster = resigned()
    answer(cluster, 2, error=ErrorCode.UNKNOWN_SERVER_ERROR)
    answer(cluster, 2)
    pass_time(cluster, cluster.config.retry_backoff_ms)
    assert len(end_requests(cluster, 2)) == 2


def test_an_answer_to_nothing_ends_no_end_epoch() -> None:
    """0 is no request id; it means no request while the next one waits for its pause."""
    cluster = resigned()
    answer(cluster, 2, error=ErrorCode.UNKNOWN_SERVER_ERROR)
    response = EndQuorumEpochResponse(0, ErrorCode.NONE, 1, 1)
    cluster.call(1, lambda node: node.receive(cluster.now_ms, 2, response))
    pass_time(cluster, cluster.config.retry_backoff_ms)
    assert len(end_requests(cluster, 2)) == 2


def test_an_answer_of_a_later_epoch_ends_the_end_epoch() -> None:
    cluster = resigned()
    answer(cluster, 2, leader_id=2, epoch=2)
    assert (cluster[1].role_name, cluster[1].leader_id) == ("Follower", 2)
    cluster.advance(1_000)
    assert len(end_requests(cluster, 2)) == len(end_requests(cluster, 3)) == 1


def test_the_epoch_is_left_when_the_election_timer_expires() -> None:
    cluster = resigned(stays=False)
    cluster.advance(2 * cluster.config.election_timeout_ms)
    assert cluster[1].epoch > 1
    assert cluster[1].timers_fired[Timer.RESIGNATION] == 1


# The receiving side.


def led() -> CoreCluster:
    cluster = CoreCluster()
    cluster.elect(1)
    cluster.advance(600)
    return cluster


def end(cluster: CoreCluster, *, is_proven: bool = True, **fields: Any) -> ErrorCode:
    """Return node 2's response to an EndQuorumEpoch with leader 1 as its sender."""
    values: dict[str, Any] = {
        "cluster_id": CLUSTER,
        "leader": key(1),
        "epoch": 1,
        "preferred_successors": (key(2), key(3)),
        **fields,
    }
    request = arrived(EndQuorumEpochRequest(9, **values), is_proven=is_proven)
    cluster.call(2, lambda node: node.receive(cluster.now_ms, 1, request))
    return cluster.sent_by(2, EndQuorumEpochResponse)[-1].error


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"leader": ReplicaKey(77, b"x" * 16)}, ErrorCode.INVALID_VOTER_KEY),
    ],
)
def test_the_first_thing_that_is_wrong_is_named(fields: dict[str, Any], error: ErrorCode) -> None:
    """Each request names another successor, too, and is of an unproven author."""
    others = {"campaign_now": True, "preferred_successors": (key(3),), "is_proven": False}
    assert end(led(), **fields, **others) is error


@pytest.mark.parametrize("campaign_now", [False, True])
@pytest.mark.parametrize("is_proven", [True, False])
def test_any_sender_may_report_the_resignation_of_a_past_leader(
    campaign_now: bool, is_proven: bool
) -> None:
    """But only the leader itself makes another voter campaign without a pre-vote (ADR 52)."""
    cluster = led()
    cluster.crash(1)
    cluster.call(2, lambda node: node.on_local_event(cluster.now_ms, ConnectionRefused(1)))
    refused = campaign_now and not is_proven
    expected = ErrorCode.INELIGIBLE_REPLICA if refused else ErrorCode.NONE
    assert end(cluster, campaign_now=campaign_now, is_proven=is_proven) is expected
    assert (cluster[2].epoch > 1) == (campaign_now and is_proven)


@pytest.mark.parametrize("is_proven", [True, False])
@pytest.mark.parametrize("successors", [(2, 3), (3, 2), (3,)])
def test_a_voter_that_asks_for_pre_votes_already_asks_again_after_its_pause(
    successors: tuple[int, ...], is_proven: bool
) -> None:
    """It campaigns soon, as after the known end of its leader, not when its timer expires."""
    cluster = led()
    cluster.isolate(2)
    cluster.advance(3_000)
    role = cluster[2]._core.role
    assert isinstance(role, Prospective)
    role.retry_ms = cluster.now_ms + 400
    before_ms = role.retry_ms
    keys = tuple(map(key, successors))
    asked = len(cluster.sent_by(2, VoteRequest))
    assert end(cluster, preferred_successors=keys, is_proven=is_proven) is ErrorCode.NONE
    assert role.fail_fast
    longest_ms = cluster.config.election_backoff_max_ms
    wait_ms = {(2, 3): 0, (3, 2): longest_ms >> 1, (3,): longest_ms}[successors]
    if wait_ms:
        assert role.retry_ms == min(before_ms, cluster.now_ms + wait_ms)
    assert len(cluster.sent_by(2, VoteRequest)) == asked + (0 if wait_ms else 2)
