"""The ratio of 630.4, counted record by record and compared with a recount of images."""

from __future__ import annotations

import math

import pytest

from quorum.errors import QuorumUsageError
from statemachine.changes import ChangeCounter
from statemachine.delta import ImageDelta
from statemachine.dump import count_records, dump_records
from statemachine.image import EMPTY_IMAGE
from statemachine.records import (
    BrokerFencedEvent,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.support.record_strategies import World

A, B = b"a" * 16, b"b" * 16


class Replica:
    """An image that is counted from a checkpoint of its beginning on."""

    def __init__(self, *records):
        self.image = EMPTY_IMAGE
        self.counter = ChangeCounter()
        self.apply(*records)
        self.counter.start_over(count_records(self.image))

    def apply(self, *records):
        delta = ImageDelta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.finish()
        self.counter.absorb(delta.changed_keys, delta.tracker.empty_records)
        return self.counter.changed_records


def partition(index, topic=A, replicas=(1, 2)):
    return PartitionRecord(index, topic, replicas, replicas, leader=replicas[0], leader_epoch=0)


def start():
    return Replica(
        RegisterBrokerRecord(1, broker_epoch=1, fenced=False),
        RegisterBrokerRecord(2, broker_epoch=2, fenced=False),
        TopicRecord("orders", A),
        partition(0),
        partition(1),
        ConfigRecord(2, "orders", "retention.ms", "1"),
    )


def test_nothing_changed():
    replica = start()
    assert replica.counter.changed_records == 0
    assert replica.counter.snapshot_records == 7  # the highest broker epoch is one as well
    assert replica.counter.ratio == 0


def test_each_record_counts_once():
    replica = start()
    assert replica.apply(PartitionChangeRecord(0, A, leader=2)) == 1
    assert replica.apply(PartitionChangeRecord(0, A, leader=1)) == 1
    assert replica.apply(PartitionChangeRecord(1, A, leader=2)) == 2
    assert replica.apply(ConfigRecord(2, "orders", "retention.ms", "2")) == 3
    assert replica.apply(ConfigRecord(2, "orders", "retention.ms", None)) == 3
    assert replica.counter.ratio == pytest.approx(3 / 7)


def test_added_records_count_only_once_they_are_changed():
    replica = start()
    assert replica.apply(TopicRecord("bills", B), partition(0, B), partition(1, B)) == 0
    assert replica.apply(ConfigRecord(2, "bills", "x", "1")) == 0
    assert replica.apply(PartitionChangeRecord(0, B, leader=2)) == 1
    assert replica.apply(ConfigRecord(2, "bills", "x", "2")) == 2
    # Topic and both partitions and the value: two of them were counted before.
    assert replica.apply(RemoveTopicRecord(B)) == 4


def test_added_changed_and_deleted_in_one_delta():
    replica = start()
    assert replica.apply(TopicRecord("bills", B), partition(0, B), RemoveTopicRecord(B)) == 2


def test_restating_what_is_so_does_not_count():
    replica = start()
    assert replica.apply(ConfigRecord(2, "orders", "retention.ms", "1")) == 0
    assert replica.apply(TopicRecord("orders", A)) == 0
    assert replica.apply(FeatureLevelRecord("none", 0)) == 0
    assert replica.apply(ConfigRecord(2, "orders", "other", None)) == 0


def test_removing_a_topic_counts_everything_it_takes_along():
    replica = start()
    assert replica.apply(RemoveTopicRecord(A)) == 4


def test_derived_changes_count_like_written_ones():
    """One event about a broker: its registration and both partitions are out of date."""
    replica = start()
    assert replica.apply(BrokerFencedEvent(1, 1)) == 3
    assert replica.apply(BrokerRegistrationChangeRecord(1, 1, -1)) == 3


def test_absorbed_keys_count_again_each_time_and_for_ever():
    """The collector's policy takes it for work that was done: one event, and what it derives."""
    replica = start()
    before = replica.counter.absorbed
    replica.apply(BrokerFencedEvent(1, 1))
    replica.apply(BrokerRegistrationChangeRecord(1, 1, -1))
    assert replica.counter.absorbed == before + 3 + 1
    replica.counter.start_over(7)
    assert replica.counter.absorbed == before + 3 + 1


def test_counters_and_epochs_in_the_checkpoint_count():
    replica = start()
    assert replica.apply(ProducerIdsRecord(1, 1, 1000)) == 0
    assert replica.apply(ProducerIdsRecord(1, 1, 2000)) == 1
    # The registration is replaced and the highest epoch rises.
    assert replica.apply(RegisterBrokerRecord(1, broker_epoch=9)) == 3


def test_without_a_checkpoint_the_ratio_is_satisfied():
    counter = ChangeCounter()
    assert counter.ratio == math.inf
    counter.start_over(0)
    assert counter.ratio == math.inf


def test_changes_while_a_checkpoint_is_written_count_for_the_next():
    replica = start()
    replica.apply(PartitionChangeRecord(0, A, leader=2))
    replica.counter.capture()
    with pytest.raises(QuorumUsageError):
        replica.counter.capture()
    replica.apply(PartitionChangeRecord(1, A, leader=2))
    assert replica.counter.changed_records == 2
    replica.counter.complete(7)
    assert replica.counter.changed_records == 1
    replica.counter.capture()
    replica.counter.abandon()
    assert replica.apply(PartitionChangeRecord(0, A, leader=1)) == 2
    with pytest.raises(QuorumUsageError):
        replica.counter.complete(7)


@pytest.mark.parametrize("seed", range(40))
def test_counts_what_a_comparison_of_dumps_finds(seed):
    """Dump the image after every single record; a key counts when its record was there before
    and is another one, or gone, after; a record that states nothing counts by itself. Also the
    number of records in the dump must agree."""
    world = World(seed, reuses_names=True)
    replica = Replica(*world.steps(40))
    changed = set()
    empty = 0
    before = {record.record_key(): record for record in dump_records(replica.image)}
    for record in world.steps(60):
        counted = replica.apply(record)
        after = {r.record_key(): r for r in dump_records(replica.image)}
        changed |= {key for key, old in before.items() if after.get(key) != old}
        empty += isinstance(record, NoOpRecord)
        assert counted == len(changed) + empty, record
        assert count_records(replica.image) == len(after)
        before = after


def test_each_record_that_states_nothing_counts() -> None:
    """Goal: the log of an idle cluster is trimmed. Method: counted beside keys, over a capture."""
    replica = start()
    assert replica.apply(NoOpRecord()) == 1
    topic_and_partitions = 4
    assert replica.apply(NoOpRecord(), RemoveTopicRecord(A)) == 2 + topic_and_partitions
    replica.counter.capture()
    assert replica.apply(NoOpRecord()) == 3 + topic_and_partitions
    replica.counter.complete(5)
    assert replica.counter.changed_records == 1
    assert replica.counter.ratio == 0.2
    replica.counter.capture()
    replica.apply(NoOpRecord())
    replica.counter.abandon()
    assert replica.counter.changed_records == 2
    replica.counter.start_over(5)
    assert replica.counter.changed_records == 0
