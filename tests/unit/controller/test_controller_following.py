"""What every replica's controller does: reads, waits, publishing, checkpoints, faults."""

from __future__ import annotations

import pytest

from quorum.batch import encode_batch
from quorum.control import SnapshotFooter, SnapshotHeader, encode_control_batch
from quorum.errors import CommandError, ErrorCode
from quorum.types import OffsetAndEpoch
from statemachine.commands import CreateTopic
from statemachine.dump import dump_values
from statemachine.machine import StateMachine
from statemachine.prepare import EVALUATORS, Prepared
from statemachine.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    InitProducerRecord,
    RemoveTopicRecord,
)
from tests.support.controller_bench import Bench, foreign_batch, records_of, set_config

OK = ErrorCode.NONE


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


def test_reads_fail_when_too_many_wait():
    bench = Bench(purgatory_max=1)
    outcomes = []
    bench.controller.confirm_read(outcomes.append)
    bench.controller.confirm_read(outcomes.append)
    assert outcomes == [None]


def test_reads_outlive_a_leadership_and_are_asked_for_elsewhere():
    """Goal: a deposed leader forwards reads that it had not requested; the core ends the others.

    Method: one read in a round, one not yet; depose; flush.
    """
    bench = Bench()
    outcomes = []
    bench.controller.confirm_read(lambda offset: outcomes.append(("asked", offset)))
    bench.flush()
    bench.controller.confirm_read(lambda offset: outcomes.append(("new", offset)))
    bench.log.depose()
    assert outcomes == []
    bench.log.fail_reads()
    assert outcomes == [("asked", None)]
    bench.flush()
    assert len(bench.log.tokens) == 1
    bench.log.confirm_reads()
    assert outcomes[1:] == [("new", bench.log.high_watermark)]


def test_waits_are_released_in_order_and_can_be_given_up():
    bench = Bench(purgatory_max=3)
    seen = []
    end = bench.log.log_end_offset
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
    replayed = StateMachine()
    replayed.image = first
    replayed.apply(b"".join(step.data))
    assert replayed.image.has_content_of(step.after)
    assert (step.base_offset, step.end_offset) == (
        first.provenance.end_offset,
        bench.log.log_end_offset,
    )
    cancel()
    bench.ask(set_config(3))
    assert len(steps) == 1


def test_nothing_of_an_open_transaction_is_published():
    bench = Bench()
    bench.log.depose()
    steps = []
    bench.controller.subscribe(steps.append)
    batch = foreign_batch(BeginTransactionRecord("t"), ConfigRecord(2, "t", "retention.ms", "9"))
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
        encode_control_batch([SnapshotFooter()], base_offset=1 + len(values), epoch=1, timestamp=1),
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
    end = bench.log.log_end_offset
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
    monkeypatch.setitem(EVALUATORS, CreateTopic, faulty)
    bench.submit(CreateTopic("n"), "faulty")
    bench.submit(set_config(2), "good too")
    bench.flush()
    bench.log.settle()
    assert bench.codes() == [
        ("good", OK),
        ("faulty", ErrorCode.UNKNOWN_SERVER_ERROR),
        ("good too", OK),
    ]
    assert bench.log.proposals == [2]
    assert bench.value() == "2"
    assert bench.controller.image.producers.states.get(500) is None
    assert len(bench.faults) == 1


def test_values_that_no_record_can_hold_are_refused():
    bench = Bench()
    answer = bench.ask(set_config("x\ud800", key="quorate.note"))
    assert answer.code is ErrorCode.INVALID_REQUEST


@pytest.mark.interpreted
def test_an_unknown_command_is_refused():
    bench = Bench()

    class Odd:
        dry_run = False

    bench.submit(Odd())
    bench.flush()
    bench.log.confirm_reads()
    assert [code for _, code in bench.codes()] == [ErrorCode.INVALID_REQUEST]
