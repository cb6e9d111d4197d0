"""Node 0 is a node like any other: node ids begin at 0, and so do offsets.

Whole scenarios, in which a rule that takes 0 for "none" loses a vote, a leader or a record.
"""

from __future__ import annotations

import pytest

from quorum.core.contract.local_events import Resign, ShutDown, TransferLeadership
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.vote_messages import VoteRequest
from quorum.types import NO_NODE
from tests.support.core_cluster import CoreCluster
from tests.support.core_disk import FRESH, key

VOTERS = (0, 1, 2)


def led(leader: int) -> CoreCluster:
    cluster = CoreCluster(VOTERS)
    cluster.elect(leader)
    cluster.advance(600)
    return cluster


def commits(cluster: CoreCluster, leader: int) -> bool:
    end_offset = cluster[leader].log_end_offset + 1
    cluster.propose(leader)
    cluster.settle()
    return {cluster[each].high_watermark for each in VOTERS if cluster.members[each].is_up} == {
        end_offset
    }


@pytest.mark.parametrize("leader", [0, 1])
def test_it_leads_votes_and_follows(leader: int) -> None:
    cluster = led(leader)
    assert [cluster[each].leader_id for each in VOTERS] == [leader] * 3
    assert commits(cluster, leader)
    assert all(each.is_voter for each in cluster[leader].replicas())


@pytest.mark.parametrize("absent", [1, 2])
def test_its_vote_and_its_acknowledgement_make_a_majority(absent: int) -> None:
    cluster = CoreCluster(VOTERS)
    cluster.crash(absent)
    leader = 3 - absent
    cluster.elect(leader)
    assert cluster[0].voted_id == leader
    assert commits(cluster, leader)


def test_it_is_bootstrapped_with_the_others() -> None:
    cluster = CoreCluster(VOTERS, disks=dict.fromkeys(VOTERS, FRESH))
    cluster.advance(10_000)
    assert len(cluster.leaders()) == 1
    assert {cluster[each].leader_id for each in VOTERS} == set(cluster.leaders())


@pytest.mark.parametrize(("leader", "target"), [(1, 0), (0, 1)])
def test_leadership_is_handed_to_it_and_by_it(leader: int, target: int) -> None:
    cluster = led(leader)
    cluster.call(
        leader, lambda node: node.on_local_event(cluster.now_ms, TransferLeadership(7, target))
    )
    cluster.settle()
    assert cluster.leaders() == [target]
    assert cluster[target].epoch == 2, "at the first attempt"


@pytest.mark.parametrize("event", [Resign(), ShutDown()])
def test_its_resignation_reaches_the_voters(event: Resign | ShutDown) -> None:
    """The others need not wait for their fetch timers."""
    cluster = led(0)
    cluster.call(0, lambda node: node.on_local_event(cluster.now_ms, event))
    cluster.advance(1_000)
    assert [each for each in cluster.leaders() if each != 0]


def test_its_death_is_noticed_and_its_successor_followed_when_it_is_back() -> None:
    cluster = led(0)
    cluster.crash(0)
    cluster.advance(10_000)
    (leader,) = cluster.leaders()
    assert commits(cluster, leader)
    cluster.restart(0)
    cluster.members[0].is_up = True
    cluster.advance(1_000)
    assert cluster[0].leader_id == leader
    assert cluster[0].log_end == cluster[leader].log_end


def test_after_a_restart_it_knows_that_it_led() -> None:
    """And does not lead that epoch again."""
    cluster = led(0)
    cluster.crash(0)
    cluster.restart(0)
    assert cluster[0].role_name == "Resigned"
    assert (cluster[0].epoch, cluster[0].leader_id) == (1, 0)


def test_after_a_restart_a_voter_remembers_its_vote_for_it() -> None:
    cluster = led(0)
    for each in (1, 2):
        cluster.crash(each)
        cluster.restart(each)
    cluster.crash(0)
    voters = [each for each in (1, 2) if cluster[each].voted_id == 0]
    assert voters
    assert [cluster[each].leader_id for each in voters] == [0] * len(voters)
    for each in voters:
        asked = VoteRequest(9, "cluster", key(3 - each), key(each), 1, cluster[1].log_end, False)
        cluster.call(each, lambda node, m=asked, by=3 - each: node.receive(cluster.now_ms, by, m))
        assert cluster[each].voted_id == 0


def test_it_observes() -> None:
    cluster = CoreCluster((1, 2, 3), observers=(0,))
    cluster.elect(1)
    cluster.advance(1_000)
    assert cluster[0].leader_id == 1
    assert cluster[0].high_watermark == cluster[1].high_watermark
    assert [each.key.id for each in cluster[1].replicas() if not each.is_voter] == [0]
    assert cluster.sent_by(0, VoteRequest) == []


def test_it_is_asked_for_the_leader() -> None:
    """By a replica that was down while the others elected it."""
    cluster = CoreCluster(VOTERS)
    cluster.crash(2)
    cluster.elect(0)
    cluster.restart(2)
    cluster.members[2].is_up = True
    cluster.advance(1_000)
    assert cluster[2].leader_id == 0 != NO_NODE
    assert [each for each in cluster.sent_by(2, FetchRequest) if each.epoch == 1]
