"""Broken replicas that help to elect a candidate that they must refuse."""

from __future__ import annotations

from quorum.core.contract.reasons import Rejection
from quorum.core.election import voting
from quorum.core.messages.vote_messages import VoteRequest
from quorum.core.node import startup
from quorum.core.protocol.role_transitions import new_ballots
from quorum.core.state.core_state import CoreState
from quorum.core.state.roles import Candidate, Role
from quorum.core.voters import majority
from quorum.types import NO_NODE, ElectionState
from tests.simulation.zoo.bug import Bug, Patch
from tests.simulation.zoo.rejections import BY_LOG, without


def candidacy_again(patch: Patch) -> None:
    """A node that voted for itself asks for votes again in that epoch after a restart."""
    starting_role = startup.starting_role

    def campaigns_again(core: CoreState) -> tuple[Role, ElectionState]:
        role, found = starting_role(core)
        if found.voted == core.me and found.leader_id == NO_NODE:
            deadline = core.random_election_deadline()
            return Candidate(deadline, new_ballots(core), fail_fast=False), found
        return role, found

    patch.setattr(startup, "starting_role", campaigns_again)


def vote_without_looking(patch: Patch) -> None:
    """A vote is granted without comparing the candidate's log."""
    why_not_grant = voting.why_not_grant

    def ignores_log(core: CoreState, request: VoteRequest) -> Rejection | None:
        rejection = why_not_grant(core, request)
        return without(rejection, *BY_LOG)

    patch.setattr(voting, "why_not_grant", ignores_log)


def half_is_enough(patch: Patch) -> None:
    """A quorum is n/2: two of four, one of three."""
    patch.setattr(majority, "quorum_size", lambda count: max(1, count // 2))


BUGS = (
    Bug(
        "candidacy-again-after-restart",
        candidacy_again,
        ("one-campaign",),
        "ADR 7",
    ),
    Bug(
        "vote-without-looking-at-the-log",
        vote_without_looking,
        ("leader-completeness", "committed-stays"),
        "Raft 5.4.1",
    ),
    Bug("quorum-of-half", half_is_enough, ("committed-on-majority", "one-leader"), "Raft 5.2"),
)
