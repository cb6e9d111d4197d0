"""Protobuf commands to the state machine's command values.

Field by field and nothing more: what makes no sense is refused by ``statemachine.prepare``.
The one evaluation made here is a size that would not fit into a uuid.

The configuration change is the hot path: at most ~3 µs for one key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from quorum.errors import CommandError, ErrorCode
from quorum.types import ZERO_UUID, Uuid
from quorum.v1 import commands_pb2 as wire
from statemachine import commands
from statemachine.commands import Command
from statemachine.import_state import SourcePosition

Converter: TypeAlias = Callable[[Any], Command]
"""From one alternative of ``Command.kind``; protobuf's stubs know no common type for them."""


def to_command(message: wire.Command) -> Command:
    """The command that a message stands for.

    Raises:
        CommandError: INVALID_REQUEST when it names none, or a uuid has not 16 bytes.
    """
    kind = message.WhichOneof("kind")
    if kind is None:
        raise CommandError(ErrorCode.INVALID_REQUEST, "the command is empty or of an unknown kind")
    return CONVERTERS[kind](getattr(message, kind))


def _uuid(value: bytes, what: str) -> Uuid:
    if not value:
        return ZERO_UUID
    if len(value) != 16:
        raise CommandError(ErrorCode.INVALID_REQUEST, f"{what} has {len(value)} bytes, not 16")
    return value


def _given(message: Any, field: str) -> int:
    """An optional number, -1 when it is left out."""
    return getattr(message, field) if message.HasField(field) else -1


def _alter_configs(message: wire.IncrementalAlterConfigs) -> Command:
    # The wire's operations are one above the command's, because 0 must mean "unspecified". An
    # empty value is told from an absent one only where it matters: presence is slow to ask for.
    changes = [
        commands.ConfigChange(
            change.name,
            change.operation - 1,
            change.value or ("" if change.HasField("value") else None),
        )
        for change in message.alterations
    ]
    return commands.IncrementalAlterConfigs(
        message.resource_type, message.resource_name, tuple(changes), message.dry_run
    )


def _create_topic(message: wire.CreateTopic) -> Command:
    return commands.CreateTopic(
        name=message.name,
        partition_count=_given(message, "partition_count"),
        replication_factor=_given(message, "replication_factor"),
        assignments=tuple(
            commands.ReplicaAssignment(replicas.partition, tuple(replicas.broker_ids))
            for replicas in message.assignments
        ),
        configs=tuple(
            (config.name, config.value if config.HasField("value") else None)
            for config in message.configs
        ),
        dry_run=message.dry_run,
    )


def _delete_topic(message: wire.DeleteTopic) -> Command:
    return commands.DeleteTopic(
        name=message.name,
        topic_id=_uuid(message.topic_id, "topic id"),
        dry_run=message.dry_run,
    )


def _create_partitions(message: wire.CreatePartitions) -> Command:
    return commands.CreatePartitions(
        name=message.topic_name,
        partition_count=message.partition_count,
        assignments=tuple(tuple(replicas.broker_ids) for replicas in message.assignments),
        dry_run=message.dry_run,
    )


def _alter_partition(message: wire.AlterPartition) -> Command:
    return commands.AlterPartition(
        broker_id=message.broker_id,
        broker_epoch=message.broker_epoch,
        topics=tuple(
            commands.TopicAlteration(
                _uuid(topic.topic_id, "topic id"),
                tuple(_partition_alteration(partition) for partition in topic.partitions),
            )
            for topic in message.topics
        ),
        dry_run=message.dry_run,
    )


def _partition_alteration(message: wire.PartitionAlteration) -> commands.PartitionAlteration:
    return commands.PartitionAlteration(
        partition=message.partition,
        leader_epoch=message.leader_epoch,
        partition_epoch=message.partition_epoch,
        isr=tuple(
            commands.IsrMember(member.broker_id, _given(member, "broker_epoch"))
            for member in message.isr
        ),
        leader_recovery_state=message.leader_recovery_state,
    )


