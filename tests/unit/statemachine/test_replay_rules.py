"""What each record does to the image, and what replay refuses as corruption."""

from __future__ import annotations

import pytest

from quorum.errors import QuorumUsageError, ReplayError
from statemachine.delta import ImageDelta
from statemachine.image import EMPTY_IMAGE, Provenance
from statemachine.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerFencedEvent,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveTransactionalIdRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
)
from statemachine.sections.broker_words import BrokerPartitions
from statemachine.sections.partition_index import PartitionKey, PartitionSet
from tests.support.record_strategies import World

A, B = b"a" * 16, b"b" * 16


def delta_of(*records):
    delta = ImageDelta(EMPTY_IMAGE)
    for record in records:
        delta.replay(record)
    return delta


def image_of(*records):
    return delta_of(*records).finish()


BROKER = RegisterBrokerRecord(1, broker_epoch=10, fenced=False)
ORDERS = [
    TopicRecord("orders", A),
    PartitionRecord(0, A, (1, 2), (1, 2), leader=1, leader_epoch=0, partition_epoch=0),
]


@pytest.mark.parametrize(
    "records",
    [
        [UnregisterBrokerRecord(1, 10)],
        [BROKER, UnregisterBrokerRecord(1, 11)],
        [FenceBrokerRecord(1, 10)],
        [BROKER, FenceBrokerRecord(1, 9)],
        [BROKER, UnfenceBrokerRecord(1, 9)],
        [BrokerRegistrationChangeRecord(1, 10)],
        [BROKER, BrokerRegistrationChangeRecord(1, 11)],
        [BROKER, BrokerRegistrationChangeRecord(1, 10, 2)],
        [BrokerFencedEvent(1, 10)],
        [BROKER, BrokerFencedEvent(1, 11)],
        [UnregisterControllerRecord(3000)],
        [TopicRecord("orders", A), TopicRecord("orders", B)],
        [TopicRecord("orders", A), TopicRecord("bills", A)],
        [PartitionRecord(0, A)],
        [TopicRecord("orders", A), PartitionRecord(-1, A)],
        [TopicRecord("orders", A), PartitionChangeRecord(0, A)],
        [RemoveTopicRecord(A)],
        [ClearElrRecord("orders")],
        [ProducerIdsRecord(1, 1, 0)],
        [ProducerIdsRecord(1, 1, 1000), ProducerIdsRecord(1, 1, 1000)],
        [RemoveAccessControlEntryRecord(A)],
        [AccessControlEntryRecord(A, 1), AccessControlEntryRecord(A, 2)],
        [RemoveUserScramCredentialRecord("u", 1)],
        [RemoveTransactionalIdRecord("t")],
        [EndTransactionRecord()],
        [AbortTransactionRecord()],
        [BeginTransactionRecord(), BeginTransactionRecord()],
    ],
)
def test_contradictions_are_refused(records):
    delta = delta_of(*records[:-1])
    with pytest.raises(ReplayError):
        delta.replay(records[-1])


def test_partition_change_raises_epochs():
    """Every change raises the partition epoch; a named leader, even the same, the leader's."""
    delta = delta_of(*ORDERS)
    delta.replay(PartitionChangeRecord(0, A, isr=(1,)))
    assert delta.topics.partition(A, 0)[6:8] == (0, 1)
    delta.replay(PartitionChangeRecord(0, A, leader=1))
    assert delta.topics.partition(A, 0)[6:8] == (1, 2)
    delta.replay(PartitionChangeRecord(0, A, leader=-1, leader_recovery_state=1))
    state = delta.finish().topics.partition(A, 0)
    assert (state.leader, state.leader_epoch, state.partition_epoch) == (-1, 2, 3)
    assert (state.isr, state.leader_recovery_state) == ((1,), 1)


def test_removing_a_topic_takes_partitions_configs_and_indexes_along():
    image = image_of(
        *ORDERS,
        ConfigRecord(2, "orders", "retention.ms", "1"),
        ConfigRecord(4, "1", "x", "y"),
        RemoveTopicRecord(A),
    )
    assert image.topics.id_of("orders") is None
    assert image.topics.partition(A, 0) is None
    assert not image.topics.in_isr_of(1)
    assert not image.topics.led_by(1)
    assert list(image.configs.resources) == [(4, "1")]
    # The name is free for another id.
    delta = ImageDelta(image)
    delta.replay(TopicRecord("orders", B))
    assert delta.finish().topics.id_of("orders") == B


def test_clear_elr_of_one_topic_and_of_all():
    def partition(topic):
        return PartitionRecord(
            0,
            topic,
            (1, 2),
            (1,),
            leader=1,
            partition_epoch=4,
            eligible_leader_replicas=(2,),
            last_known_elr=(1,),
        )

    records = [TopicRecord("a", A), partition(A), TopicRecord("b", B), partition(B)]
    one = image_of(*records, ClearElrRecord("a"))
    assert one.topics.partition(A, 0).elr == ()
    assert one.topics.partition(A, 0).partition_epoch == 4
    assert one.topics.partition(B, 0).elr == (2,)
    assert sorted(one.topics.eligible_of(2)) == [(B, 0)]
    everything = image_of(*records, ClearElrRecord(""))
    assert everything.topics.partition(B, 0).last_known_elr == ()
    assert not everything.topics.eligible_of(2)


