"""What a bootstrap voter knows of the others before epoch 1.

See: ``quorum.core.election.bootstrapping`` for the protocol.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.types import ZERO_UUID, NodeId, ReplicaKey, Uuid

VoterList: TypeAlias = tuple[tuple[NodeId, Uuid], ...]
"""The incarnation id of every bootstrap voter, ascending by node id."""


@dataclass(slots=True, eq=False, kw_only=True)
class BootstrapPeer(PeerRequest):
    """The request to one bootstrap voter, and its newest answer.

    An answer that is not the last one counts as a failure: the same is asked again, less often.
    """

    purpose: Purpose = Purpose.BOOTSTRAP
    voter: ReplicaKey
    incarnation_id: Uuid = ZERO_UUID
    voter_list: VoterList = ()


@dataclass(slots=True)
class BootstrapProgress:
    """How far the agreement of the bootstrap voters has come, as this voter knows it."""

    peers: dict[NodeId, BootstrapPeer] = field(default_factory=dict)
    """The other bootstrap voters; empty once the quorum is bootstrapped."""
    without: frozenset[NodeId] = frozenset()
    """Voters that the operator does not wait for, at the operator's own risk."""

    @property
    def required(self) -> list[NodeId]:
        """Return the voters that have to agree before epoch 1."""
        return [voter_id for voter_id in self.peers if voter_id not in self.without]


def without(voter_list: VoterList, missing: frozenset[NodeId]) -> VoterList:
    """Return ``voter_list`` without the voters that may be missing."""
    return tuple(entry for entry in voter_list if entry[0] not in missing)
