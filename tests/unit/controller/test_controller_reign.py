"""A controller's reign: activation, chores, sessions; and what all replicas do: follow, publish."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorum.batch import encode_batch, iterate_records, scan_batches
from quorum.control import SnapshotFooter, SnapshotHeader, encode_control_batch
from quorum.errors import CommandError, ErrorCode
from quorum.types import OffsetAndEpoch
from statemachine.codec import decode_record, encode_record
from statemachine.commands import BrokerHeartbeat, CreateTopic, FeatureRange, RegisterBroker
from statemachine.dump import dump_values
from statemachine.machine import StateMachine
from statemachine.prepare import JUDGES, Prepared
from statemachine.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerFencedEvent,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    ExpireProducerRecord,
    InitProducerRecord,
    NoOpRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
)
from tests.support.controller_bench import BOOTSTRAP, Bench, set_config

OK = ErrorCode.NONE
HEARTBEAT = BrokerHeartbeat(1, 1, 100)


def records_of(data):
    return [
        decode_record(record.value)
        for header in scan_batches(data)
        if not header.is_control
        for record in iterate_records(data, header)
    ]


def last_records(bench):
    return records_of(bench.log.batches[-1][2])


def foreign_batch(*records):
    return encode_batch([encode_record(r) for r in records], base_offset=0, epoch=1, timestamp=5)


# ---------------------------------------------------------------------- activation


def test_an_empty_log_gets_the_bootstrap_records_once_as_one_batch():
    bench = Bench(is_active=False)
    bench.log.elect()
    bench.flush()
    assert bench.log.proposals == [1]
    assert last_records(bench) == list(BOOTSTRAP)
    bench.flush()
    bench.log.settle()
    bench.flush()
    bench.log.depose()
    bench.log.elect()
    bench.flush()
    assert bench.log.proposals == [1]


def test_a_bootstrap_that_was_lost_is_written_again_by_the_next_leader():
    bench = Bench(is_active=False)
    bench.log.elect()
    bench.flush()
    bench.log.depose()
    bench.log.elect()
    bench.flush()
    bench.log.settle()
    assert bench.log.proposals == [1, 1]
    assert bench.controller.image.topics.id_of("t") is not None


def test_activation_comes_before_every_waiting_command():
    bench = Bench(is_active=False)
    bench.log.elect(is_committed=False)
    bench.submit(set_config(1), "a")
    bench.log.settle()
    for _ in range(3):
        bench.flush()
        bench.log.settle()
    assert bench.codes() == [("a", OK)]


def test_activation_waits_until_everything_older_is_applied():
    bench = Bench(is_active=False)
    bench.log.elect()
    bench.log.high_watermark += 1
    bench.flush()
    assert not bench.controller.is_active
    bench.log.high_watermark -= 1
    bench.flush()
    assert bench.controller.is_active


def test_a_transaction_left_open_is_aborted_first():
    bench = Bench(groups_unflushed_max=9)
    bench.log.depose()
    image = bench.controller.image
    bench.log.append_foreign(
        foreign_batch(BeginTransactionRecord("t"), ConfigRecord(2, "t", "retention.ms", "9")), 2
    )
    bench.log.commit()
    assert bench.controller.image.has_content_of(image)
    bench.log.elect()
    bench.submit(set_config(9), "a")
    bench.flush()
    bench.flush()
    assert type(last_records(bench)[0]) is AbortTransactionRecord
    assert bench.log.proposals == [1]
    bench.log.settle()
    assert bench.value() is None
    bench.flush()
    bench.log.settle()
    assert bench.codes() == [("a", OK)]
    assert bench.value() == "9"


# ---------------------------------------------------------------------- chores


def test_noops_keep_an_idle_log_moving_and_only_then():
    bench = Bench(idle_interval_ms=500)
    bench.tick(499)
    assert bench.log.proposals == []
    assert bench.controller.next_deadline_ms() == 500
    bench.tick(500)
    assert last_records(bench) == [NoOpRecord()]
    bench.log.settle()
    bench.now = 900
    bench.ask(set_config(1))
    bench.tick(1_000)
    assert len(bench.log.proposals) == 2
    bench.tick(1_400)
    assert len(bench.log.proposals) == 3


def test_a_silent_broker_is_fenced_when_its_session_ends():
    bench = Bench(session_timeout_ms=100)
    bench.tick(99)
    assert bench.log.proposals == []
    bench.tick(100)
    assert last_records(bench) == [BrokerFencedEvent(1, 1)]
    bench.log.settle()
    assert bench.controller.image.cluster.broker(1).fenced
    bench.tick(1_000)
    assert len(bench.log.proposals) == 1


def test_brokers_are_fenced_one_after_the_other():
    brokers = tuple(
        RegisterBrokerRecord(broker_id=i, incarnation_id=b"i" * 16, broker_epoch=i, fenced=False)
        for i in range(2, 5)
    )
    bench = Bench(bootstrap=(*BOOTSTRAP, *brokers), session_timeout_ms=100)
    for number in range(1, 5):
        bench.tick(100)
        bench.log.settle()
        assert len(bench.log.proposals) == number


def test_contact_counts_even_when_the_command_is_refused_or_waits():
    bench = Bench(session_timeout_ms=100, queue_commands_max=1)
    bench.submit(set_config(1))
    bench.submit(HEARTBEAT, "refused")
    bench.flush(90)
    assert bench.codes() == [("refused", ErrorCode.RESOURCE_EXHAUSTED)]
    bench.log.settle()
    bench.tick(189)
    bench.log.settle()
    assert not bench.controller.image.cluster.broker(1).fenced
    bench.submit(BrokerHeartbeat(1, 99, 0), "another life")
    bench.tick(190)
    bench.log.settle()
    assert bench.controller.image.cluster.broker(1).fenced


def test_a_new_leader_gives_every_unfenced_broker_a_fresh_session():
    bench = Bench(session_timeout_ms=100)
    bench.now = 5_000
    bench.log.depose()
    assert len(bench.controller.sessions) == 0
    bench.log.elect()
    bench.flush()
    bench.tick(5_099)
    assert bench.log.proposals == []
    bench.tick(5_100)
    assert last_records(bench) == [BrokerFencedEvent(1, 1)]


def test_a_broker_that_is_fenced_already_is_not_fenced_again():
    bench = Bench(session_timeout_ms=100)
    bench.ask(BrokerHeartbeat(1, 1, 100, want_fence=True))
    bench.tick(100)
    assert len(bench.log.proposals) == 1
    bench.log.depose()
    bench.log.elect()
    bench.flush()
    assert len(bench.controller.sessions) == 0


def test_a_quiet_heartbeat_is_answered_without_a_round_trip():
    bench = Bench()
    bench.submit(HEARTBEAT, "h")
    bench.flush()
    assert bench.codes() == [("h", OK)]
    assert bench.log.tokens == []
    assert bench.controller.sessions.get(1, 1).metadata_offset == 100


def test_a_broker_lives_its_life_through_the_log():
    """Register, unfence, shut down, come back: one epoch per life, rising, and no waiting."""
    bench = Bench()
    life = RegisterBroker(
        2,
        "c",
        b"x" * 16,
        features=(FeatureRange("metadata.version", 7, 33),),
        log_dirs=(b"d" * 16,),
    )
    epoch = bench.log.log_end
    assert bench.ask(life).result["broker_epoch"] == epoch
    assert bench.ask(BrokerHeartbeat(2, epoch, epoch)).result["is_fenced"] is False
    again = replace(life, incarnation_id=b"y" * 16)
    assert bench.ask(again).code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    stopped = bench.ask(BrokerHeartbeat(2, epoch, epoch, want_shutdown=True))
    assert stopped.result["should_shut_down"] is True
    second = bench.ask(again)
    assert second.result["broker_epoch"] > epoch
    assert bench.ask(BrokerHeartbeat(2, epoch, 99)).code is ErrorCode.STALE_BROKER_EPOCH


def test_producers_not_heard_of_are_forgotten():
    bench = Bench(producer_expiration_ms=10_000, producer_expiry_check_ms=1_000)
    first = bench.producer()
    bench.now = 8_000
    second = bench.producer()
    bench.tick(9_000)
    bench.log.settle()
    bench.tick(12_000)
    assert last_records(bench) == [ExpireProducerRecord(first)]
    bench.log.settle()
    assert bench.controller.image.producers.state(second) is not None


def test_kafkas_codec_writes_kafkas_records_without_headers():
    bench = Bench(uses_native_codec=False, session_timeout_ms=100)
    bench.submit(set_config(1), principal="User:ann")
    bench.flush()
    bench.log.settle()
    data = bench.log.batches[-1][2]
    (header,) = scan_batches(data)
    (record,) = iterate_records(data, header)
    assert (record.value[:1], record.headers) == (b"\x01", ())
    bench.tick(100)
    assert last_records(bench) == [BrokerRegistrationChangeRecord(1, 1, fenced=1)]


# ---------------------------------------------------------------------- reads and waits


def test_reads_of_a_turn_share_one_round_begun_after_they_came():
    bench = Bench()
    outcomes = []
    bench.controller.confirm_read(outcomes.append)
    bench.controller.confirm_read(outcomes.append)
    assert bench.log.tokens == []
    bench.flush()
    assert len(bench.log.tokens) == 1
    bench.controller.confirm_read(outcomes.append)
    bench.log.confirm_reads()
    assert outcomes == [bench.log.high_watermark] * 2
    bench.flush()
    bench.log.fail_reads()
    assert outcomes[-1] is None


def test_reads_fail_without_leadership_and_when_too_many_wait():
    bench = Bench(waits_max=1)
    outcomes = []
    bench.controller.confirm_read(outcomes.append)
    bench.controller.confirm_read(outcomes.append)
    assert outcomes == [None]
    bench.log.depose()
    assert outcomes == [None, None]
    bench.controller.confirm_read(outcomes.append)
    assert outcomes == [None, None, None]


def test_waits_are_released_in_order_and_can_be_given_up():
    bench = Bench(waits_max=3)
    seen = []
    end = bench.log.log_end
    bench.controller.wait_applied(end, lambda: seen.append("now"))
    assert seen == ["now"]
    bench.controller.wait_applied(end + 2, lambda: seen.append(2))
    bench.controller.wait_applied(end + 1, lambda: seen.append(1))
    cancel = bench.controller.wait_applied(end + 1, lambda: seen.append("never"))
    with pytest.raises(CommandError) as caught:
        bench.controller.wait_applied(end + 9, lambda: None)
    assert caught.value.code is ErrorCode.RESOURCE_EXHAUSTED
    cancel()
    bench.controller.wait_applied(end + 9, lambda: seen.append(9))
    bench.ask(set_config(1))
    assert seen == ["now", 1]
    bench.ask(set_config(2))
    assert seen == ["now", 1, 2]


# ---------------------------------------------------------------------- following


def test_subscribers_see_every_step_with_its_bytes():
    bench = Bench(groups_unflushed_max=9)
    steps = []
    cancel = bench.controller.subscribe(steps.append)
    first = bench.controller.image
    for value in (1, 2):
        bench.submit(set_config(value))
        bench.flush()
    bench.log.settle()
    (step,) = steps
    assert (step.before, step.after) == (first, bench.controller.image)
    assert [r.value for r in records_of(b"".join(step.data))] == ["1", "2"]
    replayed = StateMachine(first)
    replayed.apply(b"".join(step.data))
    assert replayed.image.has_content_of(step.after)
    assert (step.base_offset, step.end_offset) == (first.provenance.end_offset, bench.log.log_end)
    cancel()
    bench.ask(set_config(3))
    assert len(steps) == 1


def test_nothing_of_an_open_transaction_is_published():
    bench = Bench()
    bench.log.depose()
    steps = []
    bench.controller.subscribe(steps.append)
    batch = foreign_batch(
        BeginTransactionRecord("t"), ConfigRecord(2, "t", "retention.ms", "9")
    )
    bench.log.append_foreign(batch, 2)
    bench.log.commit()
    assert steps == []
    bench.log.append_foreign(foreign_batch(AbortTransactionRecord()), 1)
    bench.log.commit()
    assert len(records_of(b"".join(steps[0].data))) == 3
    assert bench.value() is None


def test_checkpoint_figures_count_from_the_capture():
    bench = Bench()
    progress = bench.controller.checkpoint
    written = sum(len(batch) for _, _, batch in bench.log.batches)
    assert progress.bytes_since == written
    progress.capture()
    bench.ask(set_config(1))
    progress.complete(3)
    assert progress.bytes_since == len(bench.log.batches[-1][2])
    progress.capture()
    bench.ask(set_config(2))
    progress.abandon()
    assert progress.changes.changed_records == 1
    assert progress.bytes_since == sum(len(b) for _, _, b in bench.log.batches[-2:])


def test_a_checkpoint_replaces_the_image():
    source = Bench()
    source.ask(set_config(5))
    end = source.controller.image.provenance
    values = list(dump_values(source.controller.image))
    pieces = [
        encode_control_batch([SnapshotHeader(1)], base_offset=0, epoch=1, timestamp=1),
        encode_batch(values, base_offset=1, epoch=1, timestamp=1),
        encode_control_batch(
            [SnapshotFooter()], base_offset=1 + len(values), epoch=1, timestamp=1
        ),
    ]
    bench = Bench(is_active=False)
    bench.log.depose()
    snapshot_id = OffsetAndEpoch(end.end_offset, end.epoch)
    bench.checkpoints[snapshot_id] = pieces
    steps, waited = [], []
    bench.controller.subscribe(steps.append)
    bench.controller.wait_applied(end.end_offset, lambda: waited.append(True))
    bench.controller.on_snapshot(snapshot_id)
    assert bench.value() == "5"
    assert waited == [True]
    assert (steps[0].snapshot_id, steps[0].data) == (snapshot_id, ())
    assert bench.controller.checkpoint.bytes_since == 0


# ---------------------------------------------------------------------- faults


def test_replay_stops_before_an_unknown_record_and_leadership_is_given_up():
    bench = Bench()
    bench.log.depose()
    end = bench.log.log_end
    unknown = encode_batch([b"\x92\xcd\x75\x30\x00"], base_offset=0, epoch=1, timestamp=5)
    bench.log.append_foreign(unknown, 1)
    bench.log.commit()
    assert bench.controller.image.provenance.end_offset == end
    assert bench.controller.fault is not None
    assert len(bench.faults) == 1
    bench.log.append_foreign(foreign_batch(ConfigRecord(2, "t", "retention.ms", "9")), 1)
    bench.log.commit()
    assert bench.value() is None
    bench.log.elect()
    bench.flush()
    assert not bench.controller.is_active


def test_records_that_do_not_replay_are_kept_out_of_the_log(monkeypatch):
    bench = Bench()

    def faulty(view, command, context):
        return Prepared([InitProducerRecord(500, 0), RemoveTopicRecord(b"x" * 16)])

    bench.submit(set_config(1), "good")
    monkeypatch.setitem(JUDGES, CreateTopic, faulty)
    bench.submit(CreateTopic("n"), "faulty")
    bench.submit(set_config(2), "good too")
    bench.flush()
    bench.log.settle()
    assert bench.codes() == [
        ("good", OK), ("faulty", ErrorCode.UNKNOWN_SERVER_ERROR), ("good too", OK),
    ]
    assert bench.log.proposals == [2]
    assert bench.value() == "2"
    assert bench.controller.image.producers.state(500) is None
    assert len(bench.faults) == 1


def test_values_that_no_record_can_hold_are_refused():
    bench = Bench()
    answer = bench.ask(set_config("x\ud800", key="quorate.note"))
    assert answer.code is ErrorCode.INVALID_REQUEST


def test_an_unknown_command_is_refused():
    bench = Bench()

    class Odd:
        dry_run = False

    bench.submit(Odd())
    bench.flush()
    bench.log.confirm_reads()
    assert [code for _, code in bench.codes()] == [ErrorCode.INVALID_REQUEST]
