"""What a replica knows of the leader of its epoch, besides the id in ``ElectionState``.

Invariant: ``lost`` and the endpoints are about the leader that the election state names. ``forget``
clears them when another leader, or none, takes its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from quorum.core.contract.output import LeadershipChanged
from quorum.core.voters.voter_set import VoterSet
from quorum.types import NO_NODE, Endpoint, LeaderAndEpoch

NO_LEADER = LeadershipChanged(NO_NODE, 0, is_leader=False, can_write=False)


class NamedBy(IntEnum):
    """Who named the endpoints of a leader, from the least believed to the most."""

    NOBODY = 0
    UNPROVEN = 1
    """A request of a caller that is not proven (ADR 52)."""
    ANSWERER = 2
    """Whoever answers at the address that an unproven request named."""
    PEER = 3
    """Another replica, in an answer."""
    LEADER = 4
    """The leader itself, in an answer or a proven request."""


@dataclass(slots=True)
class KnownLeader:
    """Whether the leader is gone, where it is reached, and what was announced about it."""

    lost: LeaderAndEpoch | None = None
    """The leader, once it is known to be gone (ADR 8)."""
    endpoints: tuple[Endpoint, ...] = ()
    """Those of its voter record, then those in ``named`` of other listeners."""
    named: tuple[Endpoint, ...] = ()
    """Those that messages named, of all its listeners."""
    named_by: NamedBy = NamedBy.NOBODY
    """Who named them."""
    basis: VoterSet | None = None
    """The voter set in force when ``endpoints`` were learned; None before."""
    announced: LeadershipChanged = NO_LEADER
    """The newest ``LeadershipChanged`` that the runtime was given."""

    @property
    def is_doubtful(self) -> bool:
        """Whether the endpoints are known from an unproven request, or from who answers there."""
        return NamedBy.NOBODY < self.named_by < NamedBy.PEER

    def forget(self) -> None:
        """Drop what is known of the former leader; it may have been named wrongly."""
        self.lost = None
        self.endpoints = ()
        self.named = ()
        self.named_by = NamedBy.NOBODY
        self.basis = None

    def announce(self, change: LeadershipChanged) -> bool:
        """Remember ``change`` as announced; return whether it differs from the one before."""
        if change == self.announced:
            return False
        self.announced = change
        return True
