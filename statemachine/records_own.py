"""Our own record types, in the reserved key range from 20000 on.

The native codec writes them directly; the kafka codec embeds them in a NoOpRecord (ADR 41).
Field lists only ever grow at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from quorum.types import ZERO_UUID
from statemachine.records_schema import (
    Int8,
    Int16,
    Int32,
    Int64,
    MetadataRecord,
    Since,
    UuidValue,
    WireStruct,
)

OWN_API_KEY_MIN = 20000
"""First key of the reserved range."""


@dataclass(frozen=True, slots=True)
class AppliedSequence(WireStruct):
    """The first answer to one applied command of a producer.

    ``offset`` is the end offset (exclusive) of the command's batch and ``epoch`` its leader
    epoch; ``answer`` holds the remaining answer fields as msgpack, None when there are none.
    """

    sequence: Int32 = 0
    offset: Int64 = 0
    epoch: Int32 = 0
    answer: bytes | None = None


@dataclass(slots=True)
class ProducerStateRecord(MetadataRecord):
    """One row of the producer table; appears in checkpoints only (360.5).

    ``owner`` is the digest of the principal that requested the producer, empty if unknown.
    ``fingerprints`` are those of the commands in ``applied``, in the same order: an empty entry
    if one is unknown, no entries if all are. ``successor_id`` is the id that replaced this one
    after its last epoch, -1 for none (360.3).
    """

    API_KEY: ClassVar[int] = 20000
    VERSION_MAX: ClassVar[int] = 2
    IDENTITY = ("producer_id",)
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    last_sequence: Int32 = -1
    oldest_open: Int32 = 0
    last_timestamp_ms: Int64 = -1
    applied: tuple[AppliedSequence, ...] = ()
    owner: Annotated[bytes, Since(1)] = b""
    fingerprints: Annotated[tuple[bytes, ...], Since(1)] = ()
    successor_id: Annotated[Int64, Since(2)] = -1


@dataclass(slots=True)
class InitProducerRecord(MetadataRecord):
    """Assigns a producer id, or a newer epoch of one; sequences start at 0 (360.8).

    A new id is at or above the image's next producer id, which then moves behind it. With
    ``previous_producer_id`` it replaces an id whose epochs are used up. That one then gets the
    epoch reserved for fencing, so that nobody writes under it any more (360.3).
    """

    API_KEY: ClassVar[int] = 20001
    VERSION_MAX: ClassVar[int] = 1
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    previous_producer_id: Annotated[Int64, Since(1)] = -1


@dataclass(slots=True)
class ExpireProducerRecord(MetadataRecord):
    """Removes a producer and its kept answers."""

    API_KEY: ClassVar[int] = 20002
    producer_id: Int64 = 0


@dataclass(slots=True)
class BrokerFencedEvent(MetadataRecord):
    """A broker was fenced; every replica derives the partition changes itself (630.17).

    ``derivation_version`` names the frozen rules (``statemachine.derivation``). With
    ``unclean`` the broker also leaves every ELR, because it may have lost its data.
    """

    API_KEY: ClassVar[int] = 20003
    broker_id: Int32 = 0
    broker_epoch: Int64 = 0
    derivation_version: Int16 = 1
    unclean: bool = False


@dataclass(slots=True)
class BrokerUnfencedEvent(MetadataRecord):
    """A broker was unfenced; replicas derive leaders for partitions without one."""

    API_KEY: ClassVar[int] = 20004
    broker_id: Int32 = 0
    broker_epoch: Int64 = 0
    derivation_version: Int16 = 1


@dataclass(slots=True)
class BrokerShutdownEvent(MetadataRecord):
    """A broker entered controlled shutdown; replicas derive the leaders that replace it."""

    API_KEY: ClassVar[int] = 20005
    broker_id: Int32 = 0
    broker_epoch: Int64 = 0
    derivation_version: Int16 = 1


@dataclass(slots=True)
class BrokerLeavingEvent(MetadataRecord):
    """A broker leaves part of its partitions, because a fence or a shutdown follows (ADR 74).

    It changes the partitions of topics with an id from ``start_topic_id`` on and below
    ``end_topic_id``, as the event that follows would, but only those that keep a leader without
    an unclean election. The broker's registration stays as it is.
    """

    API_KEY: ClassVar[int] = 20014
    broker_id: Int32 = 0
    broker_epoch: Int64 = 0
    derivation_version: Int16 = 1
    unclean: bool = False
    start_topic_id: UuidValue = ZERO_UUID
    end_topic_id: UuidValue = ZERO_UUID


@dataclass(slots=True)
class BrokerEpochRecord(MetadataRecord):
    """The highest broker epoch ever registered; appears in checkpoints only (380.1)."""

    API_KEY: ClassVar[int] = 20006
    IDENTITY = ()
    highest_broker_epoch: Int64 = -1


@dataclass(frozen=True, slots=True)
class TransactionPartitions(WireStruct):
    """Partitions of one topic that take part in a producer's transaction."""

    topic_name: str = ""
    partitions: tuple[Int32, ...] = ()


