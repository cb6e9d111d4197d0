"""The table of record types agrees with docs/reference/record-types.md (Metadata records)."""

from __future__ import annotations

import pytest

from quorum.types import ZERO_UUID
from statemachine import (
    records_cluster,
    records_own,
    records_positions,
    records_security,
    records_topics,
)
from statemachine.records import (
    OWN_API_KEY_MIN,
    RECORD_TYPES,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    lowest_version,
    record_version,
)
from statemachine.replay import REPLAY

KAFKA_TYPES = {
    0: ("RegisterBrokerRecord", 4),
    1: ("UnregisterBrokerRecord", 0),
    2: ("TopicRecord", 0),
    3: ("PartitionRecord", 2),
    4: ("ConfigRecord", 0),
    5: ("PartitionChangeRecord", 2),
    7: ("FenceBrokerRecord", 0),
    8: ("UnfenceBrokerRecord", 0),
    9: ("RemoveTopicRecord", 0),
    10: ("DelegationTokenRecord", 0),
    11: ("UserScramCredentialRecord", 0),
    12: ("FeatureLevelRecord", 0),
    14: ("ClientQuotaRecord", 0),
    15: ("ProducerIdsRecord", 0),
    17: ("BrokerRegistrationChangeRecord", 3),
    18: ("AccessControlEntryRecord", 0),
    19: ("RemoveAccessControlEntryRecord", 0),
    20: ("NoOpRecord", 0),
    21: ("ZkMigrationStateRecord", 0),
    22: ("RemoveUserScramCredentialRecord", 0),
    23: ("BeginTransactionRecord", 0),
    24: ("EndTransactionRecord", 0),
    25: ("AbortTransactionRecord", 0),
    26: ("RemoveDelegationTokenRecord", 0),
    27: ("RegisterControllerRecord", 0),
    28: ("ClearElrRecord", 0),
    29: ("UnregisterControllerRecord", 0),
}


def test_holds_every_kafka_record_type_with_its_versions():
    found = {
        key: (row.name, row.version_max)
        for key, row in RECORD_TYPES.items()
        if key < OWN_API_KEY_MIN
    }
    assert found == KAFKA_TYPES


def test_own_types_lie_in_the_reserved_range_without_gaps_in_keys():
    own = sorted(key for key in RECORD_TYPES if key not in KAFKA_TYPES)
    assert own == list(range(20000, 20015))


def test_every_type_has_a_replay():
    assert set(REPLAY) == {row.record_class for row in RECORD_TYPES.values()}


def test_two_types_never_have_one_key():
    families = (
        records_cluster,
        records_topics,
        records_security,
        records_own,
        records_positions,
    )
    classes = {
        each
        for family in families
        for each in vars(family).values()
        if isinstance(each, type) and issubclass(each, MetadataRecord)
    }
    assert len(classes - {MetadataRecord}) == len(RECORD_TYPES)
    assert list(RECORD_TYPES) == sorted(RECORD_TYPES)


def test_a_record_that_states_something_whole_has_a_key():
    assert PartitionRecord(3, b"t" * 16).record_key() == (3, b"t" * 16, 3)
    assert {row.name for row in RECORD_TYPES.values() if row.record_class.IDENTITY is not None} == {
        "AccessControlEntryRecord",
        "BrokerEpochRecord",
        "ClientQuotaRecord",
        "AnsweredRequestsRecord",
        "CommittedPositionRecord",
        "ConfigRecord",
        "DelegationTokenRecord",
        "FeatureLevelRecord",
        "ImportStateRecord",
        "PartitionRecord",
        "ProducerIdsRecord",
        "ProducerStateRecord",
        "RegisterBrokerRecord",
        "RegisterControllerRecord",
        "TopicRecord",
        "TransactionalIdRecord",
        "UserScramCredentialRecord",
        "ZkMigrationStateRecord",
    }
    with pytest.raises(TypeError, match="PartitionChangeRecord is no full-state record"):
        PartitionChangeRecord().record_key()


