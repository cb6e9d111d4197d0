"""What evaluating a command needs besides the image, and what it yields."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from quorum.types import NodeId, VersionRange
from statemachine.records import MetadataRecord
from statemachine.sessions import BrokerSessions, SessionUpdate

PARTITIONS_PER_COMMAND_MAX = 10_000
"""New or altered partitions in one command; above it POLICY_VIOLATION (KIP-599)."""

CONFIG_CHANGES_PER_COMMAND_MAX = 1_000
"""Keys in one command: an atomic batch above this would hold up everybody else."""


@dataclass(frozen=True, slots=True)
class PlacementDefaults:
    """What a topic gets when its creator names no counts (``num.partitions`` and so on)."""

    partition_count: int = 1
    replication_factor: int = 3


@dataclass(slots=True)
class EvaluationContext:
    """Facts about now that the image does not hold. Made once per group by the leader."""

    cluster_id: str
    next_offset: int
    """Offset that the command's first record will get."""
    now_ms: int
    """Monotonic; only session deadlines are compared with it."""
    wall_ms: int
    """The record timestamp, milliseconds since 1970."""
    rng: random.Random
    sessions: BrokerSessions
    principal: str = ""
    """Who sent the command that is evaluated."""
    uses_native_codec: bool = True
    """Whether own record types may be written; Kafka's readers know only their own."""
    kraft_version: int = 0
    """Finalised kraft.version, which lives in control records and not in the image."""
    voter_versions: Callable[[], Mapping[NodeId, Sequence[VersionRange] | None]] = dict
    """What each voter of the quorum says that it can run with; None for one that is not known."""
    defaults: PlacementDefaults = field(default_factory=PlacementDefaults)


@dataclass(slots=True)
class Prepared:
    """What a command comes to: facts for the log, and the fields of its answer.

    No records means that there is nothing to change. ``result`` holds msgpack-able values;
    empty when the position of the batch says it all.
    """

    records: list[MetadataRecord]
    result: dict[str, object] = field(default_factory=dict)
    session: SessionUpdate | None = None
    """What the leader shall remember of the broker that spoke, without a record."""
    headers: tuple[tuple[str, bytes | None], ...] = ()
    """Record headers for the first record, beside those that say who asked and why."""
    is_foreign: bool = False
    """The records are another controller's, copied without evaluating: where they contradict the
    metadata, the sender is at fault."""
