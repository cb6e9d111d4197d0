"""Broken replicas that trust a stranger's epochs, leaders or addresses."""

from __future__ import annotations

from typing import Any

from quorum.core.contract.output import LeaderEndpoints
from quorum.core.contract.reasons import Rejection
from quorum.core.election import voting
from quorum.core.membership import self_registration
from quorum.core.messages.read_messages import ReadRound
from quorum.core.messages.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
)
from quorum.core.node import routing
from quorum.core.protocol import (
    epoch_claims,
    leader_endpoints,
    refusals,
    responses,
    role_transitions,
)
from quorum.core.replication import fetch_answers
from quorum.core.state.core_state import CoreState
from quorum.core.state.known_leader import NamedBy
from quorum.core.state.rate_limits import RateLimits
from quorum.core.state.roles import Unattached
from quorum.types import Endpoint, Epoch, NodeId, ReplicaKey
from simulation.options import Options
from tests.simulation.experiments.asked_by_strangers import ASKED_BY_STRANGERS
from tests.simulation.zoo.bug import Bug, Patch


def requests_raise_any_epoch(patch: Patch) -> None:
    """Any vote request or announcement of a leader moves its receiver to its epoch."""
    patch.setattr(epoch_claims, "_why_not_raise", lambda *_: None)


def fresh_voter_takes_an_epoch(patch: Patch) -> None:
    """A voter whose bootstrap is not complete adopts an epoch from a request."""
    why_not_raise = epoch_claims._why_not_raise

    def believes(core: CoreState, epoch: Epoch, author: ReplicaKey) -> Rejection | None:
        return None if core.is_bootstrapping else why_not_raise(core, epoch, author)

    patch.setattr(epoch_claims, "_why_not_raise", believes)


def strangers_use_up_the_raises(patch: Patch) -> None:
    """Requests of strangers are charged to the budget of the voters."""
    charge = RateLimits.charge_raise

    def charge_all(
        limits: RateLimits, now_ms: int, cost_ms: int, budget_ms: int, *, is_known: bool
    ) -> bool:
        del is_known
        return charge(limits, now_ms, cost_ms, budget_ms, is_known=True)

    patch.setattr(RateLimits, "charge_raise", charge_all)


def votes_for_strangers_delay(patch: Patch) -> None:
    """A vote for a stranger starts the election timer anew, as one for a voter does."""
    record = voting._record_vote

    def delays(core: CoreState, candidate: ReplicaKey) -> None:
        record(core, candidate)
        if isinstance(core.role, Unattached):
            core.role.election_deadline_ms = core.random_election_deadline()

    patch.setattr(voting, "_record_vote", delays)


def responses_raise_any_epoch(patch: Patch) -> None:
    """A response may be ahead by any number of epochs."""
    patch.setattr(
        responses, "is_out_of_reach", lambda core, epoch: not 0 <= epoch <= refusals.EPOCH_MAX
    )


def any_leader_is_followed(patch: Patch) -> None:
    """A replica follows any sender that claims to lead, voter or not."""
    patch.setattr(epoch_claims, "may_lead", lambda core, leader, epoch: True)


def strangers_name_listeners(patch: Patch) -> None:
    """An unproven request is believed like the leader itself about the leader's listeners."""
    learn = leader_endpoints.learn_endpoints

    def believes(
        core: CoreState, endpoints: tuple[Endpoint, ...] = (), by: NamedBy = NamedBy.PEER
    ) -> None:
        learn(core, endpoints, NamedBy.LEADER if by is NamedBy.UNPROVEN else by)

    patch.setattr(role_transitions, "learn_endpoints", believes)


def listeners_named_to_nobody(patch: Patch) -> None:
    """A leader does not name its listeners to a replica that has no answer of it yet."""
    patch.setattr(fetch_answers, "NO_ROUND", ReadRound(0, -1))


def endpoints_from_messages(patch: Patch) -> None:
    """A leader's address is taken from the last message, not from the voters record."""

    def learn(
        core: CoreState, endpoints: tuple[Endpoint, ...] = (), by: NamedBy = NamedBy.PEER
    ) -> None:
        del by
        known = endpoints or core.voters.endpoints_of(core.leader_id)
        if known and known != core.known_leader.endpoints:
            core.known_leader.endpoints = known
            key = ReplicaKey(core.leader_id)
            core.progress(LeaderEndpoints(key, tuple(each.address for each in known)))

    for module in (role_transitions, responses):
        patch.setattr(module, "learn_endpoints", learn)


def anybody_changes_the_voters(patch: Patch) -> None:
    """A leader accepts a voter change from any caller that uses a voter's name."""

    def believes(core: CoreState, sender: NodeId, request: Any, *, is_proven: bool) -> None:
        self_registration.on_voter_request(core, sender, request, is_proven=True)

    changes = (UpdateVoterRequest, AddVoterRequest, RemoveVoterRequest)
    patch.setattr(
        routing, "PROOF_HANDLERS", routing.PROOF_HANDLERS | dict.fromkeys(changes, believes)
    )


_FORGED = Options("garbage")

BUGS = (
    Bug(
        "strangers-use-up-the-raises",
        strangers_use_up_the_raises,
        ("liveness",),
        "a review: an unknown candidate keeps voters from electing",
        experiment=ASKED_BY_STRANGERS,
    ),
    Bug(
        "votes-for-strangers-delay",
        votes_for_strangers_delay,
        ("liveness",),
        "a review: an unknown candidate keeps voters from electing",
        experiment=ASKED_BY_STRANGERS,
    ),
    Bug(
        "requests-raise-any-epoch",
        requests_raise_any_epoch,
        ("epochs", "liveness"),
        "this project: one vote request used up all epochs",
        options=_FORGED,
    ),
    Bug(
        "fresh-voter-takes-an-epoch",
        fresh_voter_takes_an_epoch,
        ("rightly-disqualified", "epochs", "liveness"),
        "this project: a vote request before the bootstrap disqualifies every disk",
        options=_FORGED,
    ),
    Bug(
        "responses-raise-any-epoch",
        responses_raise_any_epoch,
        ("epochs", "liveness"),
        "this project: one response used up all epochs",
        options=_FORGED,
    ),
    Bug(
        "any-leader-is-followed",
        any_leader_is_followed,
        ("committed-on-majority", "rightly-disqualified"),
        "this project: forged records of a stranger were served",
        options=_FORGED,
    ),
    Bug(
        "endpoints-from-messages",
        endpoints_from_messages,
        ("leader-addresses", "no-crash", "committed-on-majority", "rightly-disqualified"),
        "this project: forged answers quarantined an intact log, forged records were served",
        options=_FORGED,
    ),
    Bug(
        "strangers-name-listeners",
        strangers_name_listeners,
        ("leader-addresses",),
        "this project: a stranger's address was named to clients as the leader's",
        options=_FORGED,
    ),
    Bug(
        "listeners-named-to-nobody",
        listeners_named_to_nobody,
        ("leader-addresses",),
        "this project: replicas that had restarted sent clients to the peers' listener",
    ),
    Bug(
        "anybody-changes-the-voters",
        anybody_changes_the_voters,
        ("proven-changes",),
        "this project: a stranger at a voter's address voted in its name; commits were lost",
        options=_FORGED,
    ),
)
