"""What each role does in its turn, and what every entry point does before and after it.

Each case begins with one thing that is due, in a state built by hand. A role that changed in its
turn does nothing more in it, and a leader with nothing due takes no turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from quorum.core.contract.events import TransferEnded, TransferStarted
from quorum.core.contract.output import (
    Output,
    ReadFailed,
    SnapshotInstalled,
    StoreHighWatermark,
)
from quorum.core.messages.bootstrap_messages import BootstrapRequest
from quorum.core.messages.chain_messages import ChainDigestRequest
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest, EndQuorumEpochRequest
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.read_messages import ReadPositionRequest
from quorum.core.messages.vote_messages import VoteRequest
from quorum.core.messages.voter_messages import UpdateVoterRequest
from quorum.core.node.raft_node import RaftNode
from quorum.core.positions.download import SealedSnapshot
from quorum.core.state.chain_state import DigestRequest, DivergenceResolution, Stage
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.core.state.replica_progress import Ahead
from quorum.core.state.roles import (
    Ballot,
    Candidate,
    Leader,
    Prospective,
    Resigned,
    Role,
    Transfer,
    Unattached,
)
from quorum.core.state.upstream import RelayPlan
from quorum.core.state.waiting_reads import ForwardedRead
from quorum.types import ElectionState, Endpoint, SnapshotId
from tests.support.core_disk import key
from tests.unit.core.node.test_core_deadlines import (
    DUE_MS,
    NOW_MS,
    SERVER,
    asking,
    core_of,
    flight,
    follower,
    leader,
)

SNAPSHOT = SnapshotId(5, 4)


class CountingNode(RaftNode):
    """A node in a given state, and how many turns its roles took."""

    def __init__(self, core: CoreState) -> None:
        super().__init__(config=core.config, cluster_id=core.cluster_id, me=core.me, rng=core.rng)
        self._core, self._is_started, self.turns = core, True, 0

    def _take_turn(self) -> None:
        self.turns += 1
        super()._take_turn()


def tick(core: CoreState) -> Output:
    return CountingNode(core).tick(NOW_MS)


def sent(output: Output) -> list[str]:
    return [type(each.message).__name__ for each in (*output.immediate, *output.after_persist)]


def moved(core: CoreState) -> CoreState:
    """This voter listens elsewhere than its entry in the voter set says."""
    core.process.endpoints = (Endpoint("CONTROLLER", "elsewhere", 9),)
    return core


def with_snapshot(core: CoreState) -> CoreState:
    core.following.sealed_snapshot = SealedSnapshot(SNAPSHOT, (), 9)
    return core


# Every role.


def prospective(*, fail_fast: bool = False, granted: bool | None = None) -> Prospective:
    ballots = {each: Ballot(each, NEVER_MS, voter=key(each), granted=granted) for each in (2, 3)}
    return Prospective(NEVER_MS, ballots, fail_fast)


def candidate() -> Candidate:
    return Candidate(NEVER_MS, {each: Ballot(each, voter=key(each)) for each in (2, 3)}, False)


def resigned() -> Resigned:
    owed = {each: PeerRequest(each, Purpose.END_EPOCH) for each in (2, 3)}
    return Resigned(NEVER_MS, (key(2), key(3)), owed)


def test_a_role_that_stays_takes_one_turn() -> None:
    for role in (follower(NEVER_MS), Unattached(NEVER_MS), prospective(), candidate(), resigned()):
        node = CountingNode(core_of(role))
        node.tick(NOW_MS)
        assert (type(role).__name__, node.turns) == (node.role_name, 1)


def test_a_new_role_takes_its_turn_at_once() -> None:
    """Method: a lone voter needs nobody's vote, so it goes on until its disk has to answer."""
    node = CountingNode(core_of(Unattached(NOW_MS), voters=(1,)))
    node.tick(NOW_MS)
    assert (node.role_name, node.turns) == ("Leader", 4)


@pytest.mark.interpreted
def test_what_is_no_role_takes_no_turn() -> None:
    core = core_of(Unattached(NEVER_MS))
    core.role = "no role"  # type: ignore[assignment]
    with pytest.raises(AssertionError):
        tick(core)


@pytest.mark.parametrize("role", [follower(NEVER_MS), Unattached(NEVER_MS), resigned()])
def test_a_relay_takes_its_turn_in_every_role(role: Role) -> None:
    core = core_of(role, voters=(2, 3), relays=RelayPlan(serves=True))
    tick(core)
    assert core.relay is not None
    assert core.relay.upkeep_due_ms > NOW_MS