@pytest.mark.parametrize(
    ("record_class", "expected"),
    [
        (
            RegisterBrokerRecord,
            [
                ("broker_id", 0, None, False, 0),
                ("is_migrating_zk_broker", 2, None, False, False),
                ("incarnation_id", 0, None, False, ZERO_UUID),
                ("broker_epoch", 0, None, False, 0),
                ("end_points", 0, None, False, ()),
                ("features", 0, None, False, ()),
                ("rack", 0, None, True, None),
                ("fenced", 0, None, False, True),
                ("in_controlled_shutdown", 1, None, False, False),
                ("log_dirs", 3, 0, False, ()),
                ("cordoned_log_dirs", 4, 1, True, None),
            ],
        ),
        (
            PartitionRecord,
            [
                ("partition_id", 0, None, False, -1),
                ("topic_id", 0, None, False, ZERO_UUID),
                ("replicas", 0, None, False, ()),
                ("isr", 0, None, False, ()),
                ("removing_replicas", 0, None, False, ()),
                ("adding_replicas", 0, None, False, ()),
                ("leader", 0, None, False, -1),
                ("leader_recovery_state", 0, 0, False, 0),
                ("leader_epoch", 0, None, False, -1),
                ("partition_epoch", 0, None, False, -1),
                ("directories", 1, None, False, ()),
                ("eligible_leader_replicas", 2, 1, True, None),
                ("last_known_elr", 2, 2, True, None),
            ],
        ),
        (
            PartitionChangeRecord,
            [
                ("partition_id", 0, None, False, -1),
                ("topic_id", 0, None, False, ZERO_UUID),
                ("isr", 0, 0, True, None),
                ("leader", 0, 1, False, -2),
                ("replicas", 0, 2, True, None),
                ("removing_replicas", 0, 3, True, None),
                ("adding_replicas", 0, 4, True, None),
                ("leader_recovery_state", 0, 5, False, -1),
                ("directories", 1, 8, True, None),
                ("eligible_leader_replicas", 2, 6, True, None),
                ("last_known_elr", 2, 7, True, None),
            ],
        ),
        (
            BrokerRegistrationChangeRecord,
            [
                ("broker_id", 0, None, False, 0),
                ("broker_epoch", 0, None, False, 0),
                ("fenced", 0, 0, False, 0),
                ("in_controlled_shutdown", 1, 1, False, 0),
                ("log_dirs", 2, 2, False, ()),
                ("cordoned_log_dirs", 3, 3, True, None),
            ],
        ),
    ],
)
def test_fields_of_the_versioned_types(record_class, expected):
    row = RECORD_TYPES[record_class.API_KEY]
    assert [(f.name, f.since, f.tag, f.nullable, f.default) for f in row.fields] == expected


@pytest.mark.parametrize(
    ("record", "level", "version"),
    [
        (RegisterBrokerRecord(), 0, 0),
        (RegisterBrokerRecord(), 7, 1),
        (RegisterBrokerRecord(), 8, 2),
        (RegisterBrokerRecord(), 17, 3),
        (RegisterBrokerRecord(), 30, 4),
        (PartitionRecord(), 16, 0),
        (PartitionRecord(), 17, 1),
        (PartitionRecord(), 23, 2),
        (PartitionChangeRecord(), 33, 2),
        (ConfigRecord(), 33, 0),
        (BrokerRegistrationChangeRecord(fenced=1), 33, 0),
        (BrokerRegistrationChangeRecord(in_controlled_shutdown=1), 33, 1),
        (BrokerRegistrationChangeRecord(log_dirs=(ZERO_UUID,)), 33, 2),
        (BrokerRegistrationChangeRecord(cordoned_log_dirs=()), 33, 3),
        # Content that the level has no place for raises the version instead of being lost.
        (PartitionRecord(last_known_elr=(1,)), 7, 2),
    ],
)
def test_written_version_follows_the_feature_level(record, level, version):
    assert record_version(record, level) == version


def test_lowest_version_carries_the_content():
    assert lowest_version(PartitionRecord()) == 0
    assert lowest_version(PartitionRecord(directories=(ZERO_UUID,))) == 1
    assert lowest_version(PartitionRecord(), 1) == 1
