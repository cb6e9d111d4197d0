"""What a replica makes of the endpoints that messages name for its leader, source by source."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorum.core.contract.output import LeaderEndpoints
from quorum.core.following.fetching import _append_received
from quorum.core.messages.fetch_messages import FetchResponse
from quorum.core.messages.message_types import Response
from quorum.core.messages.read_messages import NO_ROUND, ReadRound
from quorum.core.messages.received_records import ReceivedRecords, VotersAt
from quorum.core.messages.vote_messages import VoteResponse
from quorum.core.protocol.leader_endpoints import learn_endpoints
from quorum.core.protocol.responses import learn_from_response
from quorum.core.state.core_state import CoreState
from quorum.core.state.known_leader import NamedBy
from quorum.core.state.roles import Follower
from quorum.core.voters.voter_set import VoterSet
from quorum.errors import ErrorCode
from quorum.runtime.peer_addresses import PeerAddresses
from quorum.types import Endpoint, EpochStart, NodeId, ReplicaKey, Voter
from tests.support.bare_core import EPOCH, LEADER, LOG_END, core_of, follower, progress
from tests.support.core_disk import key, voter

CLIENT = Endpoint("CLIENT", "leader", 9092)
OTHER_CLIENT = Endpoint("CLIENT", "elsewhere", 9092)
SASL = Endpoint("SASL", "leader", 9094)
EVIL = Endpoint("CONTROLLER", "evil", 1)
RECORDED = voter(LEADER).endpoints
NEW: NodeId = 77
"""A leader that no record names."""


def followed(leader_id: NodeId = LEADER) -> CoreState:
    """Node 1 as a follower."""
    return core_of(follower(leader_id), leader_id=leader_id)


def reported(core: CoreState) -> list[tuple[tuple[str, ...], bool]]:
    """The addresses that the runtime was given, and whether clients may be sent there."""
    return [(each.addresses, each.is_for_clients) for each in progress(core, LeaderEndpoints)]


@pytest.mark.parametrize(
    ("leader_id", "before", "learned", "expected"),
    [
        (LEADER, (), (CLIENT,), (*RECORDED, CLIENT)),
        (LEADER, (), (), RECORDED),
        (LEADER, (), (EVIL, CLIENT), (*RECORDED, CLIENT)),
        (LEADER, RECORDED, (), None),
        (LEADER, (*RECORDED, CLIENT), (), None),
        (LEADER, (*RECORDED, CLIENT), (CLIENT,), None),
        (LEADER, (*RECORDED, CLIENT), (OTHER_CLIENT,), (*RECORDED, OTHER_CLIENT)),
        (77, (), (), None),
        (77, (CLIENT,), (), None),
        (77, (), (CLIENT,), (CLIENT,)),
    ],
)
def test_endpoints_only_add_to_what_is_known(
    leader_id: NodeId,
    before: tuple[Endpoint, ...],
    learned: tuple[Endpoint, ...],
    expected: tuple[Endpoint, ...] | None,
) -> None:
    """Those of the voters' record come first and are never replaced; no listener is lost."""
    core = core_of(follower(leader_id), leader_id=leader_id)
    core.known_leader.endpoints = core.known_leader.named = before
    learn_endpoints(core, learned)
    assert core.known_leader.endpoints == (before if expected is None else expected)
    found = key(LEADER) if leader_id == LEADER else ReplicaKey(leader_id)
    reports = [] if expected is None else [each.address for each in expected]
    assert progress(core, LeaderEndpoints) == (
        [LeaderEndpoints(found, tuple(reports))] if reports else []
    )


@pytest.mark.parametrize("leader_id", [LEADER, NEW])
@pytest.mark.parametrize(
    ("first", "second", "is_replaced", "is_replaced_by_fewer"),
    [
        (NamedBy.PEER, NamedBy.PEER, True, False),
        (NamedBy.PEER, NamedBy.LEADER, True, True),
        (NamedBy.LEADER, NamedBy.PEER, False, False),
        (NamedBy.LEADER, NamedBy.LEADER, True, True),
        (NamedBy.PEER, NamedBy.UNPROVEN, False, False),
        (NamedBy.LEADER, NamedBy.UNPROVEN, False, False),
    ],
)
def test_the_better_source_is_believed(
    leader_id: NodeId,
    first: NamedBy,
    second: NamedBy,
    is_replaced: bool,
    is_replaced_by_fewer: bool,
) -> None:
    for names, expected in (
        ((SASL, OTHER_CLIENT), is_replaced),
        ((OTHER_CLIENT,), is_replaced_by_fewer),
    ):
        core = followed(leader_id)
        recorded = RECORDED if leader_id == LEADER else ()
        learn_endpoints(core, (SASL, CLIENT), first)
        learn_endpoints(core, names, second)
        assert core.known_leader.endpoints == (*recorded, *(names if expected else (SASL, CLIENT)))
        # A message without endpoints says nothing, whoever sends it.
        learn_endpoints(core, (), NamedBy.LEADER)
        assert core.known_leader.endpoints == (*recorded, *(names if expected else (SASL, CLIENT)))


