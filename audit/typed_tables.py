"""Map one record to the rows of the typed tables that it changes.

The state always comes from the replay (``statemachine.delta``), never from a second computation.
Each function reads the state before its record is replayed and returns a function to call after
the replay. Every record type has an entry in ``EFFECTS`` or is named in ``WITHOUT_EFFECT``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from audit.typed_rows import (
    Effect,
    acl_effect,
    block_effect,
    broker_effect,
    config_effect,
    controller_effect,
    deleted_effect,
    feature_effect,
    partition_effect,
    producer_effect,
    quota_effect,
    topic_effect,
)
from quorum.types import Uuid, uuid_to_text
from statemachine import records
from statemachine.delta import ImageDelta
from statemachine.sections.configs import ResourceType

Derived: TypeAlias = list[records.PartitionChangeRecord]
"""The partition changes derived from a broker event, in the order they are replayed."""

After: TypeAlias = Callable[[], list[Effect]]
Before: TypeAlias = Callable[[ImageDelta, Any, Derived], After]


def _topic(_delta: ImageDelta, record: records.TopicRecord, _derived: Derived) -> After:
    return lambda: [topic_effect(record.topic_id, record.name)]


def _remove_topic(delta: ImageDelta, record: records.RemoveTopicRecord, _derived: Derived) -> After:
    topic_id = record.topic_id
    name = delta.topics.name_of(topic_id) or ""
    text = uuid_to_text(topic_id)
    resource = (int(ResourceType.TOPIC), name)
    effects = [
        deleted_effect("partitions", text, index, name)
        for index in sorted(delta.topics.partitions_of(topic_id))
    ]
    effects += [
        config_effect(resource, key, None, old)
        for key, old in sorted(delta.configs.of(*resource).items())
    ]
    effects.append(deleted_effect("topics", text, name))
    return lambda: effects


def _partitions_after(delta: ImageDelta, keys: list[tuple[Uuid, int, int]]) -> list[Effect]:
    """Return the current partitions by topic id, number and change index."""
    found = []
    for topic_id, index, change_index in keys:
        state = delta.topics.partition(topic_id, index)
        if state is not None:
            found.append(partition_effect(delta, topic_id, index, state, change_index))
    return found


def _partition(
    delta: ImageDelta,
    record: records.PartitionRecord | records.PartitionChangeRecord,
    _derived: Derived,
) -> After:
    key = (record.topic_id, record.partition_id, 0)
    return lambda: _partitions_after(delta, [key])


def _clear_elr(delta: ImageDelta, record: records.ClearElrRecord, _derived: Derived) -> After:
    topics = delta.topics
    if record.topic_name:
        named = topics.id_of(record.topic_name)
        ids = [] if named is None else [named]
    else:
        ids = sorted(delta.view().topics.names)
    keys = [
        (topic_id, index, 0)
        for topic_id in ids
        for index, state in sorted(topics.partitions_of(topic_id).items())
        if state.elr or state.last_known_elr
    ]
    return lambda: _partitions_after(delta, keys)


def _config(delta: ImageDelta, record: records.ConfigRecord, _derived: Derived) -> After:
    resource = (record.resource_type, record.resource_name)
    old = delta.configs.value(*resource, record.name)
    if record.value is None and old is None:
        return list
    return lambda: [config_effect(resource, record.name, record.value, old)]


def _broker_after(delta: ImageDelta, broker_id: int) -> list[Effect]:
    broker = delta.cluster.broker(broker_id)
    return [] if broker is None else [broker_effect(broker)]


def _broker(delta: ImageDelta, record: Any, _derived: Derived) -> After:
    return lambda: _broker_after(delta, record.broker_id)


def _old_fencing(
    delta: ImageDelta,
    record: records.FenceBrokerRecord | records.UnfenceBrokerRecord,
    _derived: Derived,
) -> After:
    return lambda: _broker_after(delta, record.id)


def _broker_event(delta: ImageDelta, record: Any, derived: Derived) -> After:
    keys = [
        (change.topic_id, change.partition_id, number)
        for number, change in enumerate(derived, start=1)
    ]
    return lambda: _broker_after(delta, record.broker_id) + _partitions_after(delta, keys)


def _unregister(
    _delta: ImageDelta, record: records.UnregisterBrokerRecord, _derived: Derived
) -> After:
    return lambda: [deleted_effect("brokers", record.broker_id)]


def _controller(
    delta: ImageDelta, record: records.RegisterControllerRecord, _derived: Derived
) -> After:
    def after() -> list[Effect]:
        controller = delta.cluster.controllers.get(record.controller_id)
        return [] if controller is None else [controller_effect(controller)]

    return after


def _unregister_controller(
    _delta: ImageDelta, record: records.UnregisterControllerRecord, _derived: Derived
) -> After:
    return lambda: [deleted_effect("controllers", record.controller_id)]


def _feature(_delta: ImageDelta, record: records.FeatureLevelRecord, _derived: Derived) -> After:
    return lambda: [feature_effect(record.name, record.feature_level)]


def _begin_import(
    delta: ImageDelta, _record: records.BeginImportRecord, _derived: Derived
) -> After:
    effects = [feature_effect(name, 0) for name in sorted(delta.view().features.levels)]
    return lambda: effects


def _block(delta: ImageDelta, _record: records.ProducerIdsRecord, _derived: Derived) -> After:
    return lambda: [block_effect(delta.producers.next_id)]


def _init_producer(
    delta: ImageDelta, record: records.InitProducerRecord, _derived: Derived
) -> After:
    old = delta.producers.next_id

    def after() -> list[Effect]:
        effects = [producer_effect(record.producer_id, record.producer_epoch)]
        if delta.producers.next_id != old:
            effects.append(block_effect(delta.producers.next_id))
        return effects

    return after


def _expire_producer(
    _delta: ImageDelta, record: records.ExpireProducerRecord, _derived: Derived
) -> After:
    return lambda: [deleted_effect("producer_ids", "producer", record.producer_id)]


def _quota(_delta: ImageDelta, record: records.ClientQuotaRecord, _derived: Derived) -> After:
    value = None if record.remove else record.value
    return lambda: [quota_effect(record.entity, record.key, value)]


def _acl(_delta: ImageDelta, record: records.AccessControlEntryRecord, _derived: Derived) -> After:
    return lambda: [acl_effect(record)]


def _remove_acl(
    _delta: ImageDelta, record: records.RemoveAccessControlEntryRecord, _derived: Derived
) -> After:
    return lambda: [deleted_effect("acls", uuid_to_text(record.id))]


EFFECTS: dict[type[records.MetadataRecord], Before] = {
    records.TopicRecord: _topic,
    records.RemoveTopicRecord: _remove_topic,
    records.PartitionRecord: _partition,
    records.PartitionChangeRecord: _partition,
    records.ClearElrRecord: _clear_elr,
    records.ConfigRecord: _config,
    records.RegisterBrokerRecord: _broker,
    records.BrokerRegistrationChangeRecord: _broker,
    records.FenceBrokerRecord: _old_fencing,
    records.UnfenceBrokerRecord: _old_fencing,
    records.BrokerFencedEvent: _broker_event,
    records.BrokerUnfencedEvent: _broker_event,
    records.BrokerShutdownEvent: _broker_event,
    records.BrokerLeavingEvent: _broker_event,
    records.UnregisterBrokerRecord: _unregister,
    records.RegisterControllerRecord: _controller,
    records.UnregisterControllerRecord: _unregister_controller,
    records.FeatureLevelRecord: _feature,
    records.BeginImportRecord: _begin_import,
    records.ProducerIdsRecord: _block,
    records.InitProducerRecord: _init_producer,
    records.ExpireProducerRecord: _expire_producer,
    records.ClientQuotaRecord: _quota,
    records.AccessControlEntryRecord: _acl,
    records.RemoveAccessControlEntryRecord: _remove_acl,
}

WITHOUT_EFFECT: frozenset[type[records.MetadataRecord]] = frozenset(
    {
        # Markers of transactions; ``audit.scan`` handles the changes between them.
        records.NoOpRecord,
        records.BeginTransactionRecord,
        records.EndTransactionRecord,
        records.AbortTransactionRecord,
        # Occur in checkpoints only.
        records.AnsweredRequestsRecord,
        records.BrokerEpochRecord,
        records.ProducerStateRecord,
        # Shown in ``history`` only, with hidden credentials.
        records.CommittedPositionRecord,
        records.RemoveCommittedPositionRecord,
        records.DelegationTokenRecord,
        records.RemoveDelegationTokenRecord,
        records.UserScramCredentialRecord,
        records.RemoveUserScramCredentialRecord,
        records.TransactionalIdRecord,
        records.RemoveTransactionalIdRecord,
        records.ZkMigrationStateRecord,
        records.ImportStateRecord,
    }
)
