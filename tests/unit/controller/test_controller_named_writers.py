"""Named writers: one authority over epochs, and requests that keep their first answer (360)."""

from __future__ import annotations

import pytest

from quorate.controller.claims import REQUEST_ID_BYTES_MAX
from quorum.errors import ErrorCode
from statemachine.commands import CreateTopic, InitProducerId
from statemachine.dump import dump_records
from statemachine.records import InitProducerRecord, NoOpRecord
from statemachine.sections.producers import REQUESTS_MAX
from tests.support.controller_bench import Bench, foreign_batch, set_config

OK = ErrorCode.NONE
FENCED = ErrorCode.INVALID_PRODUCER_EPOCH
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
ANN, BOB = "tls:ann", "tls:bob"


class Writer:
    """One process of a named writer."""

    def __init__(self, bench, name="deploy", principal=ANN, **more):
        self.bench = bench
        found = bench.ask(InitProducerId(name), principal=principal).result
        self.identity = found["producer_id"], found["producer_epoch"]
        self.who = {
            "producer_id": found["producer_id"],
            "producer_epoch": found["producer_epoch"],
            "principal": principal,
            **more,
        }
        self.sequence = 0

    def ask(self, command, request_id="", sequence=None, **more):
        number = self.sequence if sequence is None else sequence
        answer = self.bench.ask(
            command,
            sequence=number,
            **{"oldest_open": number, "request_id": request_id, **self.who, **more},
        )
        self.sequence = number + 1
        return answer


def test_a_former_process_is_fenced_by_name_and_its_write_is_not_applied():
    """Goal: 360.1. Method: a second process takes the name; the first one goes on writing."""
    bench = Bench()
    old = Writer(bench)
    assert old.ask(set_config(1)).code is OK
    new = Writer(bench)
    assert new.identity == (old.identity[0], old.identity[1] + 1)
    refused = old.ask(set_config(2))
    assert (refused.code, bench.value()) == (FENCED, "1")
    assert "writer 'deploy'" in refused.message
    known = refused.known_producer
    assert known.transactional_id == "deploy"
    assert (known.current_producer_id, known.current_producer_epoch) == new.identity
    assert new.ask(set_config(3)).code is OK


@pytest.mark.parametrize("by", ["a write", "InitProducerId without the name", "another principal"])
def test_nothing_but_the_name_raises_a_named_producers_epoch(by):
    """Goal: one authority per epoch. Method: every other way in, then a write of the owner."""
    bench = Bench()
    writer = Writer(bench)
    producer_id, epoch = writer.identity
    if by == "a write":
        raised = {**writer.who, "producer_epoch": epoch + 1}
        answer = bench.ask(set_config(9), sequence=0, oldest_open=0, **raised)
        assert answer.code is FENCED
        assert "'deploy'" in answer.message
    else:
        answer = bench.ask(
            InitProducerId(None, producer_id, epoch),
            principal=ANN if by.startswith("Init") else BOB,
        )
        assert answer.code is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert bench.controller.image.producers.states.get(producer_id).epoch == epoch
    assert writer.ask(set_config(1)).code is OK


def test_a_request_gets_its_first_answer_in_a_later_process():
    """Goal: 360.8 over a restart of the writer. Method: repeat it under the next epoch."""
    bench = Bench()
    first = Writer(bench).ask(set_config(1), "r1")
    assert first.code is OK
    assert Writer(bench).ask(set_config(2), "r2").code is OK
    later = Writer(bench)
    again = later.ask(set_config(1), "r1")
    assert (again.code, again.offset, again.epoch) == (OK, first.offset, first.epoch)
    assert bench.value() == "2", "applied once"
    # The next request goes on, although the repeat left its number unused.
    assert later.ask(set_config(3), "r3").code is OK


def test_a_result_is_part_of_the_first_answer():
    bench = Bench()
    command = set_config(1)
    created = Writer(bench).ask(InitProducerId("other"), "create")
    again = Writer(bench).ask(InitProducerId("other"), "create")
    assert created.result == again.result == {"producer_id": 1, "producer_epoch": 0}
    assert Writer(bench).ask(command).code is OK


def test_a_refusal_is_a_first_answer_too():
    """Goal: the first answer, whatever it was. Method: remove the reason, then repeat it."""
    bench = Bench()
    refused = Writer(bench).ask(CreateTopic("u", partition_count=1), "create")
    assert refused.code not in (OK, ErrorCode.INVALID_REQUEST)
    assert type(bench.last_records()[0]) is NoOpRecord
    again = Writer(bench).ask(CreateTopic("u", partition_count=1), "create")
    assert (again.code, again.message) == (refused.code, refused.message)
    assert again.offset == refused.offset


