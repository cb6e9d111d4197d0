"""What ``CoreState`` itself decides: each property, output and stored state at its limits."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.events import VoterDisqualified, VoterSetChanged, WatermarkMoved
from quorum.core.contract.output import (
    HighWatermarkAdvanced,
    LeadershipChanged,
    Output,
    Promise,
    SaveElectionState,
    Send,
    StoreHighWatermark,
    VotersChanged,
)
from quorum.core.contract.reasons import DisqualifiedReason
from quorum.core.messages.vote_messages import VoteResponse
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.roles import Leader, Resigned, Role
from quorum.core.voters.voter_set import VoterSet
from quorum.errors import ErrorCode, InvariantViolation
from quorum.types import (
    NO_NODE,
    BootstrapState,
    ElectionState,
    Endpoint,
    OffsetAndEpoch,
)
from tests.support.bare_core import (
    EPOCH,
    LEADER,
    LOG_END,
    NOW_MS,
    core_of,
    follower,
    leading,
    reported,
)
from tests.support.core_disk import key, voter

DRAWN = BootstrapState(b"i" * 16)
AGREED = replace(DRAWN, voter_list=((1, b"i" * 16),))
COMPLETE = replace(DRAWN, is_complete=True)
MESSAGE = VoteResponse(7, ErrorCode.NONE, 2, EPOCH, granted=True)


def fresh(
    bootstrap_state: BootstrapState | None = DRAWN,
    *,
    voters: tuple[int, ...] = (1, 2, 3),
    log_end: int = 0,
) -> CoreState:
    """A disk in epoch 0."""
    core = core_of(follower(), voters=voters, log_end=log_end, log_epoch=int(log_end > 0))
    core.adopt_election(ElectionState(bootstrap_state=bootstrap_state))
    return core


def test_request_ids_begin_at_a_random_number_of_forty_bits() -> None:
    first = [
        CoreState(
            config=QuorumConfig(),
            cluster_id="c",
            me=key(1),
            rng=random.Random(seed),
            bootstrap=(),
        ).requests.last_id
        for seed in range(64)
    ]
    assert 1 << 39 <= max(first) < 1 << 40
    assert len(set(first)) == len(first)


# What it knows.


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        (None, OffsetAndEpoch(LOG_END, EPOCH)),
        (OffsetAndEpoch(LOG_END, EPOCH), OffsetAndEpoch(LOG_END, EPOCH)),
        (OffsetAndEpoch(LOG_END + 9, EPOCH - 1), OffsetAndEpoch(LOG_END, EPOCH)),
        (OffsetAndEpoch(LOG_END + 1, EPOCH), OffsetAndEpoch(LOG_END + 1, EPOCH)),
        (OffsetAndEpoch(3, EPOCH + 1), OffsetAndEpoch(3, EPOCH + 1)),
    ],
)
def test_the_position_is_the_newer_of_log_end_and_snapshot(
    snapshot: OffsetAndEpoch | None, expected: OffsetAndEpoch
) -> None:
    core = core_of(follower())
    if snapshot is not None:
        core.snapshots.add(snapshot, 1, now_ms=0)
    assert core.position == expected


@pytest.mark.parametrize(
    ("is_voter", "before", "committed", "disqualified", "expected"),
    [
        (True, (2, 3), 30, "", True),
        # Removed by the record at 20, which is not known to be committed.
        (False, (1, 2, 3), 20, "", True),
        (False, (1, 2, 3), 21, "", False),
        (False, (1, 2, 3), 20, "rolled back", False),
        (False, (2, 3), 20, "", False),
    ],
)
def test_a_voter_and_one_whose_removal_may_not_be_committed_may_campaign(
    is_voter: bool, before: tuple[int, ...], committed: int, disqualified: str, expected: bool
) -> None:
    core = core_of(follower(), voters=before)
    core.voters.add(20, VoterSet(map(voter, (2, 3))))
    core.is_voter, core.high_watermark = is_voter, committed
    core.adopt_election(replace(core.election, disqualified=disqualified))
    assert core.may_campaign == expected


@pytest.mark.parametrize(
    ("voters", "is_alone"), [((1,), True), ((1, 2), False), ((2,), False), ((), False)]
)
def test_one_voter_alone_is_the_quorum(voters: tuple[int, ...], is_alone: bool) -> None:
    assert core_of(follower(), voters=voters).is_lone_voter == is_alone


@pytest.mark.parametrize(
    ("state", "voters", "has_agreed"),
    [
        (None, (1, 2, 3), False),
        (None, (1,), True),
        (DRAWN, (1, 2, 3), False),
        (AGREED, (1, 2, 3), True),
        (COMPLETE, (1, 2, 3), True),
    ],
)
def test_a_disk_has_agreed_to_bootstrap_with_a_voter_list_or_alone(
    state: BootstrapState | None, voters: tuple[int, ...], has_agreed: bool
) -> None:
    assert fresh(state, voters=voters).has_agreed_to_bootstrap == has_agreed


@pytest.mark.parametrize(
    ("state", "voters", "epoch", "is_bootstrapping"),
    [
        (None, (1, 2, 3), 0, True),
        (DRAWN, (1, 2, 3), 0, True),
        (AGREED, (1, 2, 3), 0, True),
        (COMPLETE, (1, 2, 3), 0, False),
        (DRAWN, (1, 2), 0, True),
        (DRAWN, (1,), 0, False),
        (DRAWN, (2, 3), 0, False),
        (DRAWN, (1, 2, 3), 1, False),
    ],
)
def test_a_voter_bootstraps_until_the_quorum_is_known_to_be(
    state: BootstrapState | None, voters: tuple[int, ...], epoch: int, is_bootstrapping: bool
) -> None:
    core = fresh(state, voters=voters)
    core.adopt_election(replace(core.election, epoch=epoch))
    assert core.is_bootstrapping == is_bootstrapping


@pytest.mark.parametrize("own", [(), (Endpoint("CONTROLLER", "own", 1),)])
def test_the_endpoints_in_an_answer_are_those_of_the_leader(own: tuple[Endpoint, ...]) -> None:
    core, _ = leading()
    core.process.endpoints = own
    assert core.answering_endpoints() == (own or voter(1).endpoints)
    core = core_of(follower())
    core.process.endpoints = own
    core.known_leader.endpoints = known = (Endpoint("CONTROLLER", "leader", 1),)
    assert core.answering_endpoints() == known


# What it says.


def test_the_effects_of_one_output_share_a_ticket() -> None:
    core = core_of(follower())
    effects = [StoreHighWatermark(1), StoreHighWatermark(2), StoreHighWatermark(3)]
    assert [core.effect(each) for each in effects] == [1, 1, 1]
    assert (core.out.ticket, core.out.persist) == (1, effects)
    core.out = Output()
    assert core.effect(effects[0]) == 2


@pytest.mark.parametrize(
    ("election", "log", "durable", "message_waits_for", "acknowledgement_waits_for"),
    [
        (0, 0, 0, None, None),
        (5, 3, 5, None, None),
        (5, 3, 4, 5, 5),
        (3, 5, 4, None, 5),
        (3, 5, 2, 3, 5),
    ],
)
def test_messages_wait_for_the_election_state_and_acknowledgements_for_the_log_too(
    election: int,
    log: int,
    durable: int,
    message_waits_for: int | None,
    acknowledgement_waits_for: int | None,
) -> None:
    core = core_of(follower())
    disk = core.disk
    disk.election_ticket, core.log.ticket, disk.durable_ticket = election, log, durable
    core.send(2, MESSAGE)
    assert core.acknowledge(3, MESSAGE) == core.acknowledgement_ticket() == max(election, log)
    waits = ((message_waits_for, 2), (acknowledgement_waits_for, 3))
    assert core.out.after_persist == [
        Promise(ticket, to, MESSAGE) for ticket, to in waits if ticket is not None
    ]
    assert core.out.immediate == [Send(to, MESSAGE) for ticket, to in waits if ticket is None]


# The election state.


def test_the_same_state_is_not_stored_again() -> None:
    core = core_of(follower())
    core.save_election(ElectionState(EPOCH, LEADER))
    assert core.out.persist == []
    core.save_election(ElectionState(EPOCH + 1))
    assert core.out.persist == [SaveElectionState(ElectionState(EPOCH + 1))]
    assert (core.epoch, core.disk.election_ticket) == (EPOCH + 1, 1)


@pytest.mark.parametrize(
    ("state", "is_legal"),
    [
        (ElectionState(EPOCH - 1), False),
        (ElectionState(EPOCH, voted=key(2)), True),
        (ElectionState(EPOCH, LEADER, voted=key(2)), True),
        (ElectionState(EPOCH, voted=key(3)), False),
        (ElectionState(EPOCH), False),
        (ElectionState(EPOCH + 1, voted=key(3)), True),
        (ElectionState(EPOCH + 1), True),
    ],
)
def test_the_epoch_never_falls_and_a_vote_never_changes(
    state: ElectionState, is_legal: bool
) -> None:
    core = core_of(follower())
    core.adopt_election(ElectionState(EPOCH, voted=key(2)))
    if is_legal:
        core.save_election(state)
        assert core.election == state
    else:
        with pytest.raises(InvariantViolation):
            core.save_election(state)


@pytest.mark.parametrize(
    ("state", "voters", "log_end", "is_disqualified"),
    [
        (DRAWN, (1, 2, 3), 0, True),
        (None, (1, 2, 3), 0, True),
        (AGREED, (1, 2, 3), 0, False),
        (DRAWN, (1,), 0, False),
        (DRAWN, (2, 3), 0, False),
        (DRAWN, (1, 2, 3), 1, False),
    ],
)
def test_a_fresh_voter_that_meets_a_quorum_never_votes(
    state: BootstrapState | None, voters: tuple[int, ...], log_end: int, is_disqualified: bool
) -> None:
    """A voter with records, or one that has agreed to bootstrap, has taken part."""
    core = fresh(state, voters=voters, log_end=log_end)
    core.registration.basis = core.voters.latest
    core.save_election(ElectionState(1, 2))
    assert core.election == replace(ElectionState(1, 2), disqualified=core.election.disqualified), (
        "nothing of the bootstrap is kept"
    )
    assert core.out.persist == [SaveElectionState(core.election)]
    assert bool(core.election.disqualified) == is_disqualified
    assert core.is_voter == (1 in voters and not is_disqualified)
    assert (core.registration.basis is None) == is_disqualified
    assert [each.reason for each in reported(core, VoterDisqualified)] == (
        [DisqualifiedReason.MET_QUORUM] if is_disqualified else []
    )


def test_without_a_vote_the_epoch_does_not_fall_either() -> None:
    core = core_of(follower())
    with pytest.raises(InvariantViolation):
        core.save_election(ElectionState(EPOCH - 1))


def test_in_epoch_0_a_change_keeps_the_bootstrap_and_disqualifies_nobody() -> None:
    core = fresh()
    floor = OffsetAndEpoch(7, 1)
    core.save_election(ElectionState(vote_floor=floor))
    assert core.election == ElectionState(vote_floor=floor, bootstrap_state=DRAWN)
    core.save_bootstrap(AGREED)
    assert core.election == ElectionState(vote_floor=floor, bootstrap_state=AGREED)
    assert core.out.persist[-1] == SaveElectionState(core.election)


def test_a_disk_is_disqualified_once_for_its_first_reason() -> None:
    core = core_of(follower())
    core.disqualify(DisqualifiedReason.ROLLED_BACK, "rolled back")
    stored = core.election
    core.disqualify(DisqualifiedReason.FORMATTED_ANEW, "formatted anew")
    assert core.election == stored == ElectionState(EPOCH, LEADER, disqualified="rolled back")
    assert core.out.persist == [SaveElectionState(stored)]
    assert core.out.events == [
        VoterDisqualified(key(1), EPOCH, DisqualifiedReason.ROLLED_BACK, "rolled back")
    ]
    core.save_election(ElectionState(EPOCH + 1))
    assert core.election.disqualified == "rolled back"


# What is committed, who votes, and who leads.


def test_the_high_watermark_rises_to_at_most_the_log_end() -> None:
    core = core_of(follower())
    assert core.raise_high_watermark(LOG_END - 1)
    assert core.disk.watermark_store_due_ms == NOW_MS + core.config.high_watermark_store_ms
    assert core.out.progress == [HighWatermarkAdvanced(LOG_END - 1)]
    assert core.out.events == [WatermarkMoved(0, LOG_END - 1)]
    for lower in (LOG_END - 1, 5):
        assert not core.raise_high_watermark(lower)
    assert core.high_watermark == LOG_END - 1
    with pytest.raises(InvariantViolation):
        core.raise_high_watermark(LOG_END + 1)
    assert core.raise_high_watermark(LOG_END)


@pytest.mark.parametrize(
    ("voters", "disqualified", "is_voter"),
    [((1, 2), "", True), ((2, 3), "", False), ((1, 2), "rolled back", False)],
)
def test_a_disqualified_disk_is_no_voter_of_any_set(
    voters: tuple[int, ...], disqualified: str, is_voter: bool
) -> None:
    core = core_of(follower())
    core.adopt_election(replace(core.election, disqualified=disqualified))
    core.voters.add(20, VoterSet(map(voter, voters)))
    core.voters_changed()
    assert core.is_voter == is_voter
    assert core.out.events == [VoterSetChanged(20, voters)]
    assert core.out.progress == [VotersChanged(tuple(map(voter, voters)))]


def of_leader(*, established: bool = False, can_write: bool = False) -> Leader:
    return replace(leading()[1], established=established, can_write=can_write)


@pytest.mark.parametrize(
    ("role", "leader_id", "known", "is_leader", "can_write"),
    [
        (follower(), LEADER, LEADER, False, False),
        (of_leader(), 1, NO_NODE, False, False),
        (of_leader(established=True), 1, 1, True, False),
        (of_leader(established=True, can_write=True), 1, 1, True, True),
        (Resigned(NEVER_MS, (), {}), 1, NO_NODE, False, False),
    ],
)
def test_a_leadership_is_announced_once_and_only_when_established(
    role: Role, leader_id: int, known: int, is_leader: bool, can_write: bool
) -> None:
    core = core_of(role, leader_id=leader_id)
    for _ in range(2):
        core.announce_leadership()
    assert core.out.progress == [
        LeadershipChanged(known, EPOCH, is_leader=is_leader, can_write=can_write)
    ]
    assert core.leader_id == (NO_NODE if isinstance(role, Leader) and not is_leader else leader_id)
