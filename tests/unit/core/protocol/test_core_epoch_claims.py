"""Limits of a request: the leaders it may name, and how far it may raise the epoch (ADR 44)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorum.core.contract.local_events import ConnectionRefused
from quorum.core.contract.output import LeaderEndpoints
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest, EndQuorumEpochRequest
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.message_types import Request
from quorum.core.messages.vote_messages import VoteRequest
from quorum.core.protocol.epoch_claims import RAISES_MAX, RESPONSE_RAISE_MAX
from quorum.errors import ErrorCode
from quorum.types import EPOCH_MAX, Endpoint, OffsetAndEpoch, ReplicaKey
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import key

STRANGER = ReplicaKey(77, b"x" * 16)
FAR = OffsetAndEpoch(1 << 40, 1)


def vote(candidate: ReplicaKey, epoch: int, *, pre_vote: bool = False) -> VoteRequest:
    return VoteRequest(9, CLUSTER, candidate, ReplicaKey(-1), epoch, FAR, pre_vote)


def requests(author: ReplicaKey, epoch: int) -> list[Request]:
    return [
        vote(author, epoch),
        vote(author, epoch, pre_vote=True),
        BeginQuorumEpochRequest(9, CLUSTER, ReplicaKey(-1), author, epoch),
        EndQuorumEpochRequest(9, CLUSTER, author, epoch, (key(2), key(3))),
    ]


def led() -> CoreCluster:
    """Leader 1, followed by 2 and 3."""
    cluster = CoreCluster()
    cluster.elect(1)
    cluster.advance(1_000)
    return cluster


def leaderless() -> CoreCluster:
    """As ``led``, and node 2 knows that the leader's process is gone."""
    cluster = led()
    cluster.crash(1)
    cluster.crash(3)
    cluster.call(2, lambda node: node.on_local_event(cluster.now_ms, ConnectionRefused(1)))
    return cluster


def receive(cluster: CoreCluster, node_id: int, sender: int, request: Request) -> None:
    cluster.call(node_id, lambda node: node.receive(cluster.now_ms, sender, request))


@pytest.mark.parametrize("author", [STRANGER, key(3)], ids=["stranger", "voter"])
@pytest.mark.parametrize("ahead", [1, 50, EPOCH_MAX - 2, EPOCH_MAX - 1])
def test_a_live_leader_is_not_argued_away(author: ReplicaKey, ahead: int) -> None:
    """Goal: no request ends a leadership term. Method: every kind, to the leader and to a
    follower.
    """
    cluster = led()
    for node_id in (1, 2):
        for request in requests(author, 1 + ahead):
            receive(cluster, node_id, author.id, request)
            assert (cluster[node_id].epoch, cluster[node_id].leader_id) == (1, 1)
    assert cluster.leaders() == [1]


@pytest.mark.parametrize("author", [STRANGER, key(3)], ids=["stranger", "voter"])
def test_no_request_reaches_an_epoch_that_elections_cannot(author: ReplicaKey) -> None:
    """Goal: epochs are not used up. Method: far jumps, then as many small ones as are taken."""
    cluster = leaderless()
    for request in requests(author, EPOCH_MAX):
        receive(cluster, 2, author.id, request)
    assert cluster[2].epoch == 1
    for _ in range(10 * RAISES_MAX):
        receive(cluster, 2, author.id, vote(author, cluster[2].epoch + 1))
    assert cluster[2].epoch <= 1 + RAISES_MAX
    cluster.now_ms += 10_000
    before = cluster[2].epoch
    for _ in range(10 * RAISES_MAX):
        receive(cluster, 2, author.id, vote(author, cluster[2].epoch + 1))
    assert before < cluster[2].epoch <= before + 10


def test_only_a_voter_leads_and_only_a_later_epoch_may_name_an_unknown_one() -> None:
    """Goal: rule 3. Method: a stranger's BeginQuorumEpoch, and votes at and ahead of our end."""
    cluster = leaderless()
    receive(cluster, 2, 77, requests(STRANGER, 2)[2])
    assert (cluster[2].epoch, cluster[2].leader_id) == (1, 1)
    receive(cluster, 2, 77, replace(vote(STRANGER, 2), last=cluster[2].log_end))
    assert cluster[2].epoch == 1
    receive(cluster, 2, 77, vote(STRANGER, 2))
    assert (cluster[2].epoch, cluster[2].voted_id) == (2, 77)
    receive(cluster, 2, 77, requests(STRANGER, 2)[2])
    assert cluster[2].leader_id == 77