def test_what_changed_nothing_is_a_first_answer_too():
    bench = Bench()
    assert Writer(bench).ask(set_config(1)).code is OK
    first = Writer(bench).ask(set_config(1), "same")
    assert Writer(bench).ask(set_config(2)).code is OK
    again = Writer(bench).ask(set_config(1), "same")
    assert (again.code, again.offset, bench.value()) == (OK, first.offset, "2")


def test_a_request_id_belongs_to_its_command_and_to_its_writer():
    bench = Bench()
    writer = Writer(bench)
    writer.ask(set_config(1), "r")
    other = writer.ask(set_config(2), "r")
    assert (other.code, bench.value()) == (ErrorCode.INVALID_REQUEST, "1")
    assert "'deploy'" in other.message
    # Its number is free, so the next command need not wait.
    assert writer.ask(set_config(3), "s", oldest_open=0).code is OK
    assert Writer(bench, "backup").ask(set_config(4), "r").code is OK
    assert bench.value() == "4"


def test_a_dry_run_neither_keeps_nor_needs_a_request():
    bench = Bench()
    writer = Writer(bench)
    assert writer.ask(set_config(1, dry_run=True), "r").code is OK
    assert writer.ask(set_config(1), "r").code is OK
    assert (bench.value(), writer.ask(set_config(1, dry_run=True), "r").code) == ("1", OK)


def test_request_ids_without_a_name_are_for_the_audit_only():
    bench = Bench()
    found = bench.ask(InitProducerId(), principal=ANN).result
    who = {**found, "principal": ANN, "request_id": "r"}
    for sequence in (0, 1):
        answer = bench.ask(set_config(sequence), sequence=sequence, oldest_open=sequence, **who)
        assert answer.code is OK
    assert bench.value() == "1"
    assert not bench.controller.image.producers.requests