@pytest.mark.parametrize(("offset_ms", "is_stored"), [(-1, True), (0, True), (1, False)])
@pytest.mark.parametrize("make", [lambda: core_of(resigned()), leader])
def test_the_high_watermark_is_stored_when_that_is_due(
    make: Callable[[], CoreState], offset_ms: int, is_stored: bool
) -> None:
    core = make()
    core.disk.watermark_store_due_ms = NOW_MS + offset_ms
    output = tick(core)
    assert (StoreHighWatermark(0) in output.persist) is is_stored


def test_the_disk_is_watched() -> None:
    core = core_of(resigned())
    core.disk.watch.check_due_ms = NOW_MS
    tick(core)
    assert core.disk.watch.is_suspected


def divergence(core: CoreState, **fields: Any) -> DivergenceResolution:
    found = DivergenceResolution(3, True, 9, core.log.cuts, low=-1, high=9, **fields)
    core.chain.resolution = found
    return found


@pytest.mark.parametrize(("offset_ms", "asks"), [(-1, True), (0, True), (1, False)])
def test_digests_are_asked_for_when_that_is_due(offset_ms: int, asks: bool) -> None:
    core = core_of(resigned())
    request = DigestRequest(3, NOW_MS + offset_ms)
    divergence(core, stage=Stage.SEARCHING, requests={3: request})
    core.chain.due_ms = NOW_MS + offset_ms
    assert (ChainDigestRequest.__name__ in sent(tick(core))) is asks


def test_a_divergence_that_is_not_due_is_left_alone() -> None:
    """Method: truncate the log; the verifier's result ends the divergence, no tick does."""
    core = core_of(resigned())
    found = divergence(core)
    found.cuts -= 1
    tick(core)
    assert core.chain.resolution is found
    core.chain.due_ms = NOW_MS
    tick(core)
    assert core.chain.resolution is None


# Reads that wait for a position.


def test_a_follower_asks_its_leader_for_a_position() -> None:
    core = core_of(follower(NEVER_MS))
    core.forwarded.add(ForwardedRead(1, DUE_MS))
    assert ReadPositionRequest.__name__ in sent(tick(core))


@pytest.mark.parametrize("leads", [False, True])
def test_reads_of_a_leader_that_cannot_confirm_them_yet_wait_on(leads: bool) -> None:
    """They are confirmed with its first committed record, or fail once it no longer leads."""
    core = leader(upkeep_due_ms=NOW_MS) if leads else core_of(resigned())
    core.forwarded.add(ForwardedRead(1, NOW_MS))
    output = tick(core)
    assert (ReadFailed(1) in output.progress) is not leads


# Leaders.


def ahead(core: CoreState) -> CoreState:
    """An observer that has waited for ever for the next epoch; voter 2 could begin it."""
    role = core.role
    assert isinstance(role, Leader)
    role.ahead[key(9)] = Ahead(key(9), 5, -1_000_000, NOW_MS, is_proven=True)
    role.remote[2].note_fetch(0, now_ms=NOW_MS, leader_end=0)
    return core


def names(output: Output) -> set[str]:
    return {type(each).__name__ for each in output.events}


@pytest.mark.parametrize(("upkeep_ms", "is_due"), [(NOW_MS, True), (NOW_MS + 1, False)])
def test_a_leader_with_nothing_due_takes_no_turn(upkeep_ms: int, is_due: bool) -> None:
    """Method: an observer ahead is not worth a turn, but is looked at in the next."""
    core = ahead(leader(upkeep_due_ms=upkeep_ms))
    node = CountingNode(core)
    output = node.tick(NOW_MS)
    assert node.turns == is_due
    assert (TransferStarted.__name__ in names(output)) is is_due
    assert output.next_deadline_ms is not None
    assert output.next_deadline_ms > NOW_MS


def test_a_leader_with_nothing_due_gives_its_next_deadline() -> None:
    assert tick(leader(upkeep_due_ms=DUE_MS)).next_deadline_ms == DUE_MS


