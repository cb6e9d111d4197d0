"""Which record key each record of a dump stands for.

The same keys that replay reports as touched (``sections.tracking``), read from a record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from statemachine import records
from statemachine.sections.security import entity_order
from statemachine.sections.tracking import RecordKey

_IDENTITIES: dict[type[records.MetadataRecord], Callable[[Any], tuple[Any, ...]]] = {
    records.FeatureLevelRecord: lambda record: (record.name,),
    records.ZkMigrationStateRecord: lambda _: (),
    records.RegisterControllerRecord: lambda record: (record.controller_id,),
    records.RegisterBrokerRecord: lambda record: (record.broker_id,),
    records.TopicRecord: lambda record: (record.topic_id,),
    records.PartitionRecord: lambda record: (record.topic_id, record.partition_id),
    records.ConfigRecord: lambda record: (
        record.resource_type,
        record.resource_name,
        record.name,
    ),
    records.ClientQuotaRecord: lambda record: (
        tuple(sorted(record.entity, key=entity_order)),
        record.key,
    ),
    records.ProducerIdsRecord: lambda _: (),
    records.AccessControlEntryRecord: lambda record: (record.id,),
    records.UserScramCredentialRecord: lambda record: (record.name, record.mechanism),
    records.DelegationTokenRecord: lambda record: (record.token_id,),
    records.BrokerEpochRecord: lambda _: (),
    records.ProducerStateRecord: lambda record: (record.producer_id,),
    records.TransactionalIdRecord: lambda record: (record.transactional_id,),
    records.ImportStateRecord: lambda _: (),
}

DUMPED_TYPES: frozenset[type[records.MetadataRecord]] = frozenset(_IDENTITIES)
"""The record types that state something whole: all that a checkpoint may contain."""


def record_key(record: records.MetadataRecord) -> RecordKey:
    """The key of a record that states something whole, as a checkpoint holds.

    Raises:
        KeyError: Records of this type describe a change or an event; they have no key.
    """
    return (record.API_KEY, *_IDENTITIES[type(record)](record))
