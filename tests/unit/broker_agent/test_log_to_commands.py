"""From batches to changes and commands: reassignments, transactions, restated records, states."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from quorate.broker_agent.commands import BrokerCommand, LeaderAndIsr, StopReplica, UpdateMetadata
from quorate.broker_agent.derivation import CommandDerivation
from quorate.broker_agent.image_feed import ImageChange, ImageFeed
from quorum.errors import QuorumUsageError
from statemachine.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    EndTransactionRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from tests.support.image_builder import directory, incarnation, registration, topic_id

BROKERS = (1, 2, 3)
OWN = 2


class BatchAt(NamedTuple):
    """The header of a batch without a producer."""

    base_offset: int
    end_offset: int
    epoch: int = 1
    max_timestamp: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1


class Log:
    """Batches of records, and what follows from them for one broker."""

    def __init__(self) -> None:
        self._feed, self._derivation = ImageFeed(), CommandDerivation(OWN)
        self._end = 0

    def take(self, *records: MetadataRecord) -> ImageChange | None:
        position = BatchAt(self._end, self._end + len(records))
        self._end = position.end_offset
        return self._feed.take_batch(position, records)

    def follow(self, *records: MetadataRecord) -> list[BrokerCommand]:
        change = self.take(*records)
        assert change is not None
        return self._derivation.follow(change)


def test_a_record_that_restates_what_is_there_says_nothing() -> None:
    log, topic = Log(), topic_id(1)
    partition = PartitionRecord(0, topic, (1, OWN), (1, OWN), leader=1, leader_epoch=0)
    log.follow(registration(OWN), TopicRecord("a", topic), partition)
    assert log.follow(partition) == []
    assert log.follow(registration(OWN)) == []


def test_a_replica_that_moves_away_is_stopped_and_not_told_again() -> None:
    """A reassignment, as Kafka's controllers write it; also across a new registration."""
    log, topic = Log(), topic_id(1)
    log.follow(
        *(registration(each) for each in BROKERS),
        TopicRecord("a", topic),
        PartitionRecord(0, topic, (1, 2), (1, 2), leader=1, leader_epoch=0, partition_epoch=0),
    )
    stop, update = log.follow(PartitionChangeRecord(0, topic, replicas=(1, 3), isr=(1,)))
    assert isinstance(stop, StopReplica)
    assert [*stop.partition_keys()] == [(topic, 0)]
    assert isinstance(update, UpdateMetadata)
    full = log.follow(registration(OWN, broker_epoch=99, incarnation_id=incarnation(9)))[0]
    assert isinstance(full, LeaderAndIsr)
    assert full.is_full
    assert not full.topics
    (back, _) = log.follow(PartitionChangeRecord(0, topic, replicas=(1, OWN), isr=(1,)))
    assert isinstance(back, LeaderAndIsr)
    assert back.topics[topic].partitions[0].is_new


def test_a_metadata_transaction_is_one_change() -> None:
    """KIP-868: nothing is told inside of one, and nothing at all of an aborted one."""
    log, topic = Log(), topic_id(1)
    log.follow(*(registration(each) for each in BROKERS))
    created = (
        TopicRecord("a", topic),
        PartitionRecord(0, topic, (OWN,), (OWN,), leader=OWN, leader_epoch=0, partition_epoch=0),
    )
    assert log.take(BeginTransactionRecord("t")) is None
    assert log.take(*created) is None
    assert log.follow(AbortTransactionRecord("no")) == []
    assert log.take(BeginTransactionRecord("t")) is None
    assert log.take(*created) is None
    kinds = [type(each) for each in log.follow(EndTransactionRecord())]
    assert kinds == [LeaderAndIsr, UpdateMetadata]


def test_a_state_begins_with_its_first_part() -> None:
    feed = ImageFeed()
    with pytest.raises(QuorumUsageError, match="first part"):
        feed.load([], is_first=False)
    with pytest.raises(QuorumUsageError, match="first part"):
        feed.finish_load(5, 1)
    feed.load([], is_first=True)
    assert feed.finish_load(5, 1).provenance.end_offset == 5
    assert feed.applied_offset == 4


def test_a_command_names_the_cordoned_directories() -> None:
    log, topic = Log(), topic_id(1)
    two = (directory(OWN, 0), directory(OWN, 1))
    full = log.follow(registration(OWN, log_dirs=two, cordoned_log_dirs=two[:1]))[0]
    assert isinstance(full, LeaderAndIsr)
    assert full.cordoned_log_dirs == two[:1]
    change = BrokerRegistrationChangeRecord(OWN, 10 + OWN, cordoned_log_dirs=())
    assert [type(each) for each in log.follow(change)] == [UpdateMetadata]
    partition = PartitionRecord(0, topic, (OWN,), (OWN,), leader=OWN, leader_epoch=0)
    host = log.follow(TopicRecord("a", topic), partition)[0]
    assert isinstance(host, LeaderAndIsr)
    assert host.cordoned_log_dirs == ()
