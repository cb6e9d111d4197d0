"""Taking up a leadership term, announcing it, losing contact, and transferring it."""

from __future__ import annotations

import pytest

from quorum.control_records import KRaftVersion, LeaderChange, Voters
from quorum.core.contract.local_events import RequestFailed, Resign, ShutDown
from quorum.core.contract.output import Append, LeadershipChanged
from quorum.core.leadership.resignation import successor_backoff_ms
from quorum.core.messages.epoch_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
)
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.vote_messages import VoteRequest
from quorum.errors import ErrorCode
from quorum.types import EpochStart
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import disk_with, key


def won_but_not_durable() -> CoreCluster:
    """Node 1 has its votes, but its disk has not yet taken "leader = self"."""
    cluster = CoreCluster()
    cluster.now_ms = cluster.members[1].deadline_ms or 0
    cluster.tick(1)
    cluster.deliver()
    cluster.deliver()
    assert cluster[1].role_name == "Candidate"
    cluster.slow_disks.add(1)
    cluster.deliver(to=2)
    cluster.deliver(to=3)
    cluster.deliver(to=1)
    assert cluster[1].role_name == "Leader"
    return cluster


def test_leadership_takes_effect_only_when_it_is_durable() -> None:
    """Goal: ADR 7. Method: win on a slow disk, look from outside, then persist."""
    cluster = won_but_not_durable()
    cluster.sent.clear()
    fetch = FetchRequest(5, CLUSTER, key(2), 1, 0, 0, max_wait_ms=500)
    cluster.call(1, lambda node: node.receive(cluster.now_ms, 2, fetch))
    assert not cluster[1].is_leader
    assert cluster[1].leader_id == -1
    assert cluster[1].log_end_offset == 0
    assert cluster.sent_by(1, BeginQuorumEpochRequest) == []
    assert cluster.sent_by(1, FetchResponse) == []
    cluster.persist(1)
    assert cluster[1].is_leader
    assert cluster.members[1].disk.election.leader_id == 1
    assert len(cluster.sent_by(1, BeginQuorumEpochRequest)) == 2
    (refusal,) = cluster.sent_by(1, FetchResponse)
    assert refusal.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refusal.leader_id == -1


def test_a_leader_that_crashes_before_it_is_durable_was_never_one() -> None:
    """Goal: nothing of the leadership term may have been seen. Method: crash in the gap and
    restart.
    """
    cluster = won_but_not_durable()
    cluster.crash(1)
    cluster.restart(1)
    assert cluster[1].role_name == "Unattached"
    assert cluster.members[1].disk.election.voted == key(1)
    assert cluster.members[1].disk.election.leader_id == -1


def test_the_epoch_opens_with_the_voters_that_no_log_has_yet() -> None:
    """Goal: bootstrap voters enter the log. Method: first and second leadership term of a fresh
    cluster.
    """
    cluster = CoreCluster()
    cluster.elect(1)
    (opening,) = [each for each in cluster.members[1].effects if isinstance(each, Append)]
    change, version, voters = opening.controls
    assert change == LeaderChange(1, (1, 2, 3), change.granting)  # type: ignore[union-attr]
    assert set(change.granting) >= {1}  # type: ignore[union-attr]
    assert version == KRaftVersion(1)
    assert voters == Voters(cluster.voters)
    assert (opening.base_offset, opening.end_offset) == (0, 3)
    assert opening.epochs == (EpochStart(1, 0),)
    cluster.crash(1)
    cluster.advance(8_000)
    (leader,) = cluster.leaders()
    second = [each for each in cluster.members[leader].effects if isinstance(each, Append)][-1]
    assert [type(each) for each in second.controls] == [LeaderChange]
    assert second.end_offset - second.base_offset == 1


def test_a_leader_change_is_reported_once_and_writes_begin_with_the_first_commit() -> None:
    """Goal: the listener's contract. Method: the progress of a whole election."""
    cluster = CoreCluster()
    cluster.elect(1)
    changes = [each for each in cluster.members[1].progress if isinstance(each, LeadershipChanged)]
    assert [(each.is_leader, each.can_write) for each in changes[-2:]] == [
        (True, False),
        (True, True),
    ]
    followers = cluster.members[2].progress
    changes = [each for each in followers if isinstance(each, LeadershipChanged)]
    assert changes[-1] == LeadershipChanged(1, 1, is_leader=False, can_write=False)


def test_a_silent_voter_is_reminded_and_a_fetching_one_is_not() -> None:
    """Goal: BeginQuorumEpoch on time. Method: cut one voter's answers and count requests."""
    cluster = CoreCluster()
    cluster.elect(1)
    cluster.crash(3)
    before = len(cluster.sent)
    cluster.advance(5_000)
    reminded = [
        to
        for by, to, message in cluster.sent[before:]
        if by == 1 and isinstance(message, BeginQuorumEpochRequest)
    ]
    assert set(reminded) == {3}
    assert 4 <= len(reminded) <= 6


