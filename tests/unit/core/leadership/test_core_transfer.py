"""Leadership transfer: its target, the requests that wait, and its ends."""

from __future__ import annotations

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.events import RoleChanged, TransferEnded, TransferStarted
from quorum.core.contract.local_events import RequestFailed, Resign, ShutDown, TransferLeadership
from quorum.core.contract.outcomes import TransferOutcome
from quorum.core.contract.output import Output, RequestSettled
from quorum.core.messages.epoch_messages import EndQuorumEpochRequest, EndQuorumEpochResponse
from quorum.core.messages.vote_messages import VoteRequest
from quorum.errors import ErrorCode, QuorumUsageError
from quorum.types import NO_NODE, NodeId
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import key

TIMEOUT_MS = QuorumConfig().transfer_timeout_ms


def led_by_1(voters: tuple[NodeId, ...] = (1, 2, 3)) -> CoreCluster:
    cluster = CoreCluster(voters)
    cluster.elect(1)
    cluster.propose(1, 3)
    cluster.settle()
    return cluster


def transfer(cluster: CoreCluster, target: NodeId = NO_NODE, *, token: int = 7) -> Output:
    event = TransferLeadership(token, target)
    return cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, event))


def settled(cluster: CoreCluster, node_id: NodeId = 1) -> list[RequestSettled]:
    progress = cluster.members[node_id].progress
    return [each for each in progress if isinstance(each, RequestSettled)]


def roles(cluster: CoreCluster, node_id: NodeId, since: int = 0) -> list[str]:
    events = cluster.members[node_id].events[since:]
    return [each.role for each in events if isinstance(each, RoleChanged)]


def test_the_target_leads_at_once_without_another_candidate() -> None:
    """Goal: Raft 3.10. Method: transfer leadership to 3 on an idle cluster; no time may pass."""
    cluster = led_by_1()
    began_ms = cluster.now_ms
    marks = {each: len(cluster.members[each].events) for each in (1, 2, 3)}
    transfer(cluster, 3)
    cluster.settle()
    assert cluster.leaders() == [3]
    assert cluster.now_ms == began_ms
    assert cluster[3].epoch == 2
    assert roles(cluster, 3, marks[3]) == ["Prospective", "Candidate", "Leader"]
    assert roles(cluster, 2, marks[2]) == ["Unattached", "Follower"]
    assert roles(cluster, 1, marks[1]) == ["Unattached", "Follower"]
    assert not [each for each in cluster.sent_by(3, VoteRequest) if each.pre_vote]
    assert [each.error for each in settled(cluster)] == [ErrorCode.NONE]


def test_writes_wait_until_the_target_has_everything_and_it_is_committed() -> None:
    """Goal: nothing open is left behind. Method: hold the acknowledgements back one by one."""
    cluster = led_by_1()
    cluster.slow_disks = {1, 3}
    cluster.propose(1, 2)
    cluster.cut = {(2, 1)}
    transfer(cluster, 3)
    cluster.settle()
    assert not cluster[1].can_write
    assert cluster[1].is_transferring
    with pytest.raises(QuorumUsageError):
        cluster.propose(1)
    assert not cluster.sent_by(1, EndQuorumEpochRequest)
    cluster.slow_disks.remove(3)
    cluster.persist(3)
    cluster.deliver(to=1)
    assert not cluster.sent_by(1, EndQuorumEpochRequest), "not committed by a majority yet"
    cluster.slow_disks.clear()
    cluster.persist(1)
    cluster.settle()
    assert cluster.leaders() == [3]
    assert cluster[3].high_watermark == cluster[3].log_end_offset


def test_a_target_that_stays_behind_costs_only_the_bound() -> None:
    """Goal: bounded. Method: the target's fetches are lost; the leader writes again in time."""
    cluster = led_by_1()
    cluster.cut = {(3, 1)}
    cluster.propose(1)
    cluster.settle()
    transfer(cluster, 3)
    cluster.advance(TIMEOUT_MS - 1)
    assert not cluster[1].can_write
    cluster.advance(2)
    assert cluster[1].can_write
    assert cluster[1].epoch == 1
    (outcome,) = settled(cluster)
    assert outcome.error == ErrorCode.REQUEST_TIMED_OUT
    assert "did not reach the log end" in outcome.message
    cluster.propose(1)


def test_a_target_that_dies_during_a_transfer_leaves_the_leader_in_place() -> None:
    """Goal: no election without a candidate. Method: the request to campaign gets no response."""
    cluster = led_by_1()
    transfer(cluster, 3)
    cluster.crash(3)
    cluster.settle()
    cluster.advance(TIMEOUT_MS + 1)
    assert cluster.leaders() == [1]
    assert cluster[1].can_write
    assert cluster[1].epoch == 1
    assert "was not elected" in settled(cluster)[0].message


def test_a_connection_that_fails_ends_the_transfer_at_once() -> None:
    """Goal: no needless wait. Method: the runtime reports the request as failed."""
    cluster = led_by_1()
    transfer(cluster, 3)
    (request,) = cluster.sent_by(1, EndQuorumEpochRequest)
    cluster.call(
        1, lambda node: node.on_local_event(cluster.now_ms, RequestFailed(3, request.request_id))
    )
    assert cluster[1].can_write
    assert settled(cluster)[0].error == ErrorCode.BROKER_NOT_AVAILABLE


def test_a_target_that_may_not_campaign_refuses() -> None:
    """Goal: a refusal ends it at once. Method: the target is shutting down."""
    cluster = led_by_1()
    cluster.call(3, lambda node: node.on_local_event(cluster.now_ms, ShutDown()))
    transfer(cluster, 3)
    cluster.settle()
    assert cluster.leaders() == [1]
    assert cluster[1].can_write
    assert settled(cluster)[0].error == ErrorCode.INELIGIBLE_REPLICA