def test_an_unproven_request_adds_nothing_to_a_record() -> None:
    core = followed()
    learn_endpoints(core, (OTHER_CLIENT,), NamedBy.UNPROVEN)
    assert core.known_leader.endpoints == RECORDED
    assert reported(core) == [((RECORDED[0].address,), True)]


@pytest.mark.parametrize("source", [NamedBy.PEER, NamedBy.LEADER])
def test_a_leader_without_a_record_is_looked_for_where_an_unproven_request_says(
    source: NamedBy,
) -> None:
    """Clients are not sent there, and peers are not told. The next one may say otherwise."""
    core = followed(NEW)
    elsewhere = replace(EVIL, host="elsewhere")
    for each in (EVIL, elsewhere):
        learn_endpoints(core, (each, OTHER_CLIENT), NamedBy.UNPROVEN)
        assert core.known_leader.endpoints == (each,)
        assert core.answering_endpoints() == ()
    learn_endpoints(core, (elsewhere,), source)
    assert core.answering_endpoints() == (elsewhere,)
    assert reported(core) == [
        (("evil:1",), False), (("elsewhere:1",), False), (("elsewhere:1",), True)
    ]  # fmt: skip


def test_a_record_ends_what_an_unproven_request_said() -> None:
    core = followed(NEW)
    learn_endpoints(core, (CLIENT,), NamedBy.UNPROVEN)
    core.voters.add(12, VoterSet((voter(1), voter(3), voter(NEW))))
    learn_endpoints(core)
    assert core.known_leader.endpoints == voter(NEW).endpoints == core.answering_endpoints()
    assert reported(core)[-1] == ((voter(NEW).endpoints[0].address,), True)


def test_who_confirms_an_unproven_address_may_know_more_listeners() -> None:
    core = followed(NEW)
    named = (*voter(NEW).endpoints, CLIENT)
    learn_endpoints(core, named, NamedBy.UNPROVEN)
    learn_endpoints(core, named, NamedBy.PEER)
    assert core.answering_endpoints() == named
    learn_endpoints(core, named[:1], NamedBy.PEER)
    assert core.answering_endpoints() == named


@pytest.mark.parametrize("by_record", [True, False])
@pytest.mark.parametrize("is_leader", [True, False])
@pytest.mark.parametrize("names_another", [True, False])
def test_who_answers_where_an_unproven_request_said_may_not_be_the_leader(
    by_record: bool, is_leader: bool, names_another: bool
) -> None:
    """The record or another replica tells. If it was not, the leader is to name its endpoints."""
    core = followed(NEW)
    right, wrong = voter(NEW).endpoints[0], EVIL
    asked = right if is_leader else wrong
    learn_endpoints(core, (asked,), NamedBy.UNPROVEN)
    # Who answers elsewhere than at the address that it names gains nothing by the right address.
    first = right if names_another else asked
    answered = answer(FetchResponse, leader_id=NEW, leader_endpoints=(first, SASL, OTHER_CLIENT))
    assert learn_from_response(core, NEW, answered)
    assert isinstance(core.role, Follower)
    core.role.read_round = ReadRound(EPOCH, 1 << 60)
    assert core.known_leader.named_by is NamedBy.ANSWERER
    assert core.answering_endpoints() == ()
    assert not any(is_for_clients for _, is_for_clients in reported(core))
    if by_record:
        core.voters.add(12, VoterSet((voter(1), voter(3), voter(NEW))))
        learn_endpoints(core)
    else:
        learn_endpoints(core, (right,), NamedBy.PEER)
    further = (SASL, OTHER_CLIENT) if is_leader else ()
    assert core.answering_endpoints() == (right, *further)
    assert reported(core)[-1][1]
    is_right = is_leader or names_another
    assert core.role.read_round.number == (1 << 60 if is_right else 0)


