"""Limits of a request whose sender is not proven (ADR 52)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorum.core.contract.events import ReplicaRegressed
from quorum.core.contract.local_events import (
    AddVoter,
    ConnectionRefused,
    ListenerEndpoints,
    TransferLeadership,
)
from quorum.core.contract.output import LeaderEndpoints
from quorum.core.contract.reasons import RoleChangeCause, RoleChangeReason
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest, EndQuorumEpochRequest
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.message_types import Request
from quorum.core.messages.vote_messages import VoteRequest
from quorum.core.messages.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoterChangeResponse,
)
from quorum.core.protocol.role_transitions import follow_hint
from quorum.core.state.replica_progress import ReplicaProgress
from quorum.core.state.roles import Follower
from quorum.errors import ErrorCode
from quorum.types import Endpoint, ReplicaKey, Voter
from simulation.harness.arrival import arrived
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import key, voter

ANYBODY = ReplicaKey(-1)


def led() -> CoreCluster:
    """Leader 1, followed by 2 and 3."""
    cluster = CoreCluster()
    cluster.elect(1)
    cluster.advance(1_000)
    return cluster


def receive(
    cluster: CoreCluster, node_id: int, sender: int, request: Request, *, is_proven: bool = False
) -> None:
    received = arrived(request, is_proven=is_proven)
    cluster.call(node_id, lambda node: node.receive(cluster.now_ms, sender, received))


def begin(leader: int, epoch: int) -> BeginQuorumEpochRequest:
    return BeginQuorumEpochRequest(9, CLUSTER, ANYBODY, key(leader), epoch)


def end(cluster: CoreCluster, *, campaign_now: bool) -> EndQuorumEpochRequest:
    return EndQuorumEpochRequest(
        9, CLUSTER, key(1), cluster[2].epoch, (key(2),), campaign_now=campaign_now
    )


def fetch(cluster: CoreCluster, offset: int, *, is_proven: bool = True) -> FetchResponse:
    """Node 1's answer to a Fetch of node 2."""
    request = FetchRequest(77, CLUSTER, key(2), cluster[1].epoch, offset, 1)
    receive(cluster, 1, 2, request, is_proven=is_proven)
    return cluster.sent_by(1, FetchResponse)[-1]


def alone() -> tuple[CoreCluster, int]:
    """Leader 1 that has appended what node 2 lacks, node 2 gone; and where node 2's log ended."""
    cluster = led()
    end_offset = cluster[2].log_end.offset
    cluster.crash(2)
    cluster.propose(1, 3)
    cluster.settle()
    return cluster, end_offset


def test_what_a_stranger_acknowledged_is_held_against_no_voter() -> None:
    cluster, own_end = alone()
    fetch(cluster, cluster[1].log_end.offset, is_proven=False)
    answer = fetch(cluster, own_end)
    assert (answer.error, answer.records.base_offset) == (ErrorCode.NONE, own_end)


def test_a_strangers_request_does_not_change_what_a_voter_acknowledged() -> None:
    """Neither a lower position in its name nor a loss that it did not report lets it off."""
    cluster, own_end = alone()
    end_offset = cluster[1].log_end.offset
    fetch(cluster, end_offset)
    for lost in (False, True):
        request = FetchRequest(78, CLUSTER, key(2), 1, own_end, 1, has_lost_records=lost)
        receive(cluster, 1, 2, request)
    assert fetch(cluster, own_end).error is ErrorCode.REPLICA_REGRESSED
    events = [e for e in cluster.members[1].events if isinstance(e, ReplicaRegressed)]
    assert events[-1].fetch_offset == own_end


@pytest.mark.parametrize("campaign_now", [False, True])
def test_no_stranger_ends_the_epoch_of_a_leader_in_contact(campaign_now: bool) -> None:
    cluster = led()
    request = end(cluster, campaign_now=campaign_now)
    receive(cluster, 2, 1, request)
    cluster.advance(5_000)
    assert cluster.leaders() == [1]
    assert cluster[2].epoch == 1
    assert cluster.sent_by(2, VoteRequest) == []
    # The leader itself is believed.
    receive(cluster, 2, 1, request, is_proven=True)
    cluster.tick(2)
    assert cluster.sent_by(2, VoteRequest) or cluster[2].role_name != "Follower"


def test_no_stranger_calls_off_a_campaign() -> None:
    """The leader is gone; announcements in its name come at every step of the clock."""
    cluster = led()
    cluster.crash(1)
    cluster.call(2, lambda node: node.on_local_event(cluster.now_ms, ConnectionRefused(1)))
    for _ in range(200):
        for each in (2, 3):
            if cluster[each].epoch == 1:
                receive(cluster, each, 1, begin(1, 1))
        cluster.advance(50)
    assert cluster.leaders() in ([2], [3])