def test_a_failed_announcement_is_repeated_soon() -> None:
    """Goal: a new leadership term is not held up by one lost request. Method: fail it, wait the
    pause.
    """
    cluster = CoreCluster()
    cluster.cut = {(1, 3)}
    cluster.elect(1)
    first = cluster.sent_by(1, BeginQuorumEpochRequest)
    (request_id,) = [each.request_id for each in first if each.voter == key(3)]
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, RequestFailed(3, request_id)))
    cluster.cut.clear()
    cluster.advance(25)
    assert cluster[3].leader_id == 1


def test_a_leader_without_a_majority_resigns_after_one_and_a_half_fetch_timeouts() -> None:
    """Goal: check quorum. Method: isolate the leader and watch the clock."""
    cluster = CoreCluster()
    cluster.elect(1)
    cluster.advance(1_000)
    cluster.isolate(1)
    cluster.advance(2_400)
    assert cluster[1].is_leader
    cluster.advance(700)
    assert not cluster[1].is_leader


def test_one_observer_does_not_keep_a_leader_from_resigning() -> None:
    """Goal: only voters count for check quorum. Method: crash both other voters."""
    cluster = CoreCluster(observers=(9,))
    cluster.elect(1)
    cluster.advance(1_000)
    cluster.crash(2)
    cluster.crash(3)
    cluster.advance(3_100)
    assert not cluster[1].is_leader


def test_a_shut_down_leader_transfers_to_the_best_successor_at_once() -> None:
    """Goal: graceful succession. Method: shut down; the voter with the longer log follows."""
    cluster = CoreCluster()
    cluster.elect(1)
    cluster.cut = {(1, 3), (3, 1)}
    cluster.propose(1, 4)
    cluster.settle()
    cluster.cut.clear()
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, ShutDown()))
    (request,) = cluster.sent_by(1, EndQuorumEpochRequest)
    assert request.preferred_successors == (key(2), key(3))
    assert request.campaign_now
    assert cluster[1].is_leader  # until the successor's newer epoch
    began_ms = cluster.now_ms
    cluster.settle()
    assert cluster.leaders() == [2]
    assert cluster.now_ms == began_ms
    assert cluster[1].role_name == "Follower"


def test_a_resigned_leader_leaves_its_epoch_by_raising_it() -> None:
    """Goal: no response names it leader again. Method: resign while no voter is reachable."""
    cluster = CoreCluster()
    cluster.elect(1)
    cluster.isolate(1)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, Resign()))
    assert cluster[1].role_name == "Resigned"
    assert cluster[1].leader_id == 1
    cluster.advance(2_100)
    assert cluster[1].epoch == 2
    assert cluster[1].leader_id == -1


@pytest.mark.parametrize(
    ("position", "count", "expected"),
    [(0, 3, 0), (1, 3, 250), (2, 3, 500), (1, 2, 500), (9, 3, 1000)],
)
def test_successors_wait_longer_the_less_they_are_preferred(
    position: int, count: int, expected: int
) -> None:
    """Goal: the back-off by position. Method: the values of the reference for B = 1000."""
    successors = [key(10 + index) for index in range(count)]
    assert successor_backoff_ms(successors, key(10 + position), 1000) == expected


def test_a_second_leader_of_an_epoch_is_refused_and_reported() -> None:
    """Goal: a peer's contradiction changes nothing. Method: announce another leader."""
    cluster = CoreCluster()
    cluster.elect(1)
    request = BeginQuorumEpochRequest(9, CLUSTER, key(2), key(3), 1)
    output = cluster.call(2, lambda node: node.receive(cluster.now_ms, 3, request))
    (answer,) = [each.message for each in output.immediate]
    assert isinstance(answer, BeginQuorumEpochResponse)
    assert answer.error == ErrorCode.INVALID_REQUEST
    assert cluster[2].leader_id == 1


def test_a_promise_to_follow_waits_for_the_epoch_to_be_durable() -> None:
    """Goal: no answer before the epoch is on disk. Method: a slow disk under the receiver."""
    cluster = CoreCluster(disks={2: disk_with("1:a")})
    cluster.slow_disks.add(2)
    request = BeginQuorumEpochRequest(9, CLUSTER, key(2), key(3), 7)
    output = cluster.call(2, lambda node: node.receive(cluster.now_ms, 3, request))
    assert output.immediate == []
    kinds = [type(each.message) for each in output.after_persist]
    assert kinds == [BeginQuorumEpochResponse, FetchRequest]


def test_held_fetches_fail_when_leadership_is_lost() -> None:
    """Goal: no caller waits for a deposed leader. Method: a newer epoch reaches it.

    No majority has fetched for a fetch timeout by then.
    """
    cluster = CoreCluster()
    cluster.elect(1)
    before = len(cluster.sent)
    cluster.now_ms += 2_500
    request = VoteRequest(9, CLUSTER, key(3), key(1), 5, cluster[1].log_end, pre_vote=False)
    cluster.call(1, lambda node: node.receive(cluster.now_ms, 3, request))
    failed = [m for by, _, m in cluster.sent[before:] if by == 1 and isinstance(m, FetchResponse)]
    assert [each.error for each in failed] == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
    assert {each.epoch for each in failed} == {5}
