"""Input of an evaluation besides the image, and its result."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from quorum.types import NodeId, Uuid, VersionRange
from statemachine.placement import UsableBrokers
from statemachine.records import MetadataRecord
from statemachine.sessions import BrokerSessions, SessionUpdate

PARTITIONS_PER_COMMAND_MAX = 10_000
"""New or altered partitions in one command; above it POLICY_VIOLATION (KIP-599)."""

CONFIG_CHANGES_PER_COMMAND_MAX = 1_000
"""Keys in one command: a larger atomic batch would delay all other commands."""


DEFAULT_PARTITION_COUNT = 1
DEFAULT_REPLICATION_FACTOR = 3
"""Counts of a topic whose creator gives none (Kafka: ``num.partitions`` and so on)."""


class KnownBrokers:
    """What new partitions need of the registered brokers, found once for each state of theirs.

    Owned by whoever evaluates. Nothing of it is read once registrations or levels have changed.
    """

    __slots__ = ("first_states", "level", "registrations", "usable")

    def __init__(self) -> None:
        self.registrations: object = None
        """The map of registrations that ``usable`` follows from."""
        self.usable = UsableBrokers(())
        self.level: int | None = None
        """The metadata.version that ``first_states`` follows from, besides ``registrations``."""
        self.first_states: dict[
            tuple[NodeId, ...], tuple[tuple[NodeId, ...], tuple[Uuid, ...]]
        ] = {}
        """The ISR and the directories of a new partition, by its replicas."""


@dataclass(slots=True)
class EvaluationContext:
    """State outside the image that evaluation needs. Created once per group by the leader."""

    cluster_id: str
    next_offset: int
    """Offset that the command's first record will get."""
    now_ms: int
    """Monotonic; compared with session deadlines only."""
    wall_ms: int
    """The record timestamp, milliseconds since 1970."""
    rng: random.Random
    sessions: BrokerSessions
    principal: str = ""
    """Sender of the command."""
    uses_native_codec: bool = True
    """Whether our own record types may be written; Kafka's readers do not know them."""
    log_incarnation: bytes = b""
    """Id of the incarnation of the log, 16 bytes; empty: positions of any are accepted."""
    kraft_version: int = 0
    """Finalised kraft.version, which is in control records and not in the image."""
    voter_versions: Callable[[], Mapping[NodeId, Sequence[VersionRange] | None]] = dict
    """Supported versions that each voter reported; None for a voter that has not."""
    known_brokers: KnownBrokers = field(default_factory=KnownBrokers)
    """What follows from the registrations; kept from group to group."""


@dataclass(slots=True, init=False)
class Prepared:
    """Result of an evaluation: records for the log, and the fields of the answer.

    No records means no change. ``result`` holds msgpack-able values; empty if the position of
    the batch is the whole answer.
    """

    records: list[MetadataRecord]
    result: dict[str, object]
    session: SessionUpdate | None
    """Update of the broker's session in the leader's memory, without a record."""
    headers: tuple[tuple[str, bytes | None], ...]
    """Record headers for the first record, besides principal and reason."""
    is_foreign: bool
    """The records come from another controller and were not evaluated: if they contradict the
    metadata, the error is the sender's."""

    # Written out, because mypyc would leave a generated one to the interpreter (ADR 64).
    def __init__(
        self,
        records: list[MetadataRecord],
        result: dict[str, object] | None = None,
        session: SessionUpdate | None = None,
        headers: tuple[tuple[str, bytes | None], ...] = (),
        *,
        is_foreign: bool = False,
    ) -> None:
        self.records = records
        self.result = {} if result is None else result
        self.session = session
        self.headers = headers
        self.is_foreign = is_foreign
