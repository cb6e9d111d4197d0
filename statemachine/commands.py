"""Metadata commands that clients may send: one plain value per command.

A command is an intention. ``statemachine.prepare`` evaluates it against an image and returns
the records of the result. One command is one atomic batch and one sequence number (ADR 10); a
request that names several topics is several commands. Construction validates nothing:
``prepare`` refuses invalid commands with a protocol code, and they leave no trace.

See: DESIGN.md, KIP-631, KIP-455, KIP-584.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

from quorum.types import ZERO_UUID, NodeId, Uuid
from quorum.values import value
from statemachine.commands_brokers import AllocateProducerIds as AllocateProducerIds
from statemachine.commands_brokers import AssignReplicasToDirs as AssignReplicasToDirs
from statemachine.commands_brokers import BrokerHeartbeat as BrokerHeartbeat
from statemachine.commands_brokers import CordonLogDirs as CordonLogDirs
from statemachine.commands_brokers import DirectoryAssignment as DirectoryAssignment
from statemachine.commands_brokers import FeatureRange as FeatureRange
from statemachine.commands_brokers import Listener as Listener
from statemachine.commands_brokers import PartitionNumbers as PartitionNumbers
from statemachine.commands_brokers import RegisterBroker as RegisterBroker
from statemachine.commands_brokers import UnregisterBroker as UnregisterBroker
from statemachine.commands_security import AclEntry as AclEntry
from statemachine.commands_security import AclFilter as AclFilter
from statemachine.commands_security import AlterUserScramCredentials as AlterUserScramCredentials
from statemachine.commands_security import CreateAcls as CreateAcls
from statemachine.commands_security import DeleteAcls as DeleteAcls
from statemachine.commands_security import ScramDeletion as ScramDeletion
from statemachine.commands_security import ScramUpsertion as ScramUpsertion
from statemachine.import_state import NO_CHECKPOINT, SourcePosition
from statemachine.sections.configs import ResourceType as ResourceType

DEFAULT_COUNT = -1
"""A partition count or replication factor that the cluster's default decides."""


class ConfigOperation(IntEnum):
    """Operation on one key (KIP-339). APPEND and SUBTRACT are for list values only."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class UpgradeType(IntEnum):
    """Changes that a feature update allows (KIP-584)."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class ElectionType(IntEnum):
    """Replicas that a requested election may choose (KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1


@value
class ConfigChange:
    """One key of one resource. ``value`` is None for DELETE only."""

    name: str
    operation: int = ConfigOperation.SET
    value: str | None = None


@value
class IncrementalAlterConfigs:
    """Change some keys of one resource; keys not named keep their values.

    An empty ``resource_name`` with BROKER means the default of all brokers.
    """

    resource_type: int
    resource_name: str
    changes: tuple[ConfigChange, ...]
    dry_run: bool = False


@value
class ReplicaAssignment:
    """Replicas of one partition, the preferred leader first."""

    partition: int
    replicas: tuple[NodeId, ...]


@value
class CreateTopic:
    """Create one topic, with counts or with ``assignments``, never both."""

    name: str
    partition_count: int = DEFAULT_COUNT
    replication_factor: int = DEFAULT_COUNT
    assignments: tuple[ReplicaAssignment, ...] = ()
    configs: tuple[tuple[str, str | None], ...] = ()
    dry_run: bool = False


@value
class DeleteTopic:
    """Delete one topic, by name or by id. With both, they must belong together."""

    name: str = ""
    topic_id: Uuid = ZERO_UUID
    dry_run: bool = False


@value
class CreatePartitions:
    """Grow a topic to ``partition_count`` partitions in total.

    ``assignments``, if any, holds the replicas of each *new* partition in order.
    """

    name: str
    partition_count: int
    assignments: tuple[tuple[NodeId, ...], ...] = ()
    dry_run: bool = False


@value
class DeleteRecords:
    """Delete records of a topic. Always refused for the metadata log (630.7)."""

    topic: str
    partition: int = 0
    before_offset: int = -1
    dry_run: bool = False


@value
class IsrMember:
    """A replica proposed for the ISR. Epoch -1 skips the check of its registration."""

    broker_id: NodeId
    broker_epoch: int = -1


@value
class PartitionAlteration:
    """A change that a partition's leader requests, and the epochs it was decided from."""

    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[IsrMember, ...]
    leader_recovery_state: int = 0