@pytest.mark.parametrize(
    ("target", "error", "words"),
    [
        (1, ErrorCode.NONE, "leads already"),
        (9, ErrorCode.VOTER_NOT_FOUND, "not a voter"),
        (3, ErrorCode.INELIGIBLE_REPLICA, "has been silent for"),
    ],
)
def test_targets_that_cannot_be(target: NodeId, error: ErrorCode, words: str) -> None:
    """Goal: refused before anything waits. Method: itself, a stranger, a silent voter."""
    cluster = led_by_1()
    cluster.crash(3)
    cluster.advance(cluster.config.fetch_timeout_ms + 1_000)
    transfer(cluster, target)
    (outcome,) = settled(cluster)
    assert outcome.error == error
    assert words in outcome.message
    assert cluster[1].can_write


def test_without_a_name_the_voter_that_is_furthest_is_chosen() -> None:
    """Goal: a sensible default. Method: 2 is silent for long, 3 is level."""
    cluster = led_by_1()
    cluster.crash(2)
    cluster.advance(cluster.config.fetch_timeout_ms + 1_000)
    transfer(cluster)
    cluster.settle()
    assert cluster.leaders() == [3]


def test_only_a_leader_transfers_and_only_once_at_a_time() -> None:
    """Goal: every request has an answer. Method: ask a follower, and ask twice."""
    cluster = led_by_1()
    event = TransferLeadership(5, 3)
    cluster.call(2, lambda node: node.on_local_event(cluster.now_ms, event))
    assert [each.error for each in settled(cluster, 2)] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    transfer(cluster, 3, token=6)
    transfer(cluster, 2, token=7)
    assert [(each.token, each.error) for each in settled(cluster)] == [
        (7, ErrorCode.REQUEST_TIMED_OUT)
    ]
    cluster.settle()
    assert settled(cluster)[-1].token == 6
    assert settled(cluster)[-1].error == ErrorCode.NONE


def test_a_leader_that_resigns_meanwhile_has_not_transferred() -> None:
    """Goal: success means the target stood. Method: an operator makes it resign instead."""
    cluster = led_by_1()
    cluster.cut = {(1, 3)}
    transfer(cluster, 3)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, Resign()))
    assert settled(cluster)[0].error == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_leader_that_shuts_down_resigns_without_a_successor() -> None:
    """Goal: shutdown always ends. Method: the successor falls silent after it was chosen."""
    cluster = led_by_1()
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, ShutDown()))
    (request,) = cluster.sent_by(1, EndQuorumEpochRequest)
    assert request.campaign_now
    cluster.crash(2)
    cluster.advance(TIMEOUT_MS + 1)
    cluster.settle()
    assert "Resigned" in roles(cluster, 1)
    cluster.advance(1_000)
    assert cluster.leaders() == [3]


def test_a_lone_leader_that_shuts_down_resigns_at_once() -> None:
    """Goal: no wait without another voter. Method: one voter."""
    cluster = led_by_1((1,))
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, ShutDown()))
    assert cluster[1].role_name == "Resigned"


@pytest.mark.parametrize(
    ("successors", "error"),
    [((), ErrorCode.INVALID_VOTER_KEY), ((key(3), key(2)), ErrorCode.INVALID_VOTER_KEY)],
)
def test_only_the_first_named_successor_skips_the_pre_vote(
    successors: tuple[object, ...], error: ErrorCode
) -> None:
    """Goal: a misdirected request deposes no leader. Method: ask 2 with other ids."""
    cluster = led_by_1()
    request = EndQuorumEpochRequest(
        99,
        CLUSTER,
        key(1),
        1,
        successors,
        campaign_now=True,  # type: ignore[arg-type]
    )
    output = cluster.call(2, lambda node: node.receive(cluster.now_ms, 1, request))
    (answer,) = [each.message for each in output.immediate]
    assert isinstance(answer, EndQuorumEpochResponse)
    assert answer.error == error
    assert cluster[2].role_name == "Follower"


def test_only_the_targets_answer_ends_a_transfer() -> None:
    """Method: another voter refuses under the number of the request to the target."""
    cluster = led_by_1()
    cluster.cut = {(1, 3)}
    transfer(cluster, 3)
    (request,) = cluster.sent_by(1, EndQuorumEpochRequest)
    refusal = EndQuorumEpochResponse(request.request_id, ErrorCode.INELIGIBLE_REPLICA, 1, 1)
    cluster.call(1, lambda node: node.receive(cluster.now_ms, 2, refusal))
    assert cluster[1].is_transferring
    assert settled(cluster) == []
    cluster.call(1, lambda node: node.receive(cluster.now_ms, 3, refusal))
    assert not cluster[1].is_transferring
    assert [each.error for each in settled(cluster)] == [ErrorCode.INELIGIBLE_REPLICA]


def test_the_outcome_of_a_transfer_is_reported() -> None:
    """Goal: an operator can follow it in the log. Method: the two events."""
    cluster = led_by_1()
    transfer(cluster, 3)
    cluster.settle()
    events = cluster.members[1].events
    (started,) = [each for each in events if isinstance(each, TransferStarted)]
    (ended,) = [each for each in events if isinstance(each, TransferEnded)]
    assert (started.target, started.epoch) == (key(3), 1)
    assert (ended.target, ended.outcome) == (key(3), TransferOutcome.SUPERSEDED)
