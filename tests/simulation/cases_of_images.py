"""Stub clusters that break one property of images, timestamps or watches."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from quorate.controller.publishing import Published
from quorum.core.contract.output import SaveElectionState
from quorum.types import ElectionState
from simulation.invariants.processed_once import GROUP
from statemachine.commands import ConfigChange, IncrementalAlterConfigs
from statemachine.delta import ImageDelta
from statemachine.image import EMPTY_IMAGE, Provenance
from statemachine.records import (
    CommittedPositionRecord,
    ConfigRecord,
    InitProducerRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tests.support.stub_cluster import Stage, batch_of, key_of


def _publish(stage: Stage, begin: int, end: int, *data: bytes) -> None:
    images = [EMPTY_IMAGE.at(Provenance(offset, 1, 0)) for offset in (begin, end)]
    stage.subscribers[0](Published(*images, data))


def watch_with_a_gap(stage: Stage) -> None:
    for node_id in (1, 2):
        for offset in (0, 1, 2):
            stage.append(node_id, offset, 1)
    stage.commit(1, end_offset=3, epoch=1)
    _publish(stage, 0, 1, batch_of(0, 1))
    _publish(stage, 2, 3, batch_of(2, 1))


def watch_of_the_uncommitted(stage: Stage) -> None:
    stage.append(1, 0, 1)
    _publish(stage, 0, 1, batch_of(0, 1))


def watcher_handed_the_uncommitted(stage: Stage) -> None:
    for node_id in (1, 2):
        stage.append(node_id, 0, 1)
    stage.append(1, 1, 1)
    stage.commit(1, 2, end_offset=1, epoch=1)
    stage.run_observer.watched(2, 1)
    stage.run_observer.watched(1, 2)


def one_block_twice(stage: Stage) -> None:
    stage.run_observer.block_handed_out(1, (7, 0, 1), 1_000, 1_000)
    stage.run_observer.block_handed_out(2, (7, 0, 1), 1_000, 1_000)
    stage.run_observer.block_handed_out(2, (8, 0, 5), 1_999, 1_000)


def writer_within_a_block(stage: Stage) -> None:
    stage.commit_records(InitProducerRecord(1_500, 0))
    stage.run_observer.block_handed_out(1, (7, 0, 1), 1_000, 1_000)


def leader_that_applies_nothing(stage: Stage) -> None:
    stage.write(1, SaveElectionState(ElectionState(1, 1, key_of(1))))
    stage.step(1, is_leader=True, epoch=1)
    stage.replicas[1].controller.fault = "an unknown record"
    stage.step(1)


def output_without_its_position(stage: Stage) -> None:
    stage.commit_records(ConfigRecord(16, GROUP, "metrics", "1"))


def output_that_comes_twice(stage: Stage) -> None:
    for base in (0, 2):
        records = ConfigRecord(16, GROUP, "metrics", "1"), CommittedPositionRecord(GROUP, 1)
        stage.commit_records(*records, base=base)


def acknowledged_with_anothers_content(stage: Stage) -> None:
    stage.commit_records(ConfigRecord(16, "r1", "metrics", "mine"))
    stage.commit_records(ConfigRecord(16, "strangers", "metrics", "theirs"), base=1)
    command = IncrementalAlterConfigs(16, "r1", (ConfigChange("metrics", 0, "mine"),))
    stage.run_observer.acknowledged(1, 1, None, command)
    stage.run_observer.acknowledged(1, 2, None, command)


def written_before_an_older_one(stage: Stage) -> None:
    stage.run_observer.asked |= {(5, 0, 0), (5, 0, 1), (5, 0, 3)}
    for sequence, oldest_open in ((1, b"0"), (3, b"2")):
        headers = (("open", oldest_open),)
        numbers = {"producer_id": 5, "producer_epoch": 0, "base_sequence": sequence}
        offset = stage.run_observer.committed.end_offset
        stage.commit_batch(batch_of(offset, 1, headers=headers, **numbers))


def watch_that_lacks_records(stage: Stage) -> None:
    for node_id in (1, 2):
        for offset in (0, 1):
            stage.append(node_id, offset, 1)
    stage.commit(1, end_offset=2, epoch=1)
    _publish(stage, 0, 2, batch_of(0, 1))


def _partition_with(stage: Stage, *, fenced: bool, leader: int, isr: tuple[int, ...]) -> None:
    delta = ImageDelta(EMPTY_IMAGE)
    for broker_id in (7, 8):
        delta.replay(
            RegisterBrokerRecord(broker_id, incarnation_id=b"i" * 16, broker_epoch=5, fenced=fenced)
        )
    delta.replay(TopicRecord("t", b"t" * 16))
    delta.replay(
        PartitionRecord(
            0,
            b"t" * 16,
            replicas=(7, 8),
            isr=isr,
            leader=leader,
            leader_epoch=0,
            partition_epoch=0,
        )
    )
    # As a checkpoint that replaces the image: there are no records to compare.
    stage.subscribers[0](Published(EMPTY_IMAGE, delta.view(), (), None))


def fenced_broker_leads(stage: Stage) -> None:
    _partition_with(stage, fenced=True, leader=7, isr=(7,))


def fenced_brokers_in_sync(stage: Stage) -> None:
    _partition_with(stage, fenced=True, leader=-1, isr=(7, 8))


def leader_not_in_sync(stage: Stage) -> None:
    _partition_with(stage, fenced=False, leader=7, isr=(8,))


def stamps_fall(stage: Stage) -> None:
    for node_id in (1, 2):
        stage.append(node_id, 0, 1, timestamp=5)
        stage.append(node_id, 1, 1, timestamp=4)
    stage.commit(1, end_offset=2, epoch=1)


def intact_log_set_aside(stage: Stage) -> None:
    stage.reports[1] = SimpleNamespace(losses=[("a tail", None)], corrupt_snapshots=[])
    stage.open(1, ElectionState())


CASES: tuple[tuple[Callable[[Stage], None], str], ...] = (
    (watch_with_a_gap, "watch-is-prefix"),
    (watch_of_the_uncommitted, "watch-is-prefix"),
    (watch_that_lacks_records, "watch-is-prefix"),
    (one_block_twice, "producer-blocks"),
    (writer_within_a_block, "producer-blocks"),
    (leader_that_applies_nothing, "leader-replays"),
    (output_without_its_position, "processed-once"),
    (output_that_comes_twice, "processed-once"),
    (acknowledged_with_anothers_content, "own-content"),
    (written_before_an_older_one, "evaluated-in-order"),
    (watcher_handed_the_uncommitted, "watched-is-committed"),
    (fenced_broker_leads, "in-sync-brokers"),
    (fenced_brokers_in_sync, "in-sync-brokers"),
    (leader_not_in_sync, "in-sync-brokers"),
    (stamps_fall, "timestamps-rise"),
    (intact_log_set_aside, "damage-imagined"),
)
