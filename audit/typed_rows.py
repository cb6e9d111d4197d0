"""The row of a typed table for each entity of an image.

One function per table maps state to column values; ``state_effects`` returns all rows of a whole
image. ``audit.typed_tables`` decides when a row is due.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from audit.schema import DELETE, SET, own_columns
from quorum.types import Uuid
from statemachine import records
from statemachine.delta import ImageDelta
from statemachine.image import MetadataImage
from statemachine.payload import text_of_uuid
from statemachine.redaction import shown_config
from statemachine.sections.cluster import BrokerRegistration, ControllerRegistration
from statemachine.sections.configs import ResourceType
from statemachine.sections.partitions import PartitionState

View: TypeAlias = ImageDelta | MetadataImage


class Effect(NamedTuple):
    """One change of one entity: a typed row without its position.

    ``values`` are those of ``schema.own_columns(table)``, in that order.
    """

    table: str
    change: str
    values: tuple[Any, ...]
    change_index: int = 0
    is_derived: bool = False


def deleted_effect(table: str, *known: Any) -> Effect:
    """Return a deletion: the first columns are ``known``, the rest null."""
    missing = len(own_columns(table)) - len(known)
    return Effect(table, DELETE, (*known, *(None,) * missing))


def topic_effect(topic_id: Uuid, name: str) -> Effect:
    """Return a topic's current state."""
    return Effect("topics", SET, (text_of_uuid(topic_id), name))


def partition_effect(
    view: View, topic_id: Uuid, index: int, state: PartitionState, change_index: int = 0
) -> Effect:
    """Return a partition's current state; derived when ``change_index`` is above 0."""
    values = (
        text_of_uuid(topic_id),
        index,
        view.topics.name_of(topic_id),
        state.leader,
        state.leader_epoch,
        state.partition_epoch,
        state.replicas,
        state.isr,
        state.removing,
        state.adding,
        state.elr,
        state.last_known_elr,
        state.leader_recovery_state,
        [text_of_uuid(directory) for directory in state.directories],
    )
    return Effect("partitions", SET, values, change_index, change_index > 0)


def resource_type_name(resource_type: int) -> str:
    """Return ``topic``, ``broker`` and so on; the number for a type of a newer release."""
    try:
        return ResourceType(resource_type).name.lower()
    except ValueError:
        return str(resource_type)


def config_effect(
    resource: tuple[int, str], key: str, value: str | None, old_value: str | None
) -> Effect:
    """Return a configuration's current value, None if it was removed; secrets are hidden."""
    change = DELETE if value is None else SET
    name = (resource_type_name(resource[0]), resource[1], key)
    values = shown_config(key, value), shown_config(key, old_value)
    return Effect("configs", change, (*name, *values))


def _endpoints(endpoints: tuple[records.ListenerEndpoint, ...]) -> list[str]:
    return [f"{endpoint.name}://{endpoint.host}:{endpoint.port}" for endpoint in endpoints]


def broker_effect(broker: BrokerRegistration) -> Effect:
    """Return a broker's current registration."""
    values = (
        broker.id,
        broker.epoch,
        text_of_uuid(broker.incarnation_id),
        broker.rack,
        broker.fenced,
        broker.in_controlled_shutdown,
        _endpoints(broker.endpoints),
        [text_of_uuid(directory) for directory in broker.log_dirs],
    )
    return Effect("brokers", SET, values)


def controller_effect(controller: ControllerRegistration) -> Effect:
    """Return a controller's current registration."""
    values = (
        controller.id,
        text_of_uuid(controller.incarnation_id),
        _endpoints(controller.endpoints),
    )
    return Effect("controllers", SET, values)


def feature_effect(name: str, level: int) -> Effect:
    """Return a finalised feature level, 0 if it was removed."""
    if level == 0:
        return deleted_effect("features", name)
    return Effect("features", SET, (name, level))


def quota_effect(
    entity: tuple[records.QuotaEntity, ...], quota: str, value: float | None
) -> Effect:
    """Return a client quota's current value, None if it was removed."""
    parts = {
        part.entity_type: part.entity_name for part in sorted(entity, key=records.entity_order)
    }
    text = json.dumps(parts, ensure_ascii=False)
    return Effect("client_quotas", DELETE if value is None else SET, (text, quota, value))


def acl_effect(acl: records.AccessControlEntryRecord) -> Effect:
    """Return an ACL's current state."""
    values = (
        text_of_uuid(acl.id),
        acl.resource_type,
        acl.resource_name,
        acl.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )
    return Effect("acls", SET, values)


def block_effect(next_id: int) -> Effect:
    """Return the current counter of producer ids."""
    return Effect("producer_ids", SET, ("block", None, None, next_id))


def producer_effect(producer_id: int, epoch: int) -> Effect:
    """Return a producer's current epoch."""
    return Effect("producer_ids", SET, ("producer", producer_id, epoch, None))


def _all_topics(image: MetadataImage) -> Iterator[Effect]:
    for topic_id, name in sorted(image.topics.names.items()):
        yield topic_effect(topic_id, name)


def _all_partitions(image: MetadataImage) -> Iterator[Effect]:
    for topic_id, partitions in sorted(image.topics.partitions.items()):
        for index, state in sorted(partitions.items()):
            yield partition_effect(image, topic_id, index, state)


def _all_configs(image: MetadataImage) -> Iterator[Effect]:
    for resource, values in sorted(image.configs.resources.items()):
        for key, value in sorted(values.items()):
            yield config_effect(resource, key, value, None)


def _all_brokers(image: MetadataImage) -> Iterator[Effect]:
    for _, broker in sorted(image.brokers.items()):
        yield broker_effect(broker)


def _all_controllers(image: MetadataImage) -> Iterator[Effect]:
    for _, controller in sorted(image.controllers.items()):
        yield controller_effect(controller)


def _all_features(image: MetadataImage) -> Iterator[Effect]:
    for name, level in sorted(image.features.levels.items()):
        yield feature_effect(name, level)


def _all_producer_ids(image: MetadataImage) -> Iterator[Effect]:
    if image.producers.next_id:
        yield block_effect(image.producers.next_id)
    for producer_id, state in sorted(image.producers.states.items()):
        yield producer_effect(producer_id, state.epoch)


def _all_quotas(image: MetadataImage) -> Iterator[Effect]:
    groups = image.security.quotas.items()
    for entity, quotas in sorted(
        groups, key=lambda group: [records.entity_order(p) for p in group[0]]
    ):
        for quota, value in sorted(quotas.items()):
            yield quota_effect(entity, quota, value)


def _all_acls(image: MetadataImage) -> Iterator[Effect]:
    for _, acl in sorted(image.security.acls.items()):
        yield acl_effect(acl)


_ALL: dict[str, Callable[[MetadataImage], Iterator[Effect]]] = {
    "topics": _all_topics,
    "partitions": _all_partitions,
    "configs": _all_configs,
    "brokers": _all_brokers,
    "controllers": _all_controllers,
    "features": _all_features,
    "producer_ids": _all_producer_ids,
    "client_quotas": _all_quotas,
    "acls": _all_acls,
}


def state_effects(image: MetadataImage, table: str) -> Iterator[Effect]:
    """Yield every entity of one table in the image, each as 'set', sorted by key."""
    return _ALL[table](image)
