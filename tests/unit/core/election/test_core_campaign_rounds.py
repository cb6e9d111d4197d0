"""Rounds of a campaign: the receivers of requests, their rate, and the node's timers.

Method: node 1 of five voters; the test invents the responses of its peers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorum.config import QuorumConfig
from quorum.control_records import LeaderChange
from quorum.core.contract.events import CampaignRefused, RoleChanged
from quorum.core.contract.local_events import (
    ConnectionRefused,
    RemoveVoter,
    RequestFailed,
    ShutDown,
)
from quorum.core.contract.output import Append
from quorum.core.messages.epoch_messages import EndQuorumEpochRequest
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.core.state.timers import Timer
from quorum.errors import ErrorCode
from quorum.types import OffsetAndEpoch
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import disk_with, key

LOG = "1:a 1:b 2:c"
QUICK = QuorumConfig(request_timeout_ms=100, retry_backoff_ms=10)
"""A request times out long before a round is over."""


def voters(config: QuorumConfig = QUICK, count: int = 5) -> CoreCluster:
    ids = range(1, count + 1)
    return CoreCluster(ids, config=config, disks={each: disk_with(LOG) for each in ids})


def wake(cluster: CoreCluster) -> int:
    """Let node 1 act at its own deadline; return how long it slept."""
    deadline_ms = cluster.members[1].deadline_ms
    assert deadline_ms is not None
    slept_ms = deadline_ms - cluster.now_ms
    cluster.now_ms = deadline_ms
    cluster.tick(1)
    return slept_ms


def wake_until(cluster: CoreCluster, role: str) -> None:
    for _ in range(20):
        if cluster[1].role_name == role:
            return
        wake(cluster)
    raise AssertionError(cluster[1].role_name)


def requests(cluster: CoreCluster, to: int) -> list[VoteRequest]:
    return [
        each
        for by, peer, each in cluster.sent
        if (by, peer) == (1, to) and type(each) is VoteRequest
    ]


def answer(cluster: CoreCluster, by: int, *, granted: bool, **more: Any) -> None:
    asked = requests(cluster, by)[-1]
    values = {"error": ErrorCode.NONE, "leader_id": -1, "epoch": asked.epoch, **more}
    response = VoteResponse(asked.request_id, granted=granted, **values)
    cluster.call(1, lambda node: node.receive(cluster.now_ms, by, response))


def candidate(cluster: CoreCluster) -> CoreCluster:
    wake_until(cluster, "Prospective")
    for each in (2, 3):
        answer(cluster, each, granted=True)
    assert cluster[1].role_name == "Candidate"
    return cluster


def led_by_five(config: QuorumConfig = QUICK) -> CoreCluster:
    """Node 1 follows node 5, whose process has ended; node 1 already requests pre-votes."""
    cluster = CoreCluster(range(1, 6), config=config, disks={1: disk_with(LOG, leader=5)})
    assert cluster[1].leader_id == 5
    refused = ConnectionRefused(5)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, refused))
    wake_until(cluster, "Prospective")
    return cluster


def test_a_voter_that_has_answered_is_not_asked_again_in_the_round() -> None:
    cluster = voters()
    wake_until(cluster, "Prospective")
    answer(cluster, 2, granted=True)
    answer(cluster, 3, granted=False)
    for _ in range(4):
        wake(cluster)
    assert [len(requests(cluster, each)) for each in (2, 3, 4, 5)] == [1, 1, 2, 2]


def test_a_candidate_that_lost_sends_no_more_requests_and_waits_for_its_timer() -> None:
    """Three of five reject it; the fourth has not answered."""
    cluster = candidate(voters())
    began_ms = cluster.now_ms
    before = len(requests(cluster, 5))
    for each in (2, 3, 4):
        answer(cluster, each, granted=False)
    wake(cluster)
    assert cluster.now_ms - began_ms >= cluster.config.election_timeout_ms
    assert len(requests(cluster, 5)) == before + 1, "of the next round"
    assert requests(cluster, 5)[-1].pre_vote


def test_a_request_that_fails_after_the_vote_is_lost_is_not_repeated() -> None:
    cluster = candidate(voters())
    for each in (2, 3, 4):
        answer(cluster, each, granted=False)
    before = len(requests(cluster, 5))
    failure = RequestFailed(5, requests(cluster, 5)[-1].request_id)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, failure))
    cluster.now_ms += cluster.config.retry_backoff_ms
    cluster.tick(1)
    assert len(requests(cluster, 5)) == before


def test_the_pause_before_rejecting_voters_are_asked_again_begins_with_the_first() -> None:
    """More rejections do not prolong it (ADR 8)."""
    cluster = led_by_five()
    answer(cluster, 2, granted=False)
    deadline_ms = cluster.members[1].deadline_ms
    assert deadline_ms is not None
    before = len(requests(cluster, 2))
    cluster.now_ms = deadline_ms - 1
    answer(cluster, 3, granted=False)
    assert cluster.members[1].deadline_ms == deadline_ms
    counted = cluster[1].timers_fired[Timer.LOST_LEADER_RETRY]
    wake(cluster)
    assert len(requests(cluster, 2)) == before + 1
    assert cluster[1].timers_fired[Timer.LOST_LEADER_RETRY] == counted + 1


def test_a_candidate_of_a_lost_leader_starts_over_after_the_pause() -> None:
    """It counts as a retry, not as the end of the vote round."""
    cluster = led_by_five()
    for each in (2, 3):
        answer(cluster, each, granted=True)
    answer(cluster, 2, granted=False)
    wake_until(cluster, "Prospective")
    fired = cluster[1].timers_fired
    assert (fired[Timer.LOST_LEADER_RETRY], fired[Timer.VOTE_ROUND]) == (1, 0)


def test_a_candidate_that_may_not_start_over_waits_for_its_election_timer() -> None:
    """It does not try again and again meanwhile."""
    cluster = led_by_five()
    for each in (2, 3):
        answer(cluster, each, granted=True)
    answer(cluster, 2, granted=False)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, ShutDown()))
    cluster.members[1].events.clear()
    for each in (3, 4, 5):
        answer(cluster, each, granted=False)
    wake(cluster)
    refused = [each for each in cluster.members[1].events if isinstance(each, CampaignRefused)]
    assert len(refused) == 1
    slept_ms = wake(cluster)
    assert slept_ms >= cluster.config.election_timeout_ms


def test_a_voter_that_let_another_go_first_goes_on_when_its_time_is_over() -> None:
    """ADR 37. The pause is counted where it ends."""
    cluster = voters(count=3)
    wake_until(cluster, "Prospective")
    ahead = VoteRequest(7, CLUSTER, key(2), key(1), 2, OffsetAndEpoch(9, 2), pre_vote=True)
    cluster.call(1, lambda node: node.receive(cluster.now_ms, 2, ahead))
    answer(cluster, 3, granted=True)
    assert cluster[1].role_name == "Prospective"
    began_ms = cluster.now_ms
    wake_until(cluster, "Candidate")
    assert cluster.now_ms - began_ms == cluster.config.election_timeout_ms // 4
    assert cluster[1].timers_fired[Timer.YIELD] == 1


def test_a_voter_without_a_back_off_request_counts_no_pause() -> None:
    cluster = candidate(voters())
    assert cluster[1].timers_fired[Timer.YIELD] == 0


@pytest.mark.parametrize("is_reached", [True, False])
def test_only_a_log_below_its_vote_floor_keeps_a_voter_from_campaigning(is_reached: bool) -> None:
    """ADR 7. The floor is lifted by a leader only, so a log may have reached it without one."""
    floor = OffsetAndEpoch(3 if is_reached else 4, 2)
    cluster = CoreCluster(disks={1: disk_with(LOG, vote_floor=floor)})
    wake(cluster)
    assert cluster[1].role_name == ("Prospective" if is_reached else "Unattached")


def test_the_named_successor_that_asks_for_pre_votes_becomes_a_candidate_at_once() -> None:
    """Its leader asks it to take over: there is no live leader that a pre-vote would protect."""
    cluster = led_by_five()
    asked = EndQuorumEpochRequest(9, CLUSTER, key(5), 2, (key(1),), campaign_now=True)
    cluster.call(1, lambda node: node.receive(cluster.now_ms, 5, asked))
    changes = [each for each in cluster.members[1].events if isinstance(each, RoleChanged)]
    assert (changes[-1].before, changes[-1].role) == ("Prospective", "Candidate")


def test_a_candidate_of_a_lost_leader_that_has_lost_is_woken_for_its_next_round_alone() -> None:
    """The missing response cannot help any more, so the candidate does not wait for it."""
    cluster = led_by_five(replace(QUICK, lost_leader_retry_ms=10_000))
    for each in (2, 3):
        answer(cluster, each, granted=True)
    for each in (2, 3, 4):
        answer(cluster, each, granted=False)
    began_ms = cluster.now_ms
    wake(cluster)
    assert cluster[1].role_name == "Prospective"
    assert cluster.now_ms - began_ms > cluster.config.request_timeout_ms


def test_a_voter_that_is_being_removed_is_not_among_those_that_elected_it() -> None:
    """It may campaign while its removal is not committed, without a vote of its own.

    See: Raft dissertation section 4.2.2.
    """
    cluster = CoreCluster((2, 3, 1))
    cluster.elect(2)
    cluster.advance(600)
    cluster.isolate(3)
    removal = RemoveVoter(7, key(1))
    cluster.call(2, lambda node: node.on_local_event(cluster.now_ms, removal))
    cluster.settle()
    assert not cluster[1].is_voter
    cluster.isolate(2)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, ConnectionRefused(2)))
    wake_until(cluster, "Prospective")
    for role in ("Candidate", "Leader"):
        for each in (2, 3):
            answer(cluster, each, granted=True)
        assert cluster[1].role_name == role
    controls = [
        record
        for effect in cluster.members[1].effects
        if isinstance(effect, Append)
        for record in effect.controls
    ]
    assert [each.granting for each in controls if isinstance(each, LeaderChange)] == [(2, 3)]


def with_a_timer_that_is_over(leader: int) -> CoreCluster:
    """Node 1 has slept through the end of its timer, as one on a loaded machine may."""
    cluster = CoreCluster(disks={1: disk_with(LOG, leader=leader)})
    cluster.now_ms += 2 * cluster.config.fetch_timeout_ms
    return cluster


def ask(cluster: CoreCluster, epoch: int, *, pre_vote: bool) -> VoteResponse:
    last = OffsetAndEpoch(9, 2)
    request = VoteRequest(7, CLUSTER, key(2), key(1), epoch, last, pre_vote=pre_vote)
    cluster.call(1, lambda node: node.receive(cluster.now_ms, 2, request))
    return cluster.sent_by(1, VoteResponse)[-1]


@pytest.mark.parametrize("leader", [-1, 3])
def test_a_timer_that_is_over_fires_before_another_campaign_is_evaluated(leader: int) -> None:
    """Otherwise it fires right after, against the candidate that was just granted.

    The other voter has more records, so this one lets it go first (ADR 37).
    """
    cluster = with_a_timer_that_is_over(leader)
    assert ask(cluster, 2, pre_vote=True).granted
    assert cluster[1].role_name == "Prospective"
    answer(cluster, 3, granted=True)
    assert cluster[1].role_name == "Prospective", "it waits"


@pytest.mark.parametrize("leader", [-1, 3])
def test_a_vote_is_granted_without_a_campaign_of_this_voters_own(leader: int) -> None:
    """The candidate has raised the epoch already, so the timer of the epoch before is over."""
    cluster = with_a_timer_that_is_over(leader)
    assert ask(cluster, 3, pre_vote=False).granted
    assert cluster[1].role_name == "Unattached"
    assert requests(cluster, 2) == requests(cluster, 3) == []
    changes = [each for each in cluster.members[1].events if isinstance(each, RoleChanged)]
    assert [each.role for each in changes if each.epoch < 3 and each.role == "Prospective"] == []