@pytest.mark.parametrize("pre_vote", [False, True], ids=["vote", "pre-vote"])
def test_an_observer_follows_an_epoch_only_from_a_known_or_named_source(pre_vote: bool) -> None:
    """Goal: rule 4, for two additions of which an observer has neither record. Method: candidates.

    A request for another disk or none, or without a later log end, moves nothing.
    """
    cluster = CoreCluster((1, 2, 3), (9,))
    cluster.elect(1)
    cluster.advance(1_000)
    for each in (1, 2, 3):
        cluster.crash(each)
    cluster.call(9, lambda node: node.on_local_event(cluster.now_ms, ConnectionRefused(1)))
    asked = replace(vote(STRANGER, 2, pre_vote=pre_vote), voter=key(9))
    for idle in (
        replace(asked, voter=ReplicaKey(-1)),
        replace(asked, voter=ReplicaKey(9)),
        replace(asked, last=cluster[9].log_end),
    ):
        receive(cluster, 9, 77, idle)
        assert cluster[9].epoch == 1
    receive(cluster, 9, 77, asked)
    assert cluster[9].epoch == 2
    assert cluster[9].voted_id == (-1 if pre_vote else 77)


def test_a_response_may_be_far_ahead_but_not_out_of_reach() -> None:
    """Goal: a node that was down learns the epoch by asking. Method: the bound, and one more."""
    for ahead, epoch in ((RESPONSE_RAISE_MAX, 1 + RESPONSE_RAISE_MAX), (RESPONSE_RAISE_MAX + 1, 1)):
        cluster = led()
        asked = cluster.sent_by(2, FetchRequest)[-1]
        answer = FetchResponse(asked.request_id, ErrorCode.FENCED_LEADER_EPOCH, 3, 1 + ahead)
        cluster[2].receive(cluster.now_ms, 1, answer)
        assert cluster[2].epoch == epoch


def test_a_wrong_hint_leaves_no_endpoints_behind() -> None:
    """Goal: rule 5. Method: the wrong leader names two listeners, the right one a single one."""
    cluster = led()
    cluster.restart(2)
    wrong = (Endpoint("CONTROLLER", "node3", 9093), Endpoint("CLIENT", "node3", 9092))
    request = BeginQuorumEpochRequest(9, CLUSTER, key(2), key(3), 1, wrong)
    receive(cluster, 2, 3, request)
    assert cluster[2].leader_id == 3
    receive(cluster, 2, 1, BeginQuorumEpochRequest(9, CLUSTER, key(2), key(1), 1))
    assert cluster[2].leader_id == 1
    fetch = FetchRequest(9, CLUSTER, key(3), 1, 0, 0)
    cluster.persist(2)
    output = cluster.call(2, lambda node: node.receive(cluster.now_ms, 3, fetch))
    (answer,) = [each.message for each in output.immediate]
    assert isinstance(answer, FetchResponse)
    assert answer.leader_id == 1
    assert all(each.host != "node3" for each in answer.leader_endpoints)


def test_endpoints_of_voters_are_those_of_their_record() -> None:
    """Goal: rule 4. Method: a BeginQuorumEpoch in the leader's name with an address of its own."""
    cluster = led()
    cluster.restart(2)
    evil = (Endpoint("CONTROLLER", "evil", 1), Endpoint("CLIENT", "node1", 9092))
    request = BeginQuorumEpochRequest(9, CLUSTER, key(2), key(1), 1, evil)
    output = cluster.call(2, lambda node: node.receive(cluster.now_ms, 1, request))
    endpoints = [each for each in output.progress if isinstance(each, LeaderEndpoints)]
    assert all("evil" not in address for each in endpoints for address in each.addresses)


@pytest.mark.parametrize("period_ms", [20, 100])
@pytest.mark.parametrize("voters", [(1, 2, 3), (1, 2, 3, 4, 5)])
def test_an_unknown_candidate_does_not_keep_the_voters_from_electing(
    voters: tuple[int, ...], period_ms: int
) -> None:
    """Goal: a candidate that goes on asking delays no election. Method: its votes, to everybody.

    The leader has died. Each vote names the next epoch and a log end ahead of all others.
    """
    cluster = CoreCluster(voters)
    cluster.elect(1)
    cluster.advance(1_000)
    cluster.crash(1)
    began_ms = cluster.now_ms
    while not cluster.leaders():
        assert cluster.now_ms < began_ms + 10_000
        cluster.advance(period_ms)
        for node_id in voters[1:]:
            asked = vote(STRANGER, cluster[node_id].epoch + 1)
            receive(cluster, node_id, STRANGER.id, asked)
