"""The request that this replica must send to its leader about its own entry in the voter set.

See: ``quorum.core.membership.self_registration``; ADR 30.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorum.core.contract.reasons import NonVoterReason
from quorum.core.state.pending_change import ChangeKind
from quorum.core.voters.voter_set import VoterSet


@dataclass(slots=True)
class RegistrationNeed:
    """The change to ask for, and the voter set that it was derived from.

    Invariant: while ``basis`` is the voter set in force, ``change`` and ``problem`` are current.
    """

    basis: VoterSet | None = None
    change: ChangeKind | None = None
    """None for nothing to ask for."""
    problem: NonVoterReason | None = None
    """Why this disk does not vote, as last reported; None if it may."""

    def forget(self) -> None:
        """Derive the need again in the next turn: what it depends on has changed."""
        self.basis = None