def test_broker_registration_fencing_and_removal():
    delta = delta_of(RegisterBrokerRecord(1, broker_epoch=10))
    assert delta.cluster.broker(1).fenced
    delta.replay(BrokerRegistrationChangeRecord(1, 10, -1))
    assert delta.cluster.is_active(1)
    delta.replay(BrokerRegistrationChangeRecord(1, 10, 0, 1))
    assert not delta.cluster.is_active(1)
    assert delta.cluster.broker(1).in_controlled_shutdown
    delta.replay(BrokerRegistrationChangeRecord(1, 10, 1, log_dirs=(A,), cordoned_log_dirs=(A,)))
    broker = delta.cluster.broker(1)
    assert (broker.fenced, broker.log_dirs, broker.cordoned_log_dirs) == (True, (A,), (A,))
    delta.replay(UnregisterBrokerRecord(1, 10))
    image = delta.finish()
    assert image.cluster.broker(1) is None
    assert image.cluster.highest_broker_epoch == 10


def test_old_fence_records_derive_nothing():
    """A Kafka log carries event and changes; deriving would apply them twice (ADR 3)."""
    image = image_of(BROKER, *ORDERS, FenceBrokerRecord(1, 10))
    assert image.brokers[1].fenced
    assert image.topics.partition(A, 0).isr == (1, 2)


def test_features_and_configs_disappear_when_unset():
    image = image_of(
        FeatureLevelRecord("metadata.version", 25),
        FeatureLevelRecord("group.version", 1),
        FeatureLevelRecord("group.version", 0),
        ConfigRecord(2, "orders", "x", "1"),
        ConfigRecord(2, "orders", "x", None),
        ConfigRecord(2, "orders", "never.set", None),
    )
    assert dict(image.features.levels) == {"metadata.version": 25}
    assert image.configs == EMPTY_IMAGE.configs


def test_security_records_are_carried():
    acl = AccessControlEntryRecord(A, 2, "orders", 3, "User:a", "*", 3, 3)
    scram = UserScramCredentialRecord("a", 1, b"s", b"k", b"v", 4096)
    token = DelegationTokenRecord("o", "r", ("x",), 1, 2, 3, "t")
    delta = delta_of(acl, scram, token, RegisterControllerRecord(3000, A))
    assert delta.security.acls[A] == acl
    delta.replay(RemoveAccessControlEntryRecord(A))
    delta.replay(RemoveUserScramCredentialRecord("a", 1))
    delta.replay(RemoveDelegationTokenRecord("t"))
    delta.replay(RemoveDelegationTokenRecord("t"))
    delta.replay(UnregisterControllerRecord(3000))
    assert delta.finish() == EMPTY_IMAGE


def test_aborted_transaction_leaves_nothing():
    """Not in the image, not in the count of changed records, not in the unknown fields."""
    delta = delta_of(*ORDERS)
    before = delta.view()
    delta.replay(BeginTransactionRecord("boot"))
    for record in World(3, reuses_names=True).steps(30):
        delta.replay(record)
    delta.replay(PartitionChangeRecord(0, A, leader=2))
    assert delta.topics.partition(A, 0).leader == 2
    with pytest.raises(QuorumUsageError, match="boot"):
        delta.finish()
    delta.replay(AbortTransactionRecord("no"))
    assert delta.changed_keys == frozenset()
    assert delta.finish() == before


def test_ended_transaction_stays():
    image = image_of(BeginTransactionRecord(), *ORDERS, EndTransactionRecord())
    assert image == image_of(*ORDERS)


def test_a_fork_goes_its_own_way():
    delta = delta_of(*ORDERS, BeginTransactionRecord("x"))
    fork = delta.fork()
    fork.replay(PartitionChangeRecord(0, A, leader=2))
    fork.replay(EndTransactionRecord())
    assert delta.transaction is not None
    assert delta.topics.partition(A, 0).leader == 1
    assert fork.finish().topics.partition(A, 0).leader == 2
    assert fork.changed_keys == {(3, A, 0)}
    assert delta.changed_keys == frozenset()


def test_view_is_a_picture_of_the_moment():
    delta = delta_of(*ORDERS)
    early = delta.view()
    delta.replay(PartitionChangeRecord(0, A, leader=2))
    assert early.topics.partition(A, 0).leader == 1
    assert delta.view().topics.partition(A, 0).leader == 2
    image = delta.finish(Provenance(7, 2, 99))
    assert image.provenance == Provenance(7, 2, 99)
    with pytest.raises(QuorumUsageError):
        delta.finish()


@pytest.mark.parametrize("seed", range(25))
def test_indexes_agree_with_the_partitions(seed):
    """Compare indexes and count with a recount after random work, in deltas of random size."""

    def sets(index: BrokerPartitions) -> dict[int, set[PartitionKey]]:
        return {broker: set(PartitionSet(words.all())) for broker, words in index.items()}

    world = World(seed, reuses_names=True)
    image = EMPTY_IMAGE
    for _ in range(12):
        delta = ImageDelta(image)
        for record in world.steps(world.rng.randrange(1, 15)):
            delta.replay(record)
        image = delta.finish()
        isr: dict[int, set] = {}
        leader: dict[int, set] = {}
        elr: dict[int, set] = {}
        for topic_id, partitions in image.topics.partitions.items():
            for index, state in partitions.items():
                key = (topic_id, index)
                leader.setdefault(state.leader, set()).add(key)
                for broker in state.isr:
                    isr.setdefault(broker, set()).add(key)
                for broker in state.elr:
                    elr.setdefault(broker, set()).add(key)
        assert sets(image.topics.isr_index) == isr
        assert {
            b: set(PartitionSet(words.all())) for b, words in image.topics.leader_index.items()
        } == leader
        assert sets(image.topics.elr_index) == elr
        assert {i: n for n, i in image.topics.ids.items()} == dict(image.topics.names)
        assert set(image.topics.partitions) <= set(image.topics.names)
        assert image.topics.partition_count == sum(map(len, image.topics.partitions.values()))
