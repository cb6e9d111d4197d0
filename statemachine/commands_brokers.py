"""Commands that brokers send about themselves, and those about one broker.

``statemachine.commands`` has all commands, these among them.
"""

from __future__ import annotations

from quorum.types import NodeId, Uuid
from quorum.values import value


@value
class Listener:
    """Address of a broker under one listener name."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


@value
class FeatureRange:
    """Levels of one feature that a process supports, both ends inclusive."""

    name: str
    min_level: int
    max_level: int


@value
class RegisterBroker:
    """Register a broker process; ``incarnation_id`` is new at every process start."""

    broker_id: NodeId
    cluster_id: str
    incarnation_id: Uuid
    listeners: tuple[Listener, ...] = ()
    features: tuple[FeatureRange, ...] = ()
    rack: str | None = None
    log_dirs: tuple[Uuid, ...] = ()
    is_migrating_zk_broker: bool = False
    previous_broker_epoch: int = -1
    """The epoch stored at its last clean shutdown; -1 after an unclean one."""
    dry_run: bool = False
    cordoned_log_dirs: tuple[Uuid, ...] | None = None
    """Those of ``log_dirs`` that take no new replicas; None: as they are registered now."""


@value
class BrokerHeartbeat:
    """Report that a broker is alive and how far it has applied the metadata; request changes.

    ``want_shutdown`` requests a controlled shutdown (380.4). ``metadata_offset`` is
    the last offset the broker has applied (inclusive, as in Kafka's request).
    """

    broker_id: NodeId
    broker_epoch: int
    metadata_offset: int
    want_fence: bool = False
    want_shutdown: bool = False
    offline_log_dirs: tuple[Uuid, ...] = ()
    dry_run: bool = False
    cordoned_log_dirs: tuple[Uuid, ...] | None = None
    """The directories that take no new replicas, if the broker decides that; else None."""


@value
class UnregisterBroker:
    """Remove a broker's registration."""

    broker_id: NodeId
    dry_run: bool = False


@value
class CordonLogDirs:
    """Let log directories of a broker take no new replicas, or take them again (KIP-1066).

    All of its directories if none is named. Replicas in them stay.
    """

    broker_id: NodeId
    log_dirs: tuple[Uuid, ...] = ()
    uncordon: bool = False
    dry_run: bool = False


@value
class PartitionNumbers:
    """Some partitions of one topic: the topic is named once (380.6)."""

    topic_id: Uuid
    partitions: tuple[int, ...]


@value
class DirectoryAssignment:
    """Replicas that are in one log directory."""

    directory_id: Uuid
    topics: tuple[PartitionNumbers, ...]


@value
class AssignReplicasToDirs:
    """A broker reports in which of its log directories replicas are (KIP-858)."""

    broker_id: NodeId
    broker_epoch: int
    directories: tuple[DirectoryAssignment, ...]
    dry_run: bool = False


@value
class AllocateProducerIds:
    """Request a block of producer ids for a broker's own clients."""

    broker_id: NodeId
    broker_epoch: int
    dry_run: bool = False
