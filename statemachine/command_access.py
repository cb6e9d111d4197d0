"""What a caller must be allowed to do before its command is evaluated; as in Kafka's controller.

One entry per command: the actions of which any one suffices. The names are those of the command, or
of the image that it is evaluated on, so that a topic's id cannot stand for another topic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from quorum.errors import ErrorCode
from quorum.types import METADATA_TOPIC, ZERO_UUID
from statemachine import commands
from statemachine.commands import ResourceType
from statemachine.prepare.view import View
from statemachine.sections.acl_index import CLUSTER_NAME, AclOperation, Action, ResourceKind

Needs: TypeAlias = tuple[Action, ...]
"""Actions of which one must be allowed."""

CHANGING: Final = frozenset(
    int(each)
    for each in AclOperation
    if each
    not in (
        AclOperation.ANY,
        AclOperation.READ,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.DESCRIBE_TOKENS,
    )
)
"""Operations that change something. Who may do one of them may also have a producer id."""
CHANGEABLE: Final = frozenset(
    {int(ResourceKind.TOPIC), int(ResourceKind.GROUP), int(ResourceKind.TRANSACTIONAL_ID)}
)
"""Kinds of which a client may change a resource by its name. Where no ACL may mean yes, who may
change a resource of one that no ACL names may also have a producer id."""

REFUSAL_OF: Final[Mapping[int, ErrorCode]] = {
    ResourceKind.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceKind.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceKind.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""Kafka's code by kind of resource; CLUSTER_AUTHORIZATION_FAILED for all others."""


def on_cluster(operation: AclOperation) -> Action:
    """Return an action on the cluster as a whole."""
    return Action(int(ResourceKind.CLUSTER), CLUSTER_NAME, int(operation))


def on_topic(name: str, operation: AclOperation) -> Action:
    """Return an action on one topic."""
    return Action(int(ResourceKind.TOPIC), name, int(operation))


READ_LOG: Final = on_topic(METADATA_TOPIC, AclOperation.READ)
DESCRIBE_LOG: Final = on_topic(METADATA_TOPIC, AclOperation.DESCRIBE)
DESCRIBE_CLUSTER: Final = on_cluster(AclOperation.DESCRIBE)
_ALTER_CLUSTER: Final = (on_cluster(AclOperation.ALTER),)
_CLUSTER_ACTION: Final = (on_cluster(AclOperation.CLUSTER_ACTION),)
_CREATE_ANYWHERE: Final = on_cluster(AclOperation.CREATE)
IDEMPOTENT_WRITE: Final = on_cluster(AclOperation.IDEMPOTENT_WRITE)
_TOPIC: Final = int(ResourceType.TOPIC)
_GROUP: Final = int(ResourceType.GROUP)
_KIND_TOPIC: Final = int(ResourceKind.TOPIC)
_ALTER_CONFIGS: Final = int(AclOperation.ALTER_CONFIGS)


def config_action(resource_type: int, name: str, operation: int) -> Action:
    """Return an action on the configuration of a resource; all but topics and groups belong to
    the cluster.
    """
    if resource_type == _TOPIC:
        return Action(_KIND_TOPIC, name, operation)
    if resource_type == _GROUP:
        return Action(int(ResourceKind.GROUP), name, operation)
    return Action(int(ResourceKind.CLUSTER), CLUSTER_NAME, operation)


def _alter_configs(_view: View, command: commands.IncrementalAlterConfigs) -> Needs:
    return (config_action(command.resource_type, command.resource_name, _ALTER_CONFIGS),)


def _create_topic(_view: View, command: commands.CreateTopic) -> Needs:
    return (_CREATE_ANYWHERE, on_topic(command.name, AclOperation.CREATE))


def _delete_topic(view: View, command: commands.DeleteTopic) -> Needs:
    name: str | None = command.name
    if command.topic_id != ZERO_UUID:
        # The id counts; a name beside it must agree, or the command is refused.
        name = view.topics.name_of(command.topic_id) or command.name
    return (on_cluster(AclOperation.DELETE), on_topic(name or "", AclOperation.DELETE))


def _create_partitions(_view: View, command: commands.CreatePartitions) -> Needs:
    return (on_topic(command.name, AclOperation.ALTER),)


def _delete_records(_view: View, command: commands.DeleteRecords) -> Needs:
    return (on_topic(command.topic, AclOperation.DELETE),)


def _init_producer_id(_view: View, command: commands.InitProducerId) -> Needs:
    if command.transactional_id is None:
        return (IDEMPOTENT_WRITE,)
    kind = int(ResourceKind.TRANSACTIONAL_ID)
    return (Action(kind, command.transactional_id, int(AclOperation.WRITE)),)


def on_group(name: str, operation: AclOperation) -> Action:
    """Return an action on a group of consumers."""
    return Action(int(ResourceKind.GROUP), name, int(operation))


def _commit_position(_view: View, command: commands.CommitPosition) -> Needs:
    return (on_group(command.group, AclOperation.READ),)


def _always(needs: Needs) -> Callable[[View, Any], Needs]:
    return lambda _view, _command: needs


NEEDS: Final[Mapping[type[commands.Command], Callable[[View, Any], Needs]]] = {
    commands.IncrementalAlterConfigs: _alter_configs,
    commands.CreateTopic: _create_topic,
    commands.DeleteTopic: _delete_topic,
    commands.CreatePartitions: _create_partitions,
    commands.DeleteRecords: _delete_records,
    commands.AlterPartition: _always(_CLUSTER_ACTION),
    commands.RegisterBroker: _always(_CLUSTER_ACTION),
    commands.BrokerHeartbeat: _always(_CLUSTER_ACTION),
    commands.UnregisterBroker: _always(_ALTER_CLUSTER),
    commands.UpdateFeatures: _always(_ALTER_CLUSTER),
    commands.AllocateProducerIds: _always(_CLUSTER_ACTION),
    commands.InitProducerId: _init_producer_id,
    commands.ElectLeaders: _always(_ALTER_CLUSTER),
    commands.ImportBatch: _always(_ALTER_CLUSTER),
    commands.CreateAcls: _always(_ALTER_CLUSTER),
    commands.DeleteAcls: _always(_ALTER_CLUSTER),
    commands.CommitPosition: _commit_position,
    commands.AlterUserScramCredentials: _always(_ALTER_CLUSTER),
    # In Kafka it is the configuration cordoned.log.dirs of the broker.
    commands.CordonLogDirs: _always((on_cluster(AclOperation.ALTER_CONFIGS),)),
    commands.AssignReplicasToDirs: _always(_CLUSTER_ACTION),
}
"""What each command needs. A command that is missing here is refused. A command with a position
needs what both of its parts need."""
