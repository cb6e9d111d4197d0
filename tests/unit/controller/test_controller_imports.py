"""A controller during an import: no other writes, no fenced brokers, also after fail-over."""

from __future__ import annotations

from quorum.batch import iterate_records, scan_batches
from quorum.errors import ErrorCode
from statemachine.codec import encode_kafka
from statemachine.commands import BrokerHeartbeat, FeatureRange, ImportBatch, RegisterBroker
from statemachine.import_state import SourcePosition
from statemachine.records import (
    BrokerFencedEvent,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.support.controller_bench import Bench, set_config

OK = ErrorCode.NONE
BOOTSTRAP = (FeatureLevelRecord("metadata.version", 33),)
BROKER = RegisterBrokerRecord(
    broker_id=1, incarnation_id=b"i" * 16, broker_epoch=5_000, fenced=False
)
SOURCE = (FeatureLevelRecord("metadata.version", 19), BROKER, TopicRecord("t", b"t" * 16))


def step(begin, end, *records, is_last=False):
    return ImportBatch(
        "source",
        SourcePosition(is_in_log=True, offset=begin),
        SourcePosition(is_in_log=True, offset=end),
        tuple(encode_kafka(record) for record in records),
        is_last=is_last,
    )


def begun():
    bench = Bench(bootstrap=BOOTSTRAP)
    assert bench.ask(step(0, 0)).code is OK
    assert bench.ask(step(0, 10, *SOURCE)).code is OK
    return bench


def finished():
    bench = begun()
    assert bench.ask(step(10, 10, is_last=True)).code is OK
    return bench


def fail_over(bench):
    bench.log.depose()
    bench.log.elect()
    bench.flush()
    bench.log.settle()


def test_a_source_batch_is_one_batch_of_the_same_records():
    bench = begun()
    data = bench.log.batches[-1][2]
    (header,) = scan_batches(data)
    assert header.producer_id == -1
    assert bench.last_records() == list(SOURCE)
    headers = dict(iterate_records(data, header)[0].headers)
    assert (headers["source-offset"], headers["source-next"]) == (b"0", b"10")


def test_no_other_client_can_write_during_an_import():
    bench = begun()
    for command in (set_config(1), BrokerHeartbeat(1, 5_000, 10)):
        assert bench.ask(command).code is ErrorCode.POLICY_VIOLATION
    bench.ask(step(10, 10, is_last=True))
    assert bench.ask(set_config(1)).code is OK


def test_a_repeat_changes_nothing_and_a_gap_is_refused():
    bench = begun()
    end = bench.log.log_end_offset
    assert bench.ask(step(0, 10, *SOURCE)).code is OK
    assert bench.ask(step(11, 12, SOURCE[0])).code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert bench.log.log_end_offset == end


def test_steps_in_one_group_build_on_each_other():
    bench = Bench(bootstrap=BOOTSTRAP)
    for number, command in enumerate(
        (step(0, 0), step(0, 10, *SOURCE), step(10, 11, SOURCE[0]), step(20, 21), step(11, 11))
    ):
        bench.submit(command, number)
    bench.flush()
    bench.log.settle()
    bench.log.confirm_reads()
    expected = [OK, OK, OK, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, OK]
    assert bench.codes() == list(enumerate(expected))
    assert bench.log.proposals == [3]


def test_records_that_contradict_the_metadata_are_the_senders_fault():
    bench = begun()
    answer = bench.ask(step(10, 11, RemoveTopicRecord(b"x" * 16)))
    assert answer.code is ErrorCode.INVALID_REQUEST
    assert bench.faults == []
    assert bench.ask(step(10, 11, SOURCE[0])).code is OK


def test_a_new_leader_does_not_write_the_bootstrap_records_into_a_begun_import():
    bench = Bench(bootstrap=BOOTSTRAP)
    bench.ask(step(0, 0))
    fail_over(bench)
    assert bench.controller.image.features.metadata_version == 0
    assert bench.ask(step(0, 10, *SOURCE)).code is OK
    assert bench.controller.image.features.metadata_version == 19


def test_what_was_not_committed_is_asked_for_again_after_a_fail_over():
    """The lost range is the next one again; nothing is skipped, nothing comes twice."""
    bench = begun()
    bench.submit(step(10, 11, TopicRecord("lost", b"l" * 16)))
    bench.flush()
    fail_over(bench)
    assert bench.ask(step(11, 12, SOURCE[0])).code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert bench.ask(step(10, 11, TopicRecord("lost", b"l" * 16))).code is OK
    assert sorted(bench.controller.image.topics.ids) == ["lost", "t"]


def test_imported_brokers_have_no_session_before_their_first_heartbeat():
    """Neither during the import nor after it nor under a new leader are they fenced."""
    bench = begun()
    bench.submit(BrokerHeartbeat(1, 5_000, 10))
    bench.flush()
    assert len(bench.controller.sessions) == 0
    bench.tick(20_000)
    bench.log.settle()
    assert bench.last_records() == list(SOURCE)
    bench.ask(step(10, 10, is_last=True))
    fail_over(bench)
    assert len(bench.controller.sessions) == 0
    bench.tick(60_000)
    bench.log.settle()
    assert not bench.controller.image.brokers[1].fenced
    assert bench.ask(BrokerHeartbeat(1, 5_000, bench.log.log_end_offset)).code is OK
    assert len(bench.controller.sessions) == 1
    bench.tick(80_000)
    bench.log.settle()
    assert bench.last_records() == [BrokerFencedEvent(1, 5_000)]


def test_a_registration_after_the_import_is_above_every_epoch_seen():
    """Offsets begin at 0 again, but broker epochs go on rising."""
    bench = finished()
    command = RegisterBroker(
        1,
        "c",
        b"j" * 16,
        features=(FeatureRange("metadata.version", 7, 33),),
        log_dirs=(b"\x22" * 16,),
    )
    answer = bench.ask(command)
    assert answer.result == {"broker_epoch": 5_001}
    assert bench.log.log_end_offset < 5_000


def test_brokers_registered_after_the_import_get_sessions_from_a_new_leader():
    bench = finished()
    bench.ask(
        RegisterBroker(
            2,
            "c",
            b"k" * 16,
            features=(FeatureRange("metadata.version", 7, 33),),
            log_dirs=(b"\x23" * 16,),
        )
    )
    bench.ask(BrokerHeartbeat(2, 5_001, bench.log.log_end_offset))
    assert not bench.controller.image.brokers[2].fenced
    fail_over(bench)
    assert len(bench.controller.sessions) == 1


def test_an_import_ends_once():
    bench = finished()
    assert bench.ask(step(10, 10, is_last=True)).code is OK
    assert bench.ask(step(10, 11, SOURCE[0])).code is ErrorCode.POLICY_VIOLATION


def test_partitions_come_as_they_are():
    bench = begun()
    partition = PartitionRecord(0, b"t" * 16, (1,), (1,), leader=1, leader_epoch=7)
    bench.ask(step(10, 12, partition))
    state = bench.controller.image.topics.partition(b"t" * 16, 0)
    assert (state.leader, state.leader_epoch) == (1, 7)


def test_a_broker_serves_once_it_has_its_registration_though_its_epoch_is_beyond_the_log():
    """Before it has applied that it may not; under a new leader the same holds."""
    bench = finished()
    bench.ask(
        RegisterBroker(
            2,
            "c",
            b"k" * 16,
            features=(FeatureRange("metadata.version", 7, 33),),
            log_dirs=(b"\x23" * 16,),
        )
    )
    registered_at = bench.log.log_end_offset - 1
    answer = bench.ask(BrokerHeartbeat(2, 5_001, registered_at - 1))
    assert (answer.result["is_caught_up"], answer.result["is_fenced"]) == (False, True)
    fail_over(bench)
    answer = bench.ask(BrokerHeartbeat(2, 5_001, registered_at - 1))
    assert answer.result["is_fenced"] is True
    answer = bench.ask(BrokerHeartbeat(2, 5_001, bench.log.log_end_offset - 1))
    assert answer.result["is_fenced"] is False
