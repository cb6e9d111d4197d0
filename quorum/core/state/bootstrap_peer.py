"""What a bootstrap voter knows of another one before epoch 1.

See: ``bootstrapping`` for the protocol.
"""

from __future__ import annotations

from dataclasses import dataclass
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


def without(voter_list: VoterList, missing: frozenset[NodeId]) -> VoterList:
    """``voter_list`` without the voters that may be missing."""
    return tuple(entry for entry in voter_list if entry[0] not in missing)