def _register_broker(message: wire.RegisterBroker) -> Command:
    return commands.RegisterBroker(
        broker_id=message.broker_id,
        cluster_id=message.cluster_id,
        incarnation_id=_uuid(message.incarnation_id, "incarnation id"),
        listeners=tuple(
            commands.Listener(
                listener.name, listener.host, listener.port, listener.security_protocol
            )
            for listener in message.listeners
        ),
        features=tuple(
            commands.FeatureRange(feature.name, feature.min_version, feature.max_version)
            for feature in message.features
        ),
        rack=message.rack if message.HasField("rack") else None,
        log_dirs=tuple(_uuid(directory, "log directory id") for directory in message.log_dirs),
        previous_broker_epoch=_given(message, "previous_broker_epoch"),
        dry_run=message.dry_run,
    )


def _broker_heartbeat(message: wire.BrokerHeartbeat) -> Command:
    return commands.BrokerHeartbeat(
        broker_id=message.broker_id,
        broker_epoch=message.broker_epoch,
        metadata_offset=message.metadata_offset,
        want_fence=message.want_fence,
        want_shutdown=message.want_shut_down,
        offline_log_dirs=tuple(
            _uuid(directory, "log directory id") for directory in message.offline_log_dirs
        ),
        dry_run=message.dry_run,
    )


def _unregister_broker(message: wire.UnregisterBroker) -> Command:
    return commands.UnregisterBroker(message.broker_id, message.dry_run)


def _update_features(message: wire.UpdateFeatures) -> Command:
    return commands.UpdateFeatures(
        updates=tuple(
            commands.FeatureUpdate(update.name, update.level, update.upgrade_type)
            for update in message.updates
        ),
        dry_run=message.dry_run,
    )


def _allocate_producer_ids(message: wire.AllocateProducerIds) -> Command:
    return commands.AllocateProducerIds(message.broker_id, message.broker_epoch, message.dry_run)


def _init_producer_id(message: wire.InitProducerId) -> Command:
    command = commands.InitProducerId(
        transactional_id=(
            message.transactional_id if message.HasField("transactional_id") else None
        ),
        producer_id=_given(message, "producer_id"),
        producer_epoch=_given(message, "producer_epoch"),
        dry_run=message.dry_run,
    )
    return replace(command, timeout_ms=message.timeout_ms) if message.timeout_ms else command


def _elect_leaders(message: wire.ElectLeaders) -> Command:
    return commands.ElectLeaders(
        topic=message.topic_name,
        partitions=tuple(message.partitions),
        election_type=message.election_type - 1,
        dry_run=message.dry_run,
    )


def _import_batch(message: wire.ImportBatch) -> Command:
    return commands.ImportBatch(
        source_cluster_id=message.source_cluster_id,
        begin=_source_position(message.begin),
        end=_source_position(message.end),
        records=tuple(message.records),
        checkpoint_offset=_given(message, "checkpoint_offset"),
        is_last=message.is_last,
        dry_run=message.dry_run,
    )


def _source_position(message: wire.SourcePosition) -> SourcePosition:
    return SourcePosition(not message.is_in_checkpoint, message.offset)


CONVERTERS: dict[str, Converter] = {
    "incremental_alter_configs": _alter_configs,
    "broker_heartbeat": _broker_heartbeat,
    "alter_partition": _alter_partition,
    "create_topic": _create_topic,
    "delete_topic": _delete_topic,
    "create_partitions": _create_partitions,
    "register_broker": _register_broker,
    "unregister_broker": _unregister_broker,
    "update_features": _update_features,
    "allocate_producer_ids": _allocate_producer_ids,
    "init_producer_id": _init_producer_id,
    "elect_leaders": _elect_leaders,
    "import_batch": _import_batch,
}
"""One entry per alternative of the oneof; a test compares the two."""