def test_a_leader_that_transfers_takes_every_turn() -> None:
    """Method: the target has become level with it, and nothing else is due."""
    request = PeerRequest(2, Purpose.TRANSFER)
    core = leader(upkeep_due_ms=DUE_MS, transfer=Transfer(key(2), 1, DUE_MS, request))
    assert isinstance(core.role, Leader)
    core.role.remote[2].note_fetch(0, now_ms=NOW_MS, leader_end=0)
    assert sent(tick(core)) == [EndQuorumEpochRequest.__name__]


def test_a_transfer_ends_in_time() -> None:
    request = PeerRequest(2, Purpose.TRANSFER)
    core = leader(upkeep_due_ms=DUE_MS, transfer=Transfer(key(2), 1, NOW_MS, request))
    assert TransferEnded.__name__ in names(tick(core))


def test_a_leader_that_resigns_in_its_turn_hands_nothing_over() -> None:
    core = ahead(leader(check_quorum_deadline_ms=NOW_MS))
    output = tick(core)
    assert isinstance(core.role, Resigned)
    assert TransferStarted.__name__ not in names(output)
    assert BeginQuorumEpochRequest.__name__ not in sent(output)


def test_a_leader_leads_once_its_own_disk_says_so() -> None:
    core = leader(established=False, durable_with=1)
    assert not sent(tick(core))
    core.disk.last_ticket = core.disk.durable_ticket = 1
    assert BeginQuorumEpochRequest.__name__ in sent(tick(core))


# Roles that follow or look for a leader.


@pytest.mark.parametrize(
    "role", [follower(NEVER_MS), Unattached(NEVER_MS), prospective(), resigned(), candidate()]
)
def test_a_sealed_snapshot_is_installed_unless_the_position_counts(role: Role) -> None:
    core = with_snapshot(core_of(role))
    is_installed = SnapshotInstalled(SNAPSHOT) in tick(core).progress
    assert is_installed is not isinstance(role, Resigned | Candidate)


def registering(fetch_deadline_ms: int) -> CoreState:
    role = follower(fetch_deadline_ms)
    role.registration.due_ms = NOW_MS
    return moved(core_of(role))


def test_a_follower_fetches_and_registers() -> None:
    assert sent(tick(registering(NEVER_MS))) == [
        FetchRequest.__name__, UpdateVoterRequest.__name__,
    ]  # fmt: skip


def test_a_follower_that_campaigns_registers_nothing() -> None:
    assert sent(tick(registering(NOW_MS))) == [VoteRequest.__name__] * 2


def test_an_unattached_node_looks_for_a_leader() -> None:
    assert sent(tick(core_of(Unattached(NEVER_MS)))) == [FetchRequest.__name__]


def test_an_unattached_node_that_campaigns_does_not() -> None:
    assert sent(tick(core_of(Unattached(NOW_MS)))) == [VoteRequest.__name__] * 2


def test_an_unattached_bootstrap_voter_asks_the_others() -> None:
    core = core_of(Unattached(NEVER_MS))
    core.adopt_election(ElectionState(0))
    assert sent(tick(core)) == [
        BootstrapRequest.__name__, BootstrapRequest.__name__, FetchRequest.__name__,
    ]  # fmt: skip


@pytest.mark.parametrize(("fail_fast", "searches"), [(False, True), (True, False)])
def test_a_campaign_asks_bootstrap_servers_unless_the_leader_is_gone(
    fail_fast: bool, searches: bool
) -> None:
    core = core_of(prospective(fail_fast=fail_fast), bootstrap=(SERVER,))
    output = tick(core)
    assert sent(output) == [FetchRequest.__name__] * searches
    assert isinstance(core.role, Prospective)


@pytest.mark.parametrize("fail_fast", [False, True])
def test_a_campaign_that_is_won_asks_for_votes_alone(fail_fast: bool) -> None:
    core = core_of(prospective(fail_fast=fail_fast, granted=True), bootstrap=(SERVER,))
    assert sent(tick(core)) == [VoteRequest.__name__] * 2
    assert isinstance(core.role, Candidate)


def test_a_candidate_asks_for_votes() -> None:
    assert sent(tick(core_of(candidate()))) == [VoteRequest.__name__] * 2


def test_a_resigned_leader_reports_that_to_every_voter() -> None:
    assert sent(tick(core_of(resigned()))) == [EndQuorumEpochRequest.__name__] * 2


def test_a_request_under_way_is_not_repeated() -> None:
    core = asking(core_of(follower(NEVER_MS)), flight(due_ms=DUE_MS))
    assert not sent(tick(core))
