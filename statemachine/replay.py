"""The table from record type to its effect on an image delta.

Replay is strict: a record that contradicts the state (an unknown broker, another epoch, a topic
that does not exist) raises ``ReplayError``. The leader evaluated it against this very state, so
either the log or the image is corrupt. Decoding refuses unknown record types
(``UnknownRecordError``), so they never arrive here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from statemachine import derivation, imports, records, transactions
from statemachine.fingerprint import owner_digest
from statemachine.sections.configs import ResourceType

if TYPE_CHECKING:
    from statemachine.open_image import OpenImage

Replay: TypeAlias = "Callable[[OpenImage, Any], None]"


def _register_broker(delta: OpenImage, record: records.RegisterBrokerRecord) -> None:
    delta.open_cluster().replay_registration(record)


def _unregister_broker(delta: OpenImage, record: records.UnregisterBrokerRecord) -> None:
    delta.open_cluster().replay_removal(record.broker_id, record.broker_epoch)


def _fence_broker(delta: OpenImage, record: records.FenceBrokerRecord) -> None:
    delta.open_cluster().set_fenced(record.id, record.epoch, fenced=True)


def _unfence_broker(delta: OpenImage, record: records.UnfenceBrokerRecord) -> None:
    delta.open_cluster().set_fenced(record.id, record.epoch, fenced=False)


def _change_registration(delta: OpenImage, record: records.BrokerRegistrationChangeRecord) -> None:
    delta.open_cluster().replay_change(record)


def _register_controller(delta: OpenImage, record: records.RegisterControllerRecord) -> None:
    delta.open_cluster().replay_controller(record)


def _unregister_controller(delta: OpenImage, record: records.UnregisterControllerRecord) -> None:
    delta.open_cluster().replay_controller_removal(record.controller_id)


def _feature_level(delta: OpenImage, record: records.FeatureLevelRecord) -> None:
    delta.open_features().replay_level(record)


def _zk_migration(delta: OpenImage, record: records.ZkMigrationStateRecord) -> None:
    delta.open_features().replay_migration(record)


def _topic(delta: OpenImage, record: records.TopicRecord) -> None:
    delta.open_topics().replay_topic(record)


def _partition(delta: OpenImage, record: records.PartitionRecord) -> None:
    delta.open_topics().replay_partition(record.topic_id, record.partition_id, record)


def _change_partition(delta: OpenImage, record: records.PartitionChangeRecord) -> None:
    delta.open_topics().replay_change(record.topic_id, record.partition_id, record)


def _remove_topic(delta: OpenImage, record: records.RemoveTopicRecord) -> None:
    name = delta.open_topics().replay_removal(record.topic_id)
    delta.open_configs().drop(ResourceType.TOPIC, name)


def _clear_elr(delta: OpenImage, record: records.ClearElrRecord) -> None:
    delta.open_topics().replay_clear_elr(record)


def _config(delta: OpenImage, record: records.ConfigRecord) -> None:
    delta.open_configs().replay(record)


def _client_quota(delta: OpenImage, record: records.ClientQuotaRecord) -> None:
    delta.open_security().replay_quota(record)


def _acl(delta: OpenImage, record: records.AccessControlEntryRecord) -> None:
    delta.open_security().replay_acl(record)


def _remove_acl(delta: OpenImage, record: records.RemoveAccessControlEntryRecord) -> None:
    delta.open_security().replay_acl_removal(record)


def _scram(delta: OpenImage, record: records.UserScramCredentialRecord) -> None:
    delta.open_security().replay_scram(record)


def _remove_scram(delta: OpenImage, record: records.RemoveUserScramCredentialRecord) -> None:
    delta.open_security().replay_scram_removal(record)


def _token(delta: OpenImage, record: records.DelegationTokenRecord) -> None:
    delta.open_security().replay_token(record)


def _remove_token(delta: OpenImage, record: records.RemoveDelegationTokenRecord) -> None:
    delta.open_security().replay_token_removal(record)


def _producer_ids(delta: OpenImage, record: records.ProducerIdsRecord) -> None:
    delta.open_producers().replay_ids(record)


def _producer_state(delta: OpenImage, record: records.ProducerStateRecord) -> None:
    delta.open_producers().replay_state(record)


def _init_producer(delta: OpenImage, record: records.InitProducerRecord) -> None:
    owner = owner_digest(delta.principal())
    delta.open_producers().replay_init(record, delta.timestamp_ms, owner)


def _expire_producer(delta: OpenImage, record: records.ExpireProducerRecord) -> None:
    delta.open_producers().replay_expiry(record.producer_id)


def _transactional_id(delta: OpenImage, record: records.TransactionalIdRecord) -> None:
    delta.open_producers().replay_transactional(record)


def _remove_transactional_id(delta: OpenImage, record: records.RemoveTransactionalIdRecord) -> None:
    delta.open_producers().replay_transactional_removal(record.transactional_id)


def _answered_requests(delta: OpenImage, record: records.AnsweredRequestsRecord) -> None:
    delta.open_producers().replay_requests(record)


def _commit_position(delta: OpenImage, record: records.CommittedPositionRecord) -> None:
    delta.open_positions().replay_commit(record)


def _remove_position(delta: OpenImage, record: records.RemoveCommittedPositionRecord) -> None:
    delta.open_positions().replay_removal(record.group)


def _broker_epoch(delta: OpenImage, record: records.BrokerEpochRecord) -> None:
    delta.open_cluster().replay_highest_epoch(record)


def _broker_fenced(delta: OpenImage, record: records.BrokerFencedEvent) -> None:
    _apply_derived(delta, record)
    delta.open_cluster().set_fenced(record.broker_id, record.broker_epoch, fenced=True)


def _broker_unfenced(delta: OpenImage, record: records.BrokerUnfencedEvent) -> None:
    _apply_derived(delta, record)
    delta.open_cluster().set_fenced(record.broker_id, record.broker_epoch, fenced=False)


def _broker_shutdown(delta: OpenImage, record: records.BrokerShutdownEvent) -> None:
    _apply_derived(delta, record)
    delta.open_cluster().set_shutting_down(record.broker_id, record.broker_epoch)


def _broker_leaving(delta: OpenImage, record: records.BrokerLeavingEvent) -> None:
    _apply_derived(delta, record)


def _apply_derived(delta: OpenImage, event: derivation.BrokerEvent) -> None:
    derived = derivation.derivation_of(delta, event)
    if derived.affected:
        delta.open_topics().replay_derived(derived.affected, derived.changes_in)


def _begin_import(delta: OpenImage, record: records.BeginImportRecord) -> None:
    imports.begin(delta, record)


def _import_state(delta: OpenImage, record: records.ImportStateRecord) -> None:
    imports.restate(delta, record)


def _no_effect(delta: OpenImage, _record: records.NoOpRecord) -> None:
    """Count a record without state; it moves the position only, and no checkpoint needs it."""
    delta.tracker.empty_records += 1


def _begin(delta: OpenImage, record: records.BeginTransactionRecord) -> None:
    transactions.begin(delta, record.name)


def _end(delta: OpenImage, _record: records.EndTransactionRecord) -> None:
    transactions.end(delta)


def _abort(delta: OpenImage, _record: records.AbortTransactionRecord) -> None:
    transactions.abort(delta)


REPLAY: dict[type[records.MetadataRecord], Replay] = {
    records.RegisterBrokerRecord: _register_broker,
    records.UnregisterBrokerRecord: _unregister_broker,
    records.TopicRecord: _topic,
    records.PartitionRecord: _partition,
    records.ConfigRecord: _config,
    records.PartitionChangeRecord: _change_partition,
    records.FenceBrokerRecord: _fence_broker,
    records.UnfenceBrokerRecord: _unfence_broker,
    records.RemoveTopicRecord: _remove_topic,
    records.DelegationTokenRecord: _token,
    records.UserScramCredentialRecord: _scram,
    records.FeatureLevelRecord: _feature_level,
    records.ClientQuotaRecord: _client_quota,
    records.ProducerIdsRecord: _producer_ids,
    records.BrokerRegistrationChangeRecord: _change_registration,
    records.AccessControlEntryRecord: _acl,
    records.RemoveAccessControlEntryRecord: _remove_acl,
    records.NoOpRecord: _no_effect,
    records.ZkMigrationStateRecord: _zk_migration,
    records.RemoveUserScramCredentialRecord: _remove_scram,
    records.BeginTransactionRecord: _begin,
    records.EndTransactionRecord: _end,
    records.AbortTransactionRecord: _abort,
    records.RemoveDelegationTokenRecord: _remove_token,
    records.RegisterControllerRecord: _register_controller,
    records.ClearElrRecord: _clear_elr,
    records.UnregisterControllerRecord: _unregister_controller,
    records.ProducerStateRecord: _producer_state,
    records.InitProducerRecord: _init_producer,
    records.ExpireProducerRecord: _expire_producer,
    records.BrokerFencedEvent: _broker_fenced,
    records.BrokerUnfencedEvent: _broker_unfenced,
    records.BrokerShutdownEvent: _broker_shutdown,
    records.BrokerLeavingEvent: _broker_leaving,
    records.BrokerEpochRecord: _broker_epoch,
    records.TransactionalIdRecord: _transactional_id,
    records.RemoveTransactionalIdRecord: _remove_transactional_id,
    records.AnsweredRequestsRecord: _answered_requests,
    records.BeginImportRecord: _begin_import,
    records.ImportStateRecord: _import_state,
    records.CommittedPositionRecord: _commit_position,
    records.RemoveCommittedPositionRecord: _remove_position,
}
"""Effect of every record type. A test compares its keys with ``RECORD_TYPES``."""
