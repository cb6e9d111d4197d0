"""The transition table is complete, closed and enforced."""

from __future__ import annotations

import random

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.reasons import RoleChangeCause, RoleChangeReason
from quorum.core.protocol import role_transitions
from quorum.core.protocol.role_transitions import TRANSITIONS, Step
from quorum.core.state.core_state import CoreState
from quorum.core.state.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from quorum.errors import InvariantViolation
from tests.support.core_disk import key

ROLES = (Unattached, Prospective, Candidate, Leader, Follower, Resigned)


def test_only_a_candidate_becomes_leader_and_only_a_prospective_a_candidate() -> None:
    """Goal: the forbidden changes of the reference. Method: read the table backwards."""
    assert {before for before, after, _ in TRANSITIONS if after is Leader} == {Candidate}
    assert {before for before, after, _ in TRANSITIONS if after is Candidate} == {Prospective}
    assert (Leader, Follower, Step.SAME) not in TRANSITIONS
    assert not any(before is Resigned and step is Step.SAME for before, _, step in TRANSITIONS)


def test_every_role_gives_way_to_a_newer_epoch() -> None:
    """Goal: no role keeps an old epoch. Method: both exits exist for each role."""
    for role in ROLES:
        assert (role, Unattached, Step.HIGHER) in TRANSITIONS
        assert (role, Follower, Step.HIGHER) in TRANSITIONS


def test_a_change_that_is_not_in_the_table_stops_the_node() -> None:
    """Goal: our own mistakes are loud. Method: make leaders and candidates of the wrong roles."""
    core = CoreState(
        config=QuorumConfig(), cluster_id="c", me=key(1), rng=random.Random(1), bootstrap=()
    )
    with pytest.raises(InvariantViolation, match="Unattached to Leader"):
        role_transitions.become_leader(core, (1,))
    with pytest.raises(InvariantViolation, match="Unattached to Candidate"):
        role_transitions.become_candidate(
            core, fail_fast=False, cause=RoleChangeCause(RoleChangeReason.RESPONSE)
        )
    assert isinstance(core.role, Unattached)


def test_a_vote_cannot_change_within_its_epoch() -> None:
    """Goal: never two votes, by construction. Method: save another vote in the same epoch."""
    core = CoreState(
        config=QuorumConfig(), cluster_id="c", me=key(1), rng=random.Random(1), bootstrap=()
    )
    role_transitions.become_unattached(
        core, 3, cause=RoleChangeCause(RoleChangeReason.RESPONSE), voted=key(2)
    )
    with pytest.raises(InvariantViolation, match="vote never changes"):
        core.save_election(type(core.election)(3, -1, key(3)))
    with pytest.raises(InvariantViolation, match="epoch never falls"):
        core.save_election(type(core.election)(2))