def test_a_request_id_that_is_kept_has_a_maximum_length():
    bench = Bench()
    writer = Writer(bench)
    longest = "é" * (REQUEST_ID_BYTES_MAX // 2)
    assert writer.ask(set_config(1), longest).code is OK
    assert writer.ask(set_config(2), longest + "éé").code is ErrorCode.INVALID_REQUEST


def test_the_newest_requests_are_kept():
    """Goal: bounded state. Method: one more than the maximum; the oldest one is new again."""
    bench = Bench()
    writer = Writer(bench)
    for number in range(REQUESTS_MAX + 1):
        assert writer.ask(set_config(number), f"r{number}").code is OK
    kept = bench.controller.image.producers.requests["deploy"]
    assert [kept[0].request_id, kept[-1].request_id] == ["r1", f"r{REQUESTS_MAX}"]
    assert len(kept) == REQUESTS_MAX
    writer.ask(set_config(1), "r1")
    assert bench.value() == str(REQUESTS_MAX)
    writer.ask(set_config(0), "r0")
    assert bench.value() == "0"


def test_requests_are_kept_when_the_producer_id_is_replaced():
    """Goal: 360.3 and 360.8 together. Method: expire the producer alone, then repeat."""
    bench = Bench(producer_expiration_ms=10_000_000)
    first = Writer(bench).ask(set_config(1), "r")
    image = bench.controller.image
    known = image.producers.transactional_ids.get("deploy")
    assert known.producer_id == 0
    rotate(bench, 0)
    later = Writer(bench)
    assert later.identity == (1, 0)
    again = later.ask(set_config(1), "r")
    assert (again.code, again.offset) == (OK, first.offset)


def rotate(bench, producer_id):
    """Use up the epochs of a named producer, by a record of the log."""
    bench.log.depose()
    bench.log.append_foreign(foreign_batch(InitProducerRecord(producer_id, 32_766)), 1)
    bench.log.settle()
    bench.activate()


# ---------------------------------------------------------------------- ordered


def ordered(bench, name=None):
    return Writer(bench, name, is_ordered=True)


def test_a_refusal_stops_an_ordered_producer():
    """Goal: 360.6, the first fatal error fails all later ones. Method: a pipeline of four."""
    bench = Bench()
    writer = ordered(bench)
    for sequence, command in enumerate(
        (set_config(1), set_config("x"), set_config(3), set_config(4))
    ):
        bench.submit(command, sequence, sequence=sequence, oldest_open=0, **writer.who)
    bench.flush()
    bench.log.settle()
    bench.log.confirm_reads()
    assert bench.codes() == [
        (0, OK),
        (1, ErrorCode.INVALID_CONFIG),
        (2, OUT_OF_ORDER),
        (3, OUT_OF_ORDER),
    ]
    assert bench.value() == "1"
    # It does not help to say that the refused number is not needed any more.
    assert writer.ask(set_config(3), sequence=2).code is OUT_OF_ORDER
    raised = {**writer.who, "producer_epoch": 1}
    assert bench.ask(set_config(5), sequence=0, oldest_open=0, **raised).code is OK


def test_the_refusal_of_a_repeat_stops_an_ordered_producer():
    """Goal: the same where the refusal takes its number (ADR 31)."""
    bench = Bench()
    writer = ordered(bench)
    assert writer.ask(set_config("x"), sequence=0, is_repeat=True).code is ErrorCode.INVALID_CONFIG
    assert type(bench.last_records()[0]) is NoOpRecord
    assert writer.ask(set_config(2), sequence=1).code is OUT_OF_ORDER
    assert writer.ask(set_config("x"), sequence=0).code is ErrorCode.INVALID_CONFIG
    assert bench.value() is None


def test_an_ordered_producer_has_no_holes():
    bench = Bench()
    writer = ordered(bench)
    assert writer.ask(set_config(1), sequence=0).code is OK
    # Without order, a client may skip numbers that it no longer needs.
    skipping = writer.ask(set_config(5), sequence=5)
    assert skipping.code is OUT_OF_ORDER
    assert skipping.known_producer.last_sequence == 0
    assert writer.ask(set_config(5), sequence=5, is_ordered=False).code is OK
    assert writer.ask(set_config(4), sequence=4, oldest_open=4).code is not OK


def test_what_changes_nothing_takes_the_number_of_an_ordered_producer():
    bench = Bench()
    writer = ordered(bench)
    for value in (1, 1, 2):
        assert writer.ask(set_config(value)).code is OK
    assert bench.value() == "2"


def test_a_repeated_request_takes_the_number_of_an_ordered_producer():
    bench = Bench()
    first = ordered(bench, "deploy").ask(set_config(1), "r")
    later = ordered(bench, "deploy")
    again = later.ask(set_config(1), "r")
    assert (again.code, again.offset) == (OK, first.offset)
    assert later.ask(set_config(2), oldest_open=0).code is OK
    repeated = later.ask(set_config(1), "r", sequence=0, oldest_open=0)
    assert (repeated.code, repeated.offset) == (OK, first.offset)


def test_a_repeated_request_is_answered_when_its_number_is_taken():
    """Goal: a lost batch of the repeat is no silent hole. Method: lose leadership before it."""
    bench = Bench()
    ordered(bench, "deploy").ask(set_config(1), "r")
    later = ordered(bench, "deploy")
    who = {**later.who, "request_id": "r"}
    bench.submit(set_config(1), "again", sequence=0, oldest_open=0, **who)
    bench.flush()
    assert bench.answers == []
    bench.log.depose()
    assert bench.codes() == [("again", ErrorCode.OUTCOME_UNKNOWN)]


# ---------------------------------------------------------------------- retention


EXPIRATION_MS = 10_000


def test_an_idle_producer_is_kept_when_its_records_are_trimmed_and_goes_when_it_expires():
    """Goal: 360.5. Method: go on from the state alone; write under another producer; wait."""
    settings = {"producer_expiration_ms": EXPIRATION_MS, "producer_expiry_check_ms": 1_000}
    before = Bench(**settings)
    idle, named = Writer(before, None), Writer(before)
    first = idle.ask(set_config(1))
    kept = named.ask(set_config(2), "r")
    # All that is left of the log is its state, as after a checkpoint.
    bench = Bench(bootstrap=tuple(dump_records(before.controller.image)), **settings)
    idle.bench = named.bench = bench
    again = idle.ask(set_config(1), sequence=0)
    assert (again.code, again.offset, bench.value()) == (OK, first.offset, "2")
    assert named.ask(set_config(2), "r").offset == kept.offset
    # Idle, but not for long enough.
    bench.tick(EXPIRATION_MS - 1_000)
    bench.log.settle()
    assert idle.ask(set_config(1), sequence=0).offset == first.offset
    busy = Writer(bench, "busy")
    busy.ask(set_config(3))
    for now in range(EXPIRATION_MS, 2 * EXPIRATION_MS, 500):
        bench.tick(now)
        bench.log.settle()
    gone = idle.ask(set_config(1), sequence=0)
    assert gone.code is ErrorCode.UNKNOWN_PRODUCER_ID
    assert (gone.known_producer.was_assigned, gone.known_producer.producer_epoch) == (True, -1)
    producers = bench.controller.image.producers
    assert (producers.transactional_ids.get("deploy"), dict(producers.requests)) == (None, {})
    assert busy.ask(set_config(4)).code is OK
