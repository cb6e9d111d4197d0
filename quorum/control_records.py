"""The control records that the quorum itself writes into the log, as plain values.

Their bytes are ``quorum.control``'s work; when they are written is the core's.
"""

from __future__ import annotations

from typing import TypeAlias

from quorum.types import NodeId, ReplicaKey, TaggedFields, Voter
from quorum.values import value


@value
class LeaderChange:
    """Control record that opens every epoch."""

    leader_id: NodeId
    voters: tuple[NodeId, ...]
    granting: tuple[NodeId, ...]
    tagged: TaggedFields = ()


@value
class KRaftVersion:
    """Control record with the finalised kraft.version (1: voters live in the log)."""

    version: int
    tagged: TaggedFields = ()


@value
class Voters:
    """Control record with the whole voter set from here on.

    The last two ride in tagged fields, which readers of Kafka step over.
    """

    voters: tuple[Voter, ...]
    tagged: TaggedFields = ()
    removed: tuple[ReplicaKey, ...] = ()
    """Tombstones: replicas that were voters once and do not come back unasked; ascending."""
    readmitted: tuple[ReplicaKey, ...] = ()
    """Whose tombstone this very record lifts, by an operator's explicit act."""


ControlRecord: TypeAlias = LeaderChange | KRaftVersion | Voters
