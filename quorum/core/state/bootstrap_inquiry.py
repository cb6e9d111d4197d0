"""What a bootstrap voter has heard from another one while they found their quorum.

See: ``bootstrapping`` for the protocol.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from quorum.types import ZERO_UUID, NodeId, ReplicaKey, Uuid

VoterList: TypeAlias = tuple[tuple[NodeId, Uuid], ...]
"""The incarnation id of every bootstrap voter, ascending by node id."""


@dataclass(slots=True)
class Inquiry:
    """The question put to one bootstrap voter, and its newest answer."""

    voter: ReplicaKey
    due_ms: int
    """When to ask; while ``request_id`` is set, when to give up waiting."""
    request_id: int = 0
    """The request in flight; 0 for none."""
    failures: int = 0
    """Questions in a row that brought nothing new; they lengthen the pause."""
    incarnation_id: Uuid = ZERO_UUID
    voter_list: VoterList = ()


def without(voter_list: VoterList, missing: frozenset[NodeId]) -> VoterList:
    """``voter_list`` without the voters that may be missing."""
    return tuple(entry for entry in voter_list if entry[0] not in missing)
