"""Which votes and pre-votes are granted, and what a refused one moves, case by case."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.events import VoteDecided
from quorum.core.contract.output import SaveElectionState
from quorum.core.contract.reasons import VoteRejection
from quorum.core.election.campaign import poll_prospective
from quorum.core.election.voting import on_vote_request
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.core.positions.log_view import LogView
from quorum.core.protocol.refusals import OFFSET_MAX
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import Purpose
from quorum.core.state.roles import (
    Ballot,
    Candidate,
    Follower,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from quorum.core.state.timers import Timer
from quorum.core.voters.voter_set import VoterSet
from quorum.errors import ErrorCode
from quorum.types import (
    LOG_BEGINNING,
    NO_NODE,
    ZERO_UUID,
    ElectionState,
    EpochStart,
    LeaderAndEpoch,
    NodeId,
    OffsetAndEpoch,
    ReplicaKey,
)
from tests.support.core_disk import key, voter

NOW_MS = 10_000
EPOCH = 4
END = OffsetAndEpoch(5, 3)
BEHIND = OffsetAndEpoch(4, 3)
OTHER_DISK = ReplicaKey(2, b"another disk 2..")


def core_of(role: Role, *, config: QuorumConfig | None = None, **election: Any) -> CoreState:
    """Voter 3 of 1 to 5, in epoch 4, with five records."""
    core = CoreState(
        config=config or QuorumConfig(),
        cluster_id="cluster",
        me=key(3),
        rng=random.Random(1),
        bootstrap=(),
    )
    core.log = LogView(LOG_BEGINNING, END, (EpochStart(3, 0),))
    core.voters.add(-1, VoterSet(map(voter, range(1, 6))))
    core.is_voter = True
    core.adopt_election(ElectionState(EPOCH, **election))
    core.role, core.now_ms = role, NOW_MS
    return core


def unattached() -> Unattached:
    return Unattached(NOW_MS + 1)


def follower(leader: NodeId = 1, **fields: Any) -> Follower:
    return Follower(leader, **{"fetch_deadline_ms": NOW_MS + 1, "fetch_timeout_ms": 1, **fields})


def ballots(**granted: bool | None) -> dict[NodeId, Ballot]:
    """One of each other voter; ``v2=True`` for one that has granted it."""
    return {
        each: Ballot(each, NOW_MS, voter=key(each), granted=granted.get(f"v{each}"))
        for each in (1, 2, 4, 5)
    }


def prospective(*, fail_fast: bool = False, **granted: bool | None) -> Prospective:
    return Prospective(NOW_MS + 1_000, ballots(**granted), fail_fast)


def request(*, pre_vote: bool, candidate: ReplicaKey | None = None, **fields: Any) -> VoteRequest:
    values = {"epoch": EPOCH, "last": END, "voter": key(3), **fields}
    return VoteRequest(
        9, "cluster", candidate or key(2), values["voter"], values["epoch"], values["last"],
        pre_vote,
    )  # fmt: skip


def decided(core: CoreState, asked: VoteRequest) -> tuple[bool, VoteRejection | None]:
    """Process a request; whether it was granted, and why not."""
    on_vote_request(core, asked.candidate.id, asked)
    (decision,) = [each for each in core.out.events if isinstance(each, VoteDecided)]
    (response,) = [
        each.message
        for each in (*core.out.immediate, *core.out.after_persist)
        if isinstance(each.message, VoteResponse)
    ]
    assert response.granted == decision.granted
    return decision.granted, decision.reason  # type: ignore[return-value]


def saved(core: CoreState) -> list[ReplicaKey | None]:
    """The votes that were handed to the disk."""
    return [each.state.voted for each in core.out.persist if isinstance(each, SaveElectionState)]


@pytest.mark.parametrize(
    ("voted", "candidate", "is_granted"),
    [
        (key(2), key(2), True),
        (key(2), OTHER_DISK, False),
        (key(2), key(4), False),
        (key(4), key(2), False),
        (ReplicaKey(2), key(2), True),
        (ReplicaKey(4), key(2), False),
        (ReplicaKey(4, key(2).directory_id), key(2), False),
    ],
)
def test_one_vote_in_an_epoch(voted: ReplicaKey, candidate: ReplicaKey, is_granted: bool) -> None:
    """The same disk may ask again; its log is not compared anew, and nothing is written.

    Another disk with its node id is somebody else. An unknown directory id matches any.
    """
    role = unattached()
    core = core_of(role, voted=voted)
    core.voters.add(
        0,
        VoterSet(
            [*map(voter, (1, 3, 4, 5)), replace(voter(2), key=candidate)]
            if candidate.id == 2
            else map(voter, range(1, 6))
        ),
    )
    asked = request(pre_vote=False, candidate=candidate, last=BEHIND)
    expected = None if is_granted else VoteRejection.VOTED_FOR_ANOTHER
    assert decided(core, asked) == (is_granted, expected)
    assert saved(core) == []
    assert (core.role, role.election_deadline_ms) == (role, NOW_MS + 1)


def test_a_vote_of_one_that_asks_for_pre_votes_is_recorded_and_ends_its_round() -> None:
    """Goal: no vote that a crash could take back."""
    core = core_of(prospective())
    assert decided(core, request(pre_vote=False)) == (True, None)
    assert saved(core) == [key(2)]
    assert isinstance(core.role, Unattached)
    assert core.election.voted == key(2)
    assert core.role.election_deadline_ms > NOW_MS
    assert core.out.immediate == [], "the grant waits for the disk"


def test_a_vote_postpones_the_own_campaign_once() -> None:
    role = unattached()
    core = core_of(role)
    assert decided(core, request(pre_vote=False)) == (True, None)
    assert saved(core) == [key(2)]
    deadline_ms = role.election_deadline_ms
    assert deadline_ms >= NOW_MS + core.config.election_timeout_ms
    core.out.events.clear()
    core.out.after_persist.clear()
    assert decided(core, request(pre_vote=False)) == (True, None)
    assert role.election_deadline_ms == deadline_ms


ANY = (True, False)


DECISIONS: list[tuple[Any, dict[str, Any], VoteRejection | None, tuple[bool, ...]]] = [
    (unattached, {}, None, ANY),
    (unattached, {"disqualified": "formatted anew"}, VoteRejection.DISQUALIFIED, ANY),
    (unattached, {"vote_floor": END}, None, ANY),
    (unattached, {"vote_floor": replace(END, offset=6)}, VoteRejection.BELOW_VOTE_FLOOR, ANY),
    (unattached, {"leader_id": 1}, VoteRejection.EPOCH_HAS_LEADER, (False,)),
    (unattached, {"leader_id": 1}, None, (True,)),
    (follower, {"leader_id": 1}, VoteRejection.ROLE_OF_EPOCH, (False,)),
    (follower, {"leader_id": 1}, None, (True,)),
    (lambda: Candidate(NOW_MS + 1, ballots(), fail_fast=False), {}, VoteRejection.ROLE_OF_EPOCH,
     (False,)),
    (lambda: Candidate(NOW_MS + 1, ballots(), fail_fast=False), {}, None, (True,)),
    (lambda: Resigned(NOW_MS + 1, (), {}), {}, VoteRejection.ROLE_OF_EPOCH, (False,)),
    (lambda: Resigned(NOW_MS + 1, (), {}), {}, None, (True,)),
    (lambda: follower(has_fetched=True), {"leader_id": 1}, VoteRejection.LEADER_CONTACT,
     (True,)),
]  # fmt: skip
"""Role, state of the election, the refusal if any, and for which kinds (is it a pre-vote)."""


@pytest.mark.parametrize(
    ("role", "election", "rejection", "pre_vote"),
    [(*decision, pre_vote) for *decision, of in DECISIONS for pre_vote in of],
)
def test_votes_and_pre_votes_are_granted_by_the_rules(
    role: Any, election: dict[str, Any], rejection: VoteRejection | None, pre_vote: bool
) -> None:
    core = core_of(role(), **election)
    assert decided(core, request(pre_vote=pre_vote)) == (rejection is None, rejection)


@pytest.mark.parametrize("pre_vote", ANY)
@pytest.mark.parametrize("reason", [VoteRejection.LOG_QUARANTINED, VoteRejection.DISK_STALLED])
def test_a_voter_that_cannot_keep_its_promises_grants_nothing(
    reason: VoteRejection, pre_vote: bool
) -> None:
    core = core_of(unattached())
    core.chain.quarantined_log = "wrong" if reason is VoteRejection.LOG_QUARANTINED else ""
    core.disk.watch.is_stalled = reason is VoteRejection.DISK_STALLED
    assert decided(core, request(pre_vote=pre_vote)) == (False, reason)


@pytest.mark.parametrize(
    ("last", "error"),
    [
        (OffsetAndEpoch(OFFSET_MAX, EPOCH), None),
        (OffsetAndEpoch(OFFSET_MAX + 1, EPOCH), ErrorCode.INVALID_REQUEST),
        (OffsetAndEpoch(0, 0), None),
        (OffsetAndEpoch(-1, 0), ErrorCode.INVALID_REQUEST),
        (OffsetAndEpoch(9, EPOCH + 1), ErrorCode.INVALID_REQUEST),
        (OffsetAndEpoch(9, -1), ErrorCode.INVALID_REQUEST),
    ],
)
def test_the_positions_that_a_candidate_may_name(
    last: OffsetAndEpoch, error: ErrorCode | None
) -> None:
    core = core_of(unattached())
    on_vote_request(core, 2, request(pre_vote=True, last=last))
    (sent,) = core.out.immediate
    assert isinstance(sent.message, VoteResponse)
    assert sent.message.error == (error or ErrorCode.NONE)


@pytest.mark.parametrize(
    ("candidate", "last", "is_early"),
    [(key(2), BEHIND, True), (key(2), END, False), (OTHER_DISK, BEHIND, False)],
)
@pytest.mark.parametrize("is_lost", [True, False])
def test_a_candidate_with_fewer_records_is_overtaken_at_once(
    candidate: ReplicaKey, last: OffsetAndEpoch, is_early: bool, is_lost: bool
) -> None:
    """By a follower that lost its leader, or campaigned before and heard nothing since. A stranger
    with fewer records is not considered at all.
    """
    role = follower(has_campaigned=not is_lost, campaign_at_ms=NOW_MS + 50)
    core = core_of(role, leader_id=1)
    core.known_leader.lost = LeaderAndEpoch(1, EPOCH) if is_lost else None
    on_vote_request(core, 2, request(pre_vote=True, candidate=candidate, last=last))
    assert role.campaign_at_ms == (NOW_MS if is_early and is_lost else NOW_MS + 50)
    assert role.fetch_deadline_ms == (NOW_MS if is_early and not is_lost else NOW_MS + 1)


@pytest.mark.parametrize(("deadline_ms", "is_over"), [(NOW_MS, True), (NOW_MS + 1, False)])
def test_a_fetch_timer_that_is_over_fires_before_another_campaign(
    deadline_ms: int, is_over: bool
) -> None:
    """Its own campaign is an ordinary one: the leader is silent, not known to be gone."""
    core = core_of(follower(fetch_deadline_ms=deadline_ms), leader_id=1)
    on_vote_request(core, 2, request(pre_vote=True, last=BEHIND))
    assert core.timers_fired[Timer.FETCH] == is_over
    assert isinstance(core.role, Prospective if is_over else Follower)
    if isinstance(core.role, Prospective):
        assert not core.role.fail_fast


@pytest.mark.parametrize(
    ("granted", "candidate", "is_asked_again"),
    [
        (False, key(2), True),
        (None, key(2), True),
        (True, key(2), False),
        (False, OTHER_DISK, False),
    ],
)
def test_who_rejected_a_campaign_and_has_less_is_asked_again(
    granted: bool | None, candidate: ReplicaKey, is_asked_again: bool
) -> None:
    """It campaigns itself now, so it follows nobody. A grant that was given stays, and a stranger
    with the node id of a voter says nothing about that voter.
    """
    role = prospective(v2=granted)
    ballot = role.ballots[2]
    core = core_of(role)
    core.requests.open(ballot, 77)
    ballot.due_ms = NEVER_MS
    on_vote_request(core, 2, request(pre_vote=True, candidate=candidate, last=BEHIND))
    assert ballot.granted == (None if is_asked_again else granted)
    assert (ballot.request_id, ballot.due_ms) == ((0, NOW_MS) if is_asked_again else (77, NEVER_MS))
    assert ballot.purpose is Purpose.VOTE


@pytest.mark.parametrize(
    ("candidate", "last", "yields"),
    [
        (2, END, True),
        (4, END, False),
        (4, replace(END, offset=6), True),
        (2, BEHIND, False),
    ],
)
@pytest.mark.parametrize(("timeout_ms", "pause_ms"), [(1_000, 250), (7, 1), (4, 1), (3, 1)])
def test_of_two_campaigns_the_one_with_more_records_or_the_lower_id_goes_first(
    candidate: NodeId, last: OffsetAndEpoch, yields: bool, timeout_ms: int, pause_ms: int
) -> None:
    """The other waits a quarter of an election timeout, once per round (ADR 37)."""
    role = prospective()
    core = core_of(role, config=QuorumConfig(election_timeout_ms=timeout_ms))
    asked = request(pre_vote=True, candidate=key(candidate), last=last)
    on_vote_request(core, candidate, asked)
    assert role.yield_until_ms == (NOW_MS + pause_ms if yields else 0)
    core.now_ms += 1
    on_vote_request(core, candidate, asked)
    assert role.yield_until_ms == (NOW_MS + pause_ms if yields else 0)


@pytest.mark.parametrize("leader_id", [NO_NODE, 1])
@pytest.mark.parametrize("fail_fast", [True, False])
def test_a_lost_round_is_over_at_once_unless_the_leader_is_gone(
    leader_id: NodeId, fail_fast: bool
) -> None:
    """Those who rejected may not have noticed yet that it is gone; they are asked again soon."""
    role = prospective(fail_fast=fail_fast, v1=False, v2=False, v4=False)
    core = core_of(role, leader_id=leader_id)
    poll_prospective(core, role)
    if fail_fast:
        assert core.role is role
        return
    assert isinstance(core.role, Unattached if leader_id == NO_NODE else Follower)
    if isinstance(core.role, Follower):
        assert core.role.has_campaigned


def test_directory_ids_are_compared() -> None:
    """The disks of this module differ."""
    assert len({key(2).directory_id, OTHER_DISK.directory_id, ZERO_UUID}) == 3
