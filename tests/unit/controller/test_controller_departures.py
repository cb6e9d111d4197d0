"""A broker with many partitions leaves them in steps before it is fenced (ADR 74)."""

from __future__ import annotations

import pytest

from quorate.controller.requests import RequestContext
from quorum.batch import iterate_records, scan_batches
from quorum.errors import ErrorCode
from quorum.types import NO_NODE
from statemachine.codec import batch_headers
from statemachine.commands import BrokerHeartbeat, UnregisterBroker
from statemachine.image import MetadataImage
from statemachine.records import (
    BrokerFencedEvent,
    BrokerLeavingEvent,
    BrokerShutdownEvent,
    ConfigRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from tests.support.controller_bench import Bench, records_of, set_config

OK = ErrorCode.NONE
TOPICS = 6


def topic_id(number: int) -> bytes:
    return bytes([number + 1]) * 16


def bench(*, alone: int = 0, **config: object) -> Bench:
    """Broker 1 leads all partitions of six topics, and is alone in sync in the first ``alone``."""
    records = [
        FeatureLevelRecord("metadata.version", 33),
        *(
            RegisterBrokerRecord(
                broker, incarnation_id=bytes([broker]) * 16, broker_epoch=broker, fenced=False
            )
            for broker in (1, 2)
        ),
        TopicRecord("t", b"t" * 16),
        ConfigRecord(2, "t", "retention.ms", "1"),
    ]
    for number in range(TOPICS):
        isr = (1,) if number < alone else (1, 2)
        records.append(TopicRecord(f"topic-{number}", topic_id(number)))
        records.extend(
            PartitionRecord(index, topic_id(number), (1, 2), isr, leader=1, leader_epoch=0)
            for index in range(2)
        )
    settings = {"departure_partitions_max": 4, "session_timeout_ms": 100, **config}
    return Bench(bootstrap=tuple(records), **settings)


def written(one: Bench, since: int) -> list[list[object]]:
    """Return the records of each batch from the log's batch ``since`` on."""
    return [records_of(batch[2]) for batch in one.log.batches[since:]]


def states(image: MetadataImage) -> list[tuple[int, tuple[int, ...]]]:
    return [
        (state.leader, state.isr)
        for number in range(TOPICS)
        for _, state in sorted(image.topics.partitions_of(topic_id(number)).items())
    ]


def run(one: Bench, turns: int = 20) -> None:
    """Take turns, each after everything before is committed, without time passing."""
    for _ in range(turns):
        one.controller.submit(BrokerHeartbeat(2, 2, 1 << 40), RequestContext(), lambda answer: None)
        one.flush()
        one.log.settle()


def test_an_expired_broker_leaves_in_steps_and_is_fenced_last():
    one = bench()
    one.tick(50)
    run(one, 1)
    before = len(one.log.batches)
    one.tick(100)
    run(one)
    leaving = [
        BrokerLeavingEvent(1, 1, start_topic_id=start, end_topic_id=end)
        for start, end in ((bytes(16), topic_id(2)), (topic_id(2), topic_id(4)))
    ]
    assert written(one, before) == [[leaving[0]], [leaving[1]], [BrokerFencedEvent(1, 1)]]
    image = one.controller.image
    assert image.brokers[1].fenced
    assert states(image) == [(2, (2,))] * 12


def test_a_step_waits_for_the_commit_of_the_one_before():
    one = bench()
    one.tick(50)
    run(one, 1)
    one.tick(100)
    one.flush()
    before = len(one.log.batches)
    for _ in range(3):
        one.flush()
    assert len(one.log.batches) == before
    assert one.deadline_ms is None
    assert states(one.controller.image) == [(1, (1, 2))] * 12
    one.log.settle()
    one.flush()
    assert len(one.log.batches) == before + 1
    assert states(one.controller.image)[:5] == [(2, (2,))] * 4 + [(1, (1, 2))]


def test_other_commands_are_answered_between_the_steps():
    one = bench()
    one.submit(UnregisterBroker(1), "removal", principal="User:ann", reason="broken")
    one.flush()
    one.submit(set_config(7), "write")
    one.flush()
    one.log.settle()
    assert one.codes() == [("write", OK)]
    assert states(one.controller.image)[:5] == [(2, (2,))] * 4 + [(1, (1, 2))]
    run(one)
    assert one.codes() == [("removal", OK)]
    assert 1 not in one.controller.image.brokers


def test_the_steps_of_a_command_name_its_requester_and_reason():
    one = bench()
    before = len(one.log.batches)
    one.submit(UnregisterBroker(1), principal="User:ann", reason="broken")
    one.flush()
    run(one)
    assert [type(each[0]) for each in written(one, before)] == [
        BrokerLeavingEvent,
        BrokerLeavingEvent,
        BrokerFencedEvent,
    ]
    assert written(one, before)[-1][1:] == [UnregisterBrokerRecord(1, 1)]
    for _, _, data in one.log.batches[before:]:
        record = next(iter(iterate_records(data, scan_batches(data)[0])))
        headers = dict(batch_headers(record.headers, record.value))
        assert (headers["principal"], headers["reason"]) == (b"User:ann", b"broken")


def test_later_commands_of_a_waiting_producer_keep_their_order():
    one = bench()
    producer = one.producer()
    common = {"producer_id": producer, "producer_epoch": 0, "oldest_open": 0}
    one.submit(UnregisterBroker(1), "removal", sequence=0, **common)
    one.submit(set_config(7), "write", sequence=1, **common)
    one.flush()
    assert one.controller.queue_length == 2
    run(one)
    assert one.codes() == [("removal", OK), ("write", OK)]
    assert one.value() == "7"


def test_what_waits_is_refused_as_not_evaluated_when_leadership_is_lost():
    one = bench()
    one.submit(UnregisterBroker(1), "removal")
    one.flush()
    one.flush()
    one.log.settle()
    one.log.depose()
    assert one.codes() == [("removal", ErrorCode.NOT_LEADER_OR_FOLLOWER)]
    assert one.controller.queue_length == 0
    image = one.controller.image
    assert not image.brokers[1].fenced
    assert states(image)[:5] == [(2, (2,))] * 4 + [(1, (1, 2))]


def test_a_new_leader_fences_what_its_predecessor_left_in_the_middle():
    one = bench()
    one.tick(50)
    run(one, 1)
    one.tick(100)
    one.flush()
    one.log.settle()
    one.log.depose()
    one.log.elect()
    one.flush()
    one.log.settle()
    assert not one.controller.image.brokers[1].fenced
    one.tick(150)
    run(one, 1)
    one.tick(200)
    run(one)
    assert one.controller.image.brokers[1].fenced
    assert states(one.controller.image) == [(2, (2,))] * 12


def wait_behind_a_departure(one: Bench, writes: int) -> list[object]:
    """Submit a removal and writes of its producer behind it.

    Returns the tags of those that wait, in their order.
    """
    common = {"producer_id": one.producer(), "producer_epoch": 0, "oldest_open": 0}
    one.submit(UnregisterBroker(1), "removal", sequence=0, **common)
    for number in range(1, writes + 1):
        one.submit(set_config(number), number, sequence=number, **common)
    while one.controller.queue_length > writes + 1 or not one.log.proposals:
        one.flush()
    one.log.proposals.clear()
    return ["removal", *range(1, writes + 1)]


@pytest.mark.parametrize("bound", [{"group_commands_max": 3}, {"group_bytes_max": 150}])
def test_what_waited_is_written_in_order_over_as_many_groups_as_others(bound):
    """They waited for one departure together; one append of all would occupy every node's loop."""
    one = bench(groups_unflushed_max=1, **bound)
    waiting = wait_behind_a_departure(one, 10)
    for _ in range(30):
        one.log.settle()
        one.flush()
    assert [tag for tag, _ in one.codes()] == waiting
    assert max(one.log.proposals) <= 3
    assert sum(one.log.proposals) == 1 + 11, "the second step, and each command"
    assert one.controller.queue_length == 0
    assert one.value() == "10"


def test_commands_that_came_later_follow_those_released():
    one = bench(group_commands_max=2, groups_unflushed_max=1)
    waiting = wait_behind_a_departure(one, 7)
    while not one.answers:
        one.log.settle()
        one.flush()
    assert one.controller.queue_length > 0, "some are released and wait for a group"
    one.submit(set_config(1_000), "later")
    for _ in range(30):
        one.log.settle()
        one.flush()
    assert [tag for tag, _ in one.codes()] == [*waiting, "later"]
    assert one.value() == "1000"


def test_a_deposed_leader_answers_what_was_released():
    one = bench(group_commands_max=2, groups_unflushed_max=1)
    waiting = wait_behind_a_departure(one, 7)
    while not one.answers:
        one.log.settle()
        one.flush()
    one.log.depose()
    one.flush()
    assert [tag for tag, _ in one.codes()] == waiting
    assert one.controller.queue_length == 0


def test_what_waited_for_the_next_departure_comes_behind_what_was_released():
    one = bench(group_commands_max=2, groups_unflushed_max=1)
    waiting = wait_behind_a_departure(one, 5)
    one.submit(UnregisterBroker(2), "second")
    for _ in range(60):
        one.log.settle()
        one.flush()
    assert [tag for tag, _ in one.codes()] == [*waiting, "second"]
    assert not one.controller.image.brokers


def test_a_broker_that_is_in_contact_again_is_not_fenced():
    one = bench()
    one.tick(50)
    run(one, 1)
    one.tick(100)
    one.flush()
    one.log.settle()
    assert one.ask(BrokerHeartbeat(1, 1, 1 << 40)).code is OK
    run(one)
    assert not one.controller.image.brokers[1].fenced
    assert states(one.controller.image).count((2, (2,))) == 4, "of the first step only"
    assert one.deadline_ms is not None


def test_partitions_without_another_leader_wait_for_the_fence_itself():
    """They would stay without a leader if the broker came back in the middle."""
    one = bench(alone=3)
    one.submit(UnregisterBroker(1), "removal")
    for _ in range(3):
        one.flush()
        one.log.settle()
    leaders = [leader for leader, _ in states(one.controller.image)]
    assert leaders == [1] * 6 + [2] * 2 + [1] * 4
    run(one)
    assert one.codes() == [("removal", OK)]
    leaders = [leader for leader, _ in states(one.controller.image)]
    assert leaders == [NO_NODE] * 6 + [2] * 6


def test_a_shutdown_keeps_a_leadership_until_its_own_event():
    one = bench()
    one.submit(BrokerHeartbeat(1, 1, 1 << 40, want_shutdown=True), "shutdown")
    before = len(one.log.batches)
    run(one)
    (answer,) = [answer for tag, answer in one.answers if tag == "shutdown"]
    assert not answer.result["should_shut_down"]
    assert [type(each[0]) for each in written(one, before)] == [
        BrokerLeavingEvent,
        BrokerLeavingEvent,
        BrokerShutdownEvent,
    ]
    assert one.controller.image.brokers[1].in_controlled_shutdown


def test_a_dry_run_moves_nothing():
    one = bench()
    before = len(one.log.batches)
    assert one.ask(UnregisterBroker(1, dry_run=True)).code is OK
    assert len(one.log.batches) == before


@pytest.mark.parametrize("partitions_max", [12, 2_048])
def test_few_partitions_are_fenced_at_once(partitions_max):
    one = bench(departure_partitions_max=partitions_max)
    before = len(one.log.batches)
    assert one.ask(UnregisterBroker(1)).code is OK
    assert len(one.log.batches) == before + 1
    assert NoOpRecord() not in one.last_records()