def test_alternating_hints_do_not_put_off_a_campaign() -> None:
    """A follower that has not fetched yet: no other leader extends its timer."""
    cluster = led()
    cluster.crash(1)
    cluster.crash(3)
    cluster.crash(2)
    cluster.restart(2)
    role = cluster[2]._core.role
    assert isinstance(role, Follower)
    deadline_ms = role.fetch_deadline_ms
    for number in range(6):
        cluster.advance(10)
        receive(cluster, 2, 3, begin((3, 1)[number % 2], 1), is_proven=number % 3 != 0)
        role = cluster[2]._core.role
        assert isinstance(role, Follower)
        assert role.fetch_deadline_ms <= deadline_ms


def test_who_is_taken_for_the_leader_of_a_later_epoch_is_elected_all_the_same() -> None:
    """Node 3 follows node 2 in epoch 3, reports it in every response, and needs its records."""
    cluster = led()
    cluster.crash(3)
    cluster.propose(1, 2)
    cluster.settle()
    cluster.crash(1)
    cluster.restart(3)
    cluster.members[3].is_up = True
    receive(cluster, 3, 2, begin(2, 3))
    assert (cluster[3].epoch, cluster[3].leader_id) == (3, 2)
    cluster.advance(30_000)
    assert cluster.leaders() == [2]


def test_there_is_no_leader_before_the_first_election() -> None:
    cluster = CoreCluster()
    for each in (1, 2, 3):
        receive(cluster, each, each % 3 + 1, begin(each % 3 + 1, 0))
        assert cluster[each].leader_id == -1
    cluster.advance(10_000)
    assert len(cluster.leaders()) == 1


def test_only_the_leader_itself_calls_off_a_campaign() -> None:
    cluster = led()
    cluster.crash(3)
    cluster.crash(1)
    cluster.call(2, lambda node: node.on_local_event(cluster.now_ms, ConnectionRefused(1)))
    cluster.advance(1_000)
    assert cluster[2].role_name == "Prospective"
    receive(cluster, 2, 1, begin(1, 1))
    assert cluster[2].role_name == "Prospective"
    receive(cluster, 2, 1, begin(1, 1), is_proven=True)
    assert cluster[2].role_name == "Follower"


def test_an_epoch_that_names_the_node_itself_as_leader_is_passed_without_a_vote() -> None:
    """It may have led that epoch and forgotten it: no other node gets its vote there."""
    cluster = led()
    cluster.crash(1)
    cluster.crash(3)
    core = cluster[2]._core
    cause = RoleChangeCause(RoleChangeReason.RESPONSE, 1)
    follow_hint(core, 2, 3, (), cause=cause)
    assert (core.epoch, core.leader_id, core.election.voted) == (3, -1, key(2))
    assert follow_hint(core, 2, 3, (), cause=cause)


STRANGERS = (Endpoint("CONTROLLER", "stranger", 1),)
CHANGES = (
    (2, UpdateVoterRequest(9, CLUSTER, Voter(key(2), STRANGERS), 1)),
    (7, AddVoterRequest(9, CLUSTER, Voter(key(7), STRANGERS), 1)),
    (2, RemoveVoterRequest(9, CLUSTER, ReplicaKey(2, b"another disk of2"), key(2), 1)),
)


@pytest.mark.parametrize(("author", "change"), CHANGES, ids=lambda each: type(each).__name__)
def test_no_stranger_changes_the_voters(author: int, change: Any) -> None:
    """It gets the remedy for an operator; nothing is sent to the address that it names."""
    cluster = led()
    cluster.crash(2)
    before = cluster[1].voters
    receive(cluster, 1, author, change)
    answer = cluster.sent_by(1, VoterChangeResponse)[-1]
    assert answer.error is ErrorCode.INVALID_REQUEST
    assert "quorate quorum update-voter" in answer.message
    assert (cluster[1].voters, cluster[1].pending_change) == (before, None)
    # Of the replica itself it is taken up.
    receive(cluster, 1, author, change, is_proven=True)
    assert cluster[1].pending_change is not None or cluster[1].voters != before


@pytest.mark.parametrize("kind", [BeginQuorumEpochRequest, EndQuorumEpochRequest])
@pytest.mark.parametrize("is_in_contact", [True, False])
def test_no_stranger_says_where_clients_reach_the_leader(kind: Any, is_in_contact: bool) -> None:
    cluster = led()
    if not is_in_contact:
        cluster.crash(1)
        cluster.restart(2)
        cluster.crash(3)
    listeners = (Endpoint("SASL", "stranger", 3), Endpoint("CLIENT", "stranger", 2))
    announced = replace(begin(1, 1), leader_endpoints=listeners)
    ended = replace(end(cluster, campaign_now=False), leader_endpoints=listeners)
    known = voter(1).endpoints
    assert cluster[2]._core.known_leader.endpoints == known
    receive(cluster, 2, 1, announced if kind is BeginQuorumEpochRequest else ended)
    assert cluster[2]._core.known_leader.endpoints == known
    # Of the leader itself it is learned.
    receive(cluster, 2, 1, announced, is_proven=True)
    assert cluster[2]._core.known_leader.endpoints == (*known, *listeners)