def test_the_record_in_a_fetched_batch_ends_the_doubt_at_once() -> None:
    """Before the next Fetch, which makes the leader name its endpoints."""
    core = followed(NEW)
    learn_endpoints(core, (EVIL,), NamedBy.UNPROVEN)
    assert isinstance(core.role, Follower)
    core.role.read_round = ReadRound(EPOCH, 9)
    voters = VotersAt(LOG_END, (voter(1), voter(3), voter(NEW)))
    records = ReceivedRecords(LOG_END, LOG_END + 1, (EpochStart(EPOCH, LOG_END),), (voters,), b"")
    _append_received(core, records)
    assert core.answering_endpoints() == voter(NEW).endpoints
    assert core.role.read_round == NO_ROUND


def test_a_record_that_moves_the_leader_takes_none_of_its_other_listeners() -> None:
    core = core_of(follower())
    learn_endpoints(core, (*RECORDED, CLIENT))
    moved = Voter(key(LEADER), (replace(RECORDED[0], host="moved"),))
    core.voters.add(12, VoterSet((voter(1), moved, voter(3))))
    learn_endpoints(core, ())
    assert core.known_leader.endpoints == (*moved.endpoints, CLIENT)


def test_a_record_that_is_truncated_leaves_what_was_named() -> None:
    """The peers' listener first, which messages named as well."""
    core = core_of(follower(NEW), leader_id=NEW)
    core.voters.add(12, VoterSet((voter(1), voter(3), voter(NEW))))
    named = (*voter(NEW).endpoints, CLIENT)
    learn_endpoints(core, named)
    core.voters.truncate_to(12)
    learn_endpoints(core)
    assert core.known_leader.endpoints == named
    assert len(reported(core)) == 1


def test_a_leader_that_removed_itself_is_found_by_its_last_record() -> None:
    core = followed()
    learn_endpoints(core, (CLIENT,))
    core.voters.add(12, VoterSet((voter(1), voter(3)), [key(LEADER)]))
    learn_endpoints(core)
    assert core.known_leader.endpoints == (*RECORDED, CLIENT)


def answer(kind: type[Response], **fields: Any) -> Response:
    given = {"error": ErrorCode.NONE, "leader_id": LEADER, "epoch": EPOCH, **fields}
    if kind is VoteResponse:
        given["granted"] = False
    return kind(5, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "sender", "fields", "expected"),
    [
        (FetchResponse, LEADER, {}, NamedBy.LEADER),
        (FetchResponse, -2, {}, NamedBy.LEADER),
        (FetchResponse, 9, {"path": (key(9),)}, NamedBy.PEER),
        (FetchResponse, 3, {"error": ErrorCode.NOT_LEADER_OR_FOLLOWER}, NamedBy.PEER),
        (VoteResponse, 3, {}, NamedBy.PEER),
        (VoteResponse, LEADER, {}, NamedBy.LEADER),
    ],
)
def test_who_named_the_endpoints_of_a_response(
    kind: type[Response], sender: NodeId, fields: dict[str, Any], expected: NamedBy
) -> None:
    """-2 is the id of a bootstrap server; relays name themselves in the path."""
    core = followed()
    assert learn_from_response(core, sender, answer(kind, leader_endpoints=(CLIENT,), **fields))
    assert core.known_leader.named_by is expected


def test_endpoints_are_learned_once_for_each_voter_set() -> None:
    """Nearly every response names none, and its voter set is the one before."""
    core = followed()
    assert learn_from_response(core, LEADER, answer(FetchResponse))
    assert core.known_leader.basis is core.voters.latest


class Addresses:
    """A network that notes where it is told to look for others."""

    def __init__(self) -> None:
        self.found: list[tuple[dict[NodeId, str], bool]] = []

    def set_peers(self, addresses: dict[NodeId, str], *, is_hint: bool) -> None:
        self.found.append((addresses, is_hint))


@pytest.mark.parametrize("is_for_clients", [True, False])
def test_peers_look_for_the_leader_where_clients_are_not_sent(is_for_clients: bool) -> None:
    network: Any = Addresses()
    addresses = PeerAddresses(network)
    addresses.learn(LeaderEndpoints(key(LEADER), ("here:1", "here:2"), is_for_clients))
    assert addresses.leader == (LEADER, ("here:1", "here:2") if is_for_clients else ())
    assert network.found == [({LEADER: "here:1"}, True)]