@value
class TopicAlteration:
    """Alterations of one topic's partitions: the topic is named once (380.6)."""

    topic_id: Uuid
    partitions: tuple[PartitionAlteration, ...]


@value
class AlterPartition:
    """A broker reports ISR changes of partitions that it leads (KIP-497, KIP-903)."""

    broker_id: NodeId
    broker_epoch: int
    topics: tuple[TopicAlteration, ...]
    dry_run: bool = False


@value
class FeatureUpdate:
    """The new level of one feature; 0 removes it."""

    name: str
    level: int
    upgrade_type: int = UpgradeType.UPGRADE


@value
class UpdateFeatures:
    """Finalise feature levels; all updates take effect or none."""

    updates: tuple[FeatureUpdate, ...]
    dry_run: bool = False


@value
class InitProducerId:
    """Request a producer identity, or a new epoch of it (KIP-360).

    A ``transactional_id`` keeps its producer id over restarts; None requests a fresh id each
    time. ``producer_id`` and ``producer_epoch`` are the present identity, both -1 for none. The
    timeout applies to a named producer.
    """

    transactional_id: str | None = None
    producer_id: int = -1
    producer_epoch: int = -1
    timeout_ms: int = 60_000
    dry_run: bool = False


@value
class ElectLeaders:
    """Elect leaders of the given partitions of one topic; all of them when empty."""

    topic: str
    partitions: tuple[int, ...] = ()
    election_type: int = ElectionType.PREFERRED
    dry_run: bool = False


@value
class ImportBatch:
    """Copy one range of another cluster's metadata: from ``begin`` to ``end``, exclusive.

    ``records`` are encoded metadata records of Kafka's types, in either codec. The first command
    begins the import with an empty range: at the beginning of the source's log or checkpoint.
    Every command names the same checkpoint. The last one ends the import.
    """

    source_cluster_id: str
    begin: SourcePosition
    end: SourcePosition
    records: tuple[bytes, ...] = ()
    checkpoint_offset: int = NO_CHECKPOINT
    is_last: bool = False
    dry_run: bool = False


@value
class ReadEpoch:
    """An epoch that a consumer has read, with the log digest below its start, if known."""

    epoch: int
    start_offset: int
    log_digest: bytes = b""


@value
class CommitPosition:
    """Store how far a group has read the log; fields as in ``quorum.log_position.LogPosition``."""

    group: str
    offset: int
    leader_epoch: int = -1
    epochs: tuple[ReadEpoch, ...] = ()
    log_digest: bytes = b""
    log_incarnation: bytes = b""
    metadata: str = ""
    dry_run: bool = False


@value
class WithPosition:
    """A command, and the position that it was computed from, in one batch: both or neither."""

    command: SingleCommand
    position: CommitPosition

    @property
    def dry_run(self) -> bool:
        """Whether the command is only evaluated."""
        return self.command.dry_run


SingleCommand: TypeAlias = (
    IncrementalAlterConfigs
    | CreateTopic
    | DeleteTopic
    | CreatePartitions
    | DeleteRecords
    | AlterPartition
    | RegisterBroker
    | BrokerHeartbeat
    | UnregisterBroker
    | UpdateFeatures
    | AllocateProducerIds
    | InitProducerId
    | ElectLeaders
    | ImportBatch
    | CreateAcls
    | DeleteAcls
    | CommitPosition
    | AlterUserScramCredentials
    | CordonLogDirs
    | AssignReplicasToDirs
)
Command: TypeAlias = SingleCommand | WithPosition