def test_a_stranger_misleads_no_replica_for_longer_than_until_the_next_answer() -> None:
    """Goal: not even without the leader's record.

    Method: voter 3 was away when 4 was added and elected, cannot reach it, and has restarted. A
    stranger names more listeners than a node has, and refuses one Fetch. Later voter 2 restarts
    and asks voter 3.
    """
    cluster = CoreCluster((1, 2, 3), (4,))
    client = Endpoint("CLIENT", "node4", 9092)
    own = ListenerEndpoints((*voter(4).endpoints, client))
    cluster.call(4, lambda node: node.on_local_event(cluster.now_ms, own))
    cluster.elect(1)
    cluster.advance(1_000)
    cluster.crash(3)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, AddVoter(7, voter(4))))
    cluster.settle()
    moved = TransferLeadership(8, 4, 5_000)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, moved))
    cluster.settle()
    cluster.advance(1_500)
    assert cluster.leaders() == [4]
    cluster.cut |= {(3, 4), (4, 3)}
    cluster.restart(3)
    while cluster[3].leader_id != 4:
        cluster.advance(200)
    cluster.crash(3)
    cluster.restart(3)
    assert (cluster[3].leader_id, cluster[3]._core.known_leader.endpoints) == (4, ())
    evil = tuple(Endpoint(name, "stranger", 1) for name in ("CONTROLLER", "SASL", "CLIENT"))
    receive(cluster, 3, 4, replace(begin(4, cluster[4].epoch), leader_endpoints=evil))
    core = cluster[3]._core
    assert core.known_leader.endpoints == evil[:1]
    asked, error = core.requests.in_flight, ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert asked is not None
    refusal = FetchResponse(asked.request_id, error, 4, core.epoch, leader_endpoints=evil)
    cluster.call(3, lambda node: node.receive(cluster.now_ms, 4, refusal))
    assert core.known_leader.endpoints == evil
    assert core.answering_endpoints() == ()
    cluster.advance(12_000)
    assert core.known_leader.endpoints == own.endpoints
    cluster.cut = {(2, 4), (4, 2)}
    cluster.crash(2)
    cluster.restart(2)
    cluster.advance(3_000)
    cluster.cut.clear()
    cluster.advance(3_000)
    for each in (2, 3):
        assert cluster[each]._core.known_leader.endpoints == own.endpoints
        found = client_addresses(cluster, each)
        assert client.address in found
        assert "stranger:1" not in found


def client_addresses(cluster: CoreCluster, node_id: int) -> set[str]:
    """Every address to which the node may have sent clients."""
    reports = [e for e in cluster.members[node_id].progress if isinstance(e, LeaderEndpoints)]
    return {address for each in reports if each.is_for_clients for address in each.addresses}


@pytest.mark.parametrize("node_id", [2, 9], ids=["voter", "observer"])
def test_a_replica_learns_of_the_leader_itself_where_clients_reach_it(node_id: int) -> None:
    """Also after a restart, while the leader remembers it and has no new records."""
    cluster = CoreCluster((1, 2, 3), (9,))
    own = (*voter(1).endpoints, Endpoint("CLIENT", "node1", 9092))
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, ListenerEndpoints(own)))
    cluster.elect(1)
    cluster.advance(1_000)
    assert cluster[node_id]._core.known_leader.endpoints == own
    cluster.crash(node_id)
    cluster.restart(node_id)
    assert cluster[node_id]._core.known_leader.endpoints != own
    end_offset = cluster[1].log_end_offset
    cluster.advance(1_000)
    assert (cluster[1].log_end_offset, cluster[1].epoch) == (end_offset, 1)
    assert cluster[node_id]._core.known_leader.endpoints == own


def test_a_strangers_acknowledgement_does_not_allow_trimming() -> None:
    progress = ReplicaProgress(key(2), is_voter=True, live_since_ms=0)
    progress.note_fetch(20, now_ms=1, leader_end=40, is_proven=False)
    assert progress.trim_position == 20
    progress.note_fetch(26, now_ms=2, leader_end=40)
    progress.note_fetch(40, now_ms=3, leader_end=40, is_proven=False)
    assert progress.trim_position == 26
    progress.note_fetch(24, now_ms=4, leader_end=40, is_proven=False)
    assert progress.trim_position == 24
