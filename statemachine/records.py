"""The one table of metadata record types, and which version of each is written.

Record classes live by family in the ``records_*`` modules and are all importable from here.
Bytes are ``statemachine.codec``'s work, meaning is ``statemachine.replay``'s.

See: docs/reference/record-types.md (Metadata records); ADR 2.
"""

from __future__ import annotations

from statemachine.records_cluster import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    ListenerEndpoint,
    NoOpRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    SupportedFeature,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    ZkMigrationStateRecord,
)
from statemachine.records_own import (
    OWN_API_KEY_MIN,
    AppliedSequence,
    BeginImportRecord,
    BrokerEpochRecord,
    BrokerFencedEvent,
    BrokerShutdownEvent,
    BrokerUnfencedEvent,
    ExpireProducerRecord,
    ImportStateRecord,
    InitProducerRecord,
    ProducerStateRecord,
    RemoveTransactionalIdRecord,
    TransactionalIdRecord,
    TransactionPartitions,
)
from statemachine.records_schema import (
    Extra,
    FieldSpec,
    MetadataRecord,
    RecordType,
    WireStruct,
    describe,
)
from statemachine.records_security import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from statemachine.records_topics import (
    LEADER_UNCHANGED,
    RECOVERED,
    RECOVERING,
    RECOVERY_STATE_UNCHANGED,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    QuotaEntity,
    RemoveTopicRecord,
    TopicRecord,
)

_RECORD_CLASSES: tuple[type[MetadataRecord], ...] = (
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
    TopicRecord,
    PartitionRecord,
    ConfigRecord,
    PartitionChangeRecord,
    FenceBrokerRecord,
    UnfenceBrokerRecord,
    RemoveTopicRecord,
    DelegationTokenRecord,
    UserScramCredentialRecord,
    FeatureLevelRecord,
    ClientQuotaRecord,
    ProducerIdsRecord,
    BrokerRegistrationChangeRecord,
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
    NoOpRecord,
    ZkMigrationStateRecord,
    RemoveUserScramCredentialRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    AbortTransactionRecord,
    RemoveDelegationTokenRecord,
    RegisterControllerRecord,
    ClearElrRecord,
    UnregisterControllerRecord,
    ProducerStateRecord,
    InitProducerRecord,
    ExpireProducerRecord,
    BrokerFencedEvent,
    BrokerUnfencedEvent,
    BrokerShutdownEvent,
    BrokerEpochRecord,
    TransactionalIdRecord,
    RemoveTransactionalIdRecord,
    BeginImportRecord,
    ImportStateRecord,
)

RECORD_TYPES: dict[int, RecordType] = {
    record_class.API_KEY: describe(record_class) for record_class in _RECORD_CLASSES
}
"""Every record type of this release by its API key. Keys 6, 13 and 16 are retired."""

METADATA_VERSION = "metadata.version"
ELR_VERSION = "eligible.leader.replicas.version"

_VERSION_STEPS: dict[int, tuple[tuple[int, int], ...]] = {
    RegisterBrokerRecord.API_KEY: ((7, 1), (8, 2), (17, 3), (30, 4)),
    PartitionRecord.API_KEY: ((17, 1), (23, 2)),
    PartitionChangeRecord.API_KEY: ((17, 1), (23, 2)),
}
"""(metadata.version level, record version from there on): 3.3-IV3 is 7, 3.4-IV0 8,
3.7-IV2 17, 4.0-IV1 23, 4.3-IV0 30. Types not listed are written in the lowest version that
carries their content."""


def record_version(record: MetadataRecord, metadata_version: int) -> int:
    """The version to write ``record`` in at that metadata.version level (0: none finalised).

    It follows the level, and is raised where the content needs a field of a later version, so
    that what an image holds is never lost in a checkpoint.
    """
    if not record.VERSION_MAX:
        return 0
    version = 0
    for level, step in _VERSION_STEPS.get(record.API_KEY, ()):
        if metadata_version >= level:
            version = step
    return lowest_version(record, version)


def lowest_version(record: MetadataRecord, at_least: int = 0) -> int:
    """The lowest version, ``at_least`` or above, that carries all of the record's content."""
    if at_least >= record.VERSION_MAX:
        return at_least
    version = at_least
    for spec in RECORD_TYPES[record.API_KEY].fields:
        if spec.since > version and getattr(record, spec.name) != spec.default:
            version = spec.since
    return version


__all__ = [
    "ELR_VERSION",
    "LEADER_UNCHANGED",
    "METADATA_VERSION",
    "OWN_API_KEY_MIN",
    "RECORD_TYPES",
    "RECOVERED",
    "RECOVERING",
    "RECOVERY_STATE_UNCHANGED",
    "AbortTransactionRecord",
    "AccessControlEntryRecord",
    "AppliedSequence",
    "BeginImportRecord",
    "BeginTransactionRecord",
    "BrokerEpochRecord",
    "BrokerFencedEvent",
    "BrokerRegistrationChangeRecord",
    "BrokerShutdownEvent",
    "BrokerUnfencedEvent",
    "ClearElrRecord",
    "ClientQuotaRecord",
    "ConfigRecord",
    "DelegationTokenRecord",
    "EndTransactionRecord",
    "ExpireProducerRecord",
    "Extra",
    "FeatureLevelRecord",
    "FenceBrokerRecord",
    "FieldSpec",
    "ImportStateRecord",
    "InitProducerRecord",
    "ListenerEndpoint",
    "MetadataRecord",
    "NoOpRecord",
    "PartitionChangeRecord",
    "PartitionRecord",
    "ProducerIdsRecord",
    "ProducerStateRecord",
    "QuotaEntity",
    "RecordType",
    "RegisterBrokerRecord",
    "RegisterControllerRecord",
    "RemoveAccessControlEntryRecord",
    "RemoveDelegationTokenRecord",
    "RemoveTopicRecord",
    "RemoveTransactionalIdRecord",
    "RemoveUserScramCredentialRecord",
    "SupportedFeature",
    "TopicRecord",
    "TransactionPartitions",
    "TransactionalIdRecord",
    "UnfenceBrokerRecord",
    "UnregisterBrokerRecord",
    "UnregisterControllerRecord",
    "UserScramCredentialRecord",
    "WireStruct",
    "ZkMigrationStateRecord",
    "describe",
]
