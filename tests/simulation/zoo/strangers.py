"""Broken replicas that believe a stranger: what it says of epochs, of leaders and of addresses."""

from __future__ import annotations

from typing import Any

from quorum.core.contract.output import LeaderEndpoints
from quorum.core.contract.reasons import Rejection
from quorum.core.membership import self_registration
from quorum.core.messages.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
)
from quorum.core.node import routing
from quorum.core.protocol import epoch_claims, refusals, responses, role_transitions
from quorum.core.state.core_state import CoreState
from quorum.types import Endpoint, Epoch, NodeId, ReplicaKey
from simulation.options import Options
from tests.simulation.zoo.bug import Bug, Patch


def requests_raise_any_epoch(patch: Patch) -> None:
    """Any vote request or word of a leader moves its receiver to the epoch that it names."""
    patch.setattr(epoch_claims, "_why_not_raise", lambda core, epoch: None)


def fresh_voter_takes_an_epoch(patch: Patch) -> None:
    """A voter whose bootstrap is not complete takes an epoch from a request."""
    why_not_raise = epoch_claims._why_not_raise

    def believes(core: CoreState, epoch: Epoch) -> Rejection | None:
        return None if core.is_bootstrapping else why_not_raise(core, epoch)

    patch.setattr(epoch_claims, "_why_not_raise", believes)


def responses_raise_any_epoch(patch: Patch) -> None:
    """A response may be ahead by all epochs that there are."""
    patch.setattr(
        responses, "is_out_of_reach", lambda core, epoch: not 0 <= epoch <= refusals.EPOCH_MAX
    )


def any_leader_is_followed(patch: Patch) -> None:
    """Whoever says that it leads is followed, voter or not."""
    patch.setattr(epoch_claims, "may_lead", lambda core, leader, epoch: True)


def endpoints_from_messages(patch: Patch) -> None:
    """A leader is looked for where the last message says, and not where its record says."""

    def learn(core: CoreState, endpoints: tuple[Endpoint, ...]) -> None:
        known = endpoints or core.voters.endpoints_of(core.leader_id)
        if known and known != core.known_leader.endpoints:
            core.known_leader.endpoints = known
            key = ReplicaKey(core.leader_id)
            core.progress(LeaderEndpoints(key, tuple(each.address for each in known)))

    for module in (role_transitions, responses):
        patch.setattr(module, "learn_endpoints", learn)


def anybody_changes_the_voters(patch: Patch) -> None:
    """A leader takes up a change of the voters from whoever asks in a voter's name."""

    def believes(core: CoreState, sender: NodeId, request: Any, *, is_proven: bool) -> None:
        self_registration.on_voter_request(core, sender, request, is_proven=True)

    changes = (UpdateVoterRequest, AddVoterRequest, RemoveVoterRequest)
    patch.setattr(
        routing, "PROOF_HANDLERS", routing.PROOF_HANDLERS | dict.fromkeys(changes, believes)
    )


_FORGED = Options("garbage")

BUGS = (
    Bug(
        "requests-raise-any-epoch",
        requests_raise_any_epoch,
        ("liveness",),
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
        ("no-crash", "committed-on-majority", "rightly-disqualified"),
        "this project: made-up answers set a intact log aside, forged records were served",
        options=_FORGED,
    ),
    Bug(
        "anybody-changes-the-voters",
        anybody_changes_the_voters,
        ("proven-changes",),
        "this project: a stranger was a voter's address, voted in its name and lost commits",
        options=_FORGED,
    ),
)
