"""Whose claim to campaign or to lead is considered, and how far it moves the epoch."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.core.contract.reasons import Rejection, VoteRejection
from quorum.core.messages.vote_messages import VoteRequest
from quorum.core.protocol.epoch_claims import (
    RAISES_MAX,
    RESPONSE_RAISE_MAX,
    has_leader_contact,
    is_out_of_reach,
    live_leader,
    may_lead,
    refusal_of_leader_claim,
    why_not_considered,
)
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.roles import Unattached
from quorum.errors import ErrorCode
from quorum.types import (
    EPOCH_MAX,
    NO_NODE,
    BootstrapState,
    ElectionState,
    LeaderAndEpoch,
    NodeId,
    OffsetAndEpoch,
    ReplicaKey,
)
from tests.support.bare_core import (
    CLUSTER,
    EPOCH,
    LEADER,
    LOG_END,
    NOW_MS,
    core_of,
    follower,
    lead,
    leading,
)
from tests.support.core_disk import key

STRANGER = ReplicaKey(77, b"x" * 16)
NOBODY = ReplicaKey(NO_NODE)
ME_UNKNOWN_DISK = ReplicaKey(1)
END = OffsetAndEpoch(LOG_END, EPOCH)
AHEAD = OffsetAndEpoch(LOG_END + 1, EPOCH)
BEHIND = OffsetAndEpoch(LOG_END - 1, EPOCH)
CONTACT = {"has_fetched": True, "fetch_deadline_ms": NOW_MS + 1}
TOO_FAR = VoteRejection.EPOCH_TOO_FAR, f"epoch {EPOCH + RAISES_MAX + 1}, not {EPOCH}"
AS_OBSERVER = VoteRejection.NOT_ASKED_AS_VOTER, ""
OF_LEADER = VoteRejection.LEADER_CONTACT, f"leader {LEADER}"
UNKNOWN_LEADER_EPOCH = ErrorCode.UNKNOWN_LEADER_EPOCH
INELIGIBLE = ErrorCode.INELIGIBLE_REPLICA


def vote(candidate: ReplicaKey, epoch: int, **fields: Any) -> VoteRequest:
    given = {"voter": NOBODY, "last": END, "pre_vote": False, **fields}
    return VoteRequest(9, CLUSTER, candidate, epoch=epoch, **given)


def observer() -> CoreState:
    """Node 1 is no voter and has no contact with its leader."""
    return core_of(follower(), voters=(2, 3, 4))


@pytest.mark.parametrize(
    ("has_fetched", "is_lost", "left_ms", "expected"),
    [
        (True, False, 1, True),
        (True, False, 0, False),
        (True, True, 1, False),
        (False, False, 1, False),
    ],
)
def test_when_a_follower_is_in_contact_with_its_leader(
    has_fetched: bool, is_lost: bool, left_ms: int, expected: bool
) -> None:
    role = follower(has_fetched=has_fetched, fetch_deadline_ms=NOW_MS + left_ms)
    core = core_of(role)
    core.known_leader.lost = LeaderAndEpoch(LEADER, EPOCH) if is_lost else None
    assert has_leader_contact(core, role) is expected
    assert live_leader(core) == (LEADER if expected else NO_NODE)


@pytest.mark.parametrize(
    ("voters", "is_established", "left_ms", "expected"),
    [
        ((1, 2, 3), True, 1, 1),
        ((1, 2, 3), True, 0, NO_NODE),
        ((1, 2, 3), False, 1, NO_NODE),
        ((1,), True, 0, 1),
    ],
)
def test_how_long_a_leader_counts_itself_as_live(
    voters: tuple[int, ...], is_established: bool, left_ms: int, expected: int
) -> None:
    """For a fetch timeout after a majority has fetched; one without other voters always."""
    core, role = leading(voters)
    role.established = is_established
    since_ms = NOW_MS + left_ms - core.config.fetch_timeout_ms
    role.check_quorum_deadline_ms = since_ms + core.config.check_quorum_ms
    assert live_leader(core) == expected


def test_who_neither_leads_nor_follows_knows_no_live_leader() -> None:
    assert live_leader(core_of(Unattached(NEVER_MS))) == NO_NODE


@pytest.mark.parametrize(
    ("epoch", "present", "expected"),
    [
        (-1, 0, True),
        (0, EPOCH, False),
        (EPOCH + RESPONSE_RAISE_MAX, EPOCH, False),
        (EPOCH + RESPONSE_RAISE_MAX + 1, EPOCH, True),
        (EPOCH_MAX, EPOCH_MAX - 1, False),
        (EPOCH_MAX + 1, EPOCH_MAX - 1, True),
    ],
)
def test_how_far_a_response_may_be_ahead(epoch: int, present: int, expected: bool) -> None:
    core = core_of(follower())
    core.adopt_election(ElectionState(present, LEADER))
    assert is_out_of_reach(core, epoch) is expected


# Candidates.


@pytest.mark.parametrize(
    ("role", "request_", "expected"),
    [
        ({}, vote(key(3), EPOCH + 1), None),
        ({}, vote(key(3), EPOCH + 1, last=BEHIND), None),
        ({}, vote(key(3), EPOCH + RAISES_MAX), None),
        ({}, vote(key(3), EPOCH + RAISES_MAX + 1), TOO_FAR),
        (CONTACT, vote(key(3), EPOCH), None),
        (CONTACT, vote(key(3), EPOCH + 1), OF_LEADER),
        ({}, vote(STRANGER, EPOCH + 1, last=AHEAD), None),
        ({}, vote(STRANGER, EPOCH + 1, last=END),
         (VoteRejection.UNKNOWN_CANDIDATE, f"{END} is not above {END}")),
        ({}, vote(STRANGER, EPOCH, last=BEHIND),
         (VoteRejection.UNKNOWN_CANDIDATE, f"{BEHIND} is not above {END}")),
    ],
)  # fmt: skip
def test_which_vote_requests_a_voter_considers(
    role: dict[str, Any], request_: VoteRequest, expected: Rejection | None
) -> None:
    assert why_not_considered(core_of(follower(**role)), request_) == expected


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (vote(key(3), EPOCH), None),
        (vote(key(3), EPOCH + 1), AS_OBSERVER),
        (vote(key(3), EPOCH + 1, voter=ReplicaKey(0)), None),
        (vote(key(3), EPOCH + 1, voter=ME_UNKNOWN_DISK), None),
        (vote(STRANGER, EPOCH, last=AHEAD), None),
        (vote(STRANGER, EPOCH + 1, last=AHEAD), AS_OBSERVER),
        (vote(STRANGER, EPOCH + 1, last=AHEAD, voter=ME_UNKNOWN_DISK), AS_OBSERVER),
        (vote(STRANGER, EPOCH + 1, last=AHEAD, voter=key(1)), None),
        (vote(STRANGER, EPOCH + 1, last=END, voter=key(1)),
         (VoteRejection.UNKNOWN_CANDIDATE, f"{END} is not above {END}")),
        (vote(key(3), EPOCH + RAISES_MAX + 1, voter=key(1)), TOO_FAR),
    ],
)  # fmt: skip
def test_which_vote_requests_an_observer_considers(
    request_: VoteRequest, expected: Rejection | None
) -> None:
    assert why_not_considered(observer(), request_) == expected


@pytest.mark.parametrize(
    ("asked", "epoch", "is_considered"),
    [
        (key(2), EPOCH + 1, True),
        (ReplicaKey(2), EPOCH + 1, True),
        (key(2), EPOCH + 2, False),
        (key(3), EPOCH + 1, False),
        (None, EPOCH + 1, False),
    ],
)
def test_a_leader_considers_the_candidate_that_it_has_asked_to_campaign(
    asked: ReplicaKey | None, epoch: int, is_considered: bool
) -> None:
    core = core_of(follower())
    lead(core, asked_to_campaign=asked)
    rejection = why_not_considered(core, vote(key(2), epoch))
    assert rejection == (None if is_considered else (VoteRejection.LEADER_CONTACT, "leader 1"))


@pytest.mark.parametrize(
    ("is_complete", "epoch", "expected"),
    [
        (False, 1, (VoteRejection.BOOTSTRAPPING, "")),
        (False, 0, None),
        (True, 1, None),
    ],
)
def test_a_voter_takes_no_epoch_before_its_bootstrap_is_complete(
    is_complete: bool, epoch: int, expected: Rejection | None
) -> None:
    core = core_of(Unattached(NEVER_MS))
    state = BootstrapState(b"i" * 16, is_complete=is_complete)
    core.adopt_election(ElectionState(0, bootstrap_state=state))
    assert why_not_considered(core, vote(key(2), epoch)) == expected


def test_requests_raise_the_epoch_no_faster_than_elections_do() -> None:
    """Each jump is charged, a refused one is not; one election timeout gives one epoch back."""
    core = core_of(follower())
    core.now_ms = NOW_MS
    far = vote(key(3), EPOCH + RAISES_MAX - 1)
    assert why_not_considered(core, far) is None
    assert why_not_considered(core, vote(key(3), EPOCH + 2)) is not None
    assert why_not_considered(core, vote(key(3), EPOCH + 1)) is None
    assert why_not_considered(core, vote(key(3), EPOCH + 1)) is not None
    core.now_ms += core.config.election_timeout_ms
    assert why_not_considered(core, vote(key(3), EPOCH + 1)) is None
    assert why_not_considered(core, vote(key(3), EPOCH + 1)) is not None


# Leaders.


@pytest.mark.parametrize(
    ("is_observer", "role", "leader", "epoch", "expected"),
    [
        (False, {}, key(3), EPOCH, None),
        (False, {}, key(3), EPOCH + 1, None),
        (False, {}, key(3), EPOCH + RAISES_MAX + 1, UNKNOWN_LEADER_EPOCH),
        (False, CONTACT, key(3), EPOCH, None),
        (False, CONTACT, key(3), EPOCH + 1, UNKNOWN_LEADER_EPOCH),
        (False, {}, STRANGER, EPOCH + 1, INELIGIBLE),
        (True, {}, key(3), EPOCH, None),
        (True, {}, key(3), EPOCH + 1, UNKNOWN_LEADER_EPOCH),
        (True, {}, STRANGER, EPOCH + 1, INELIGIBLE),
    ],
)
def test_which_leaders_a_request_may_announce(
    is_observer: bool, role: dict[str, Any], leader: ReplicaKey, epoch: int, expected: Any
) -> None:
    core = observer() if is_observer else core_of(follower(**role))
    assert refusal_of_leader_claim(core, leader, epoch) == expected


@pytest.mark.parametrize(
    ("leader", "epoch", "leader_id", "voted", "expected"),
    [
        (key(2), 0, 2, key(2), False),
        (key(2), EPOCH, NO_NODE, None, True),
        (key(2), EPOCH + 1, NO_NODE, None, True),
        (STRANGER, EPOCH, NO_NODE, None, False),
        (STRANGER, EPOCH, 77, None, True),
        (STRANGER, EPOCH, NO_NODE, STRANGER, True),
        (STRANGER, EPOCH, 77, key(2), True),
        (STRANGER, EPOCH, NO_NODE, key(2), False),
        (STRANGER, EPOCH, NO_NODE, ReplicaKey(77, b"y" * 16), False),
        (STRANGER, EPOCH + 1, 77, STRANGER, False),
        (STRANGER, EPOCH - 1, 77, STRANGER, False),
    ],
)
def test_who_may_lead_an_epoch(
    leader: ReplicaKey, epoch: int, leader_id: NodeId, voted: ReplicaKey | None, expected: bool
) -> None:
    """A known voter; in the present epoch also its leader, and whom this replica voted for."""
    core = core_of(follower(leader_id))
    core.adopt_election(ElectionState(EPOCH, leader_id, voted))
    assert may_lead(core, leader, epoch) is expected