@dataclass(slots=True)
class TransactionalIdRecord(MetadataRecord):
    """The full state of one transactional id; replaces the previous one (360.2).

    ``status``: 0 Empty, 1 Ongoing, 2 PrepareCommit, 3 PrepareAbort, 4 CompleteCommit,
    5 CompleteAbort, 6 Dead, 7 PrepareEpochFence. -1 stands for "none" in ids and epochs.
    """

    API_KEY: ClassVar[int] = 20007
    IDENTITY = ("transactional_id",)
    HISTORY = ("entity", "transactional_id")
    transactional_id: str = ""
    producer_id: Int64 = -1
    previous_producer_id: Int64 = -1
    producer_epoch: Int16 = -1
    last_producer_epoch: Int16 = -1
    timeout_ms: Int32 = 0
    status: Int8 = 0
    partitions: tuple[TransactionPartitions, ...] = ()
    last_update_ms: Int64 = -1
    start_ms: Int64 = -1


@dataclass(slots=True)
class RemoveTransactionalIdRecord(MetadataRecord):
    """Forgets a transactional id, which must exist."""

    API_KEY: ClassVar[int] = 20008
    HISTORY = ("entity", "transactional_id")
    transactional_id: str = ""


@dataclass(slots=True)
class BeginImportRecord(MetadataRecord):
    """Begins the import of another cluster's metadata; drops the levels finalised by formatting.

    ``checkpoint_offset`` is the end offset of the source's checkpoint that the import starts
    from, -1 for none. The position is that of the first source record: in that checkpoint, or
    in the source's log. In the log only; record headers carry the progress after it.
    """

    API_KEY: ClassVar[int] = 20009
    HISTORY = ("entity", "source_cluster_id")
    source_cluster_id: str = ""
    checkpoint_offset: Int64 = -1
    is_in_checkpoint: bool = False
    next_offset: Int64 = 0


@dataclass(slots=True)
class ImportStateRecord(MetadataRecord):
    """The full progress of an import; in checkpoints, and in the log where the import ends.

    Fields as in ``BeginImportRecord``. Once it is finished, ``broker_epoch_max`` is the highest
    broker epoch that was imported.
    """

    API_KEY: ClassVar[int] = 20010
    IDENTITY = ()
    HISTORY = ("entity", "source_cluster_id")
    source_cluster_id: str = ""
    checkpoint_offset: Int64 = -1
    is_in_checkpoint: bool = False
    next_offset: Int64 = 0
    is_finished: bool = False
    broker_epoch_max: Int64 = -1


@dataclass(frozen=True, slots=True)
class AnsweredRequest(WireStruct):
    """The first answer to a command with a request id; the other fields as in ``AppliedSequence``.

    ``fingerprint`` is that of the command.
    """

    request_id: str = ""
    offset: Int64 = 0
    epoch: Int32 = 0
    answer: bytes | None = None
    fingerprint: bytes = b""


@dataclass(slots=True)
class AnsweredRequestsRecord(MetadataRecord):
    """The newest requests of a named writer, oldest first; appears in checkpoints only (360.8)."""

    API_KEY: ClassVar[int] = 20013
    IDENTITY = ("transactional_id",)
    transactional_id: str = ""
    requests: tuple[AnsweredRequest, ...] = ()
