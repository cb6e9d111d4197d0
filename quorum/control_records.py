"""The control records that the quorum itself writes into the log, as plain values.

``quorum.control`` encodes them; the core decides when to write them.
"""

from __future__ import annotations

from typing import TypeAlias

from quorum.incarnation import FIRST_INCARNATION, LogIncarnation
from quorum.types import NodeId, ReplicaKey, TaggedFields, Voter
from quorum.values import value


@value
class Origin:
    """Who asked for a change of the quorum, and why; empty text is not known.

    A change that a node requests for itself has a reason and no principal.
    """

    principal: str = ""
    reason: str = ""


@value
class LeaderChange:
    """Control record that opens every epoch."""

    leader_id: NodeId
    voters: tuple[NodeId, ...]
    granting: tuple[NodeId, ...]
    tagged: TaggedFields = ()
    origin: Origin | None = None
    """Who asked the leader before to transfer its leadership to this one; None: nobody, or it is
    not known. A tagged field, which Kafka's readers skip."""


@value
class KRaftVersion:
    """Control record with the finalised kraft.version (1: voters live in the log)."""

    version: int
    tagged: TaggedFields = ()


@value
class Voters:
    """Control record with the whole voter set from here on.

    The last four fields are tagged fields, which Kafka's readers skip.
    """

    voters: tuple[Voter, ...]
    tagged: TaggedFields = ()
    removed: tuple[ReplicaKey, ...] = ()
    """Tombstones: former voters that do not come back without an operator's request; ascending."""
    readmitted: tuple[ReplicaKey, ...] = ()
    """Replicas whose tombstones this record lifts, on an operator's request."""
    incarnation: LogIncarnation = FIRST_INCARNATION
    """The incarnation of the log, repeated by each voters record and by checkpoints."""
    origin: Origin | None = None
    """Who asked for this change of the set; None: it is not known, or the set did not change."""


ControlRecord: TypeAlias = LeaderChange | KRaftVersion | Voters
