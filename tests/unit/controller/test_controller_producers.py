"""The owner of a producer and its numbers, and the evaluation order of commands (ADR 42)."""

from __future__ import annotations

import pytest

from quorum.errors import ErrorCode
from statemachine.commands import InitProducerId
from tests.support.controller_bench import Bench, set_config

OK = ErrorCode.NONE
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
ANN, BOB = "tls:ann", "tls:bob"


def writer(bench, principal):
    """What the commands of a fresh producer of that principal have in common."""
    found = bench.ask(InitProducerId(), principal=principal).result
    return {
        "producer_id": found["producer_id"],
        "producer_epoch": 0,
        "oldest_open": 0,
        "principal": principal,
    }


@pytest.mark.parametrize(
    ("stranger", "code", "honest"),
    [
        (BOB, ErrorCode.INVALID_PRODUCER_ID_MAPPING, OK),
        # Without certificates all are alike.
        (ANN, OK, ErrorCode.DUPLICATE_SEQUENCE_NUMBER),
    ],
)
def test_a_strangers_command_is_never_the_answer_to_an_honest_one(stranger, code, honest):
    bench = Bench()
    who = writer(bench, ANN)
    assert bench.ask(set_config(1), sequence=0, **who).code is OK
    theirs = bench.ask(set_config(9, "segment.ms"), sequence=1, **{**who, "principal": stranger})
    assert theirs.code is code
    mine = bench.ask(set_config(2), sequence=1, **who)
    assert mine.code is honest
    assert (bench.value() == "2") is (honest is OK)
    again = bench.ask(set_config(2), sequence=1, is_repeat=True, **who)
    assert (again.code, again.offset) == (mine.code, mine.offset)


@pytest.mark.parametrize("command", [set_config("x"), set_config(1, dry_run=True), set_config(1)])
def test_a_command_without_a_sequence_number_blocks_no_other(command):
    """A refusal, a dry run and one that changes nothing, in the middle of a pipeline."""
    bench = Bench()
    who = writer(bench, ANN)
    bench.ask(set_config(1), sequence=0, **who)
    for sequence in range(1, 5):
        one = command if sequence in (2, 3) else set_config(10 + sequence)
        bench.submit(one, sequence, sequence=sequence, **who)
    bench.flush()
    bench.submit(set_config(20), 5, sequence=5, **who)
    bench.flush()
    bench.log.settle()
    bench.flush()
    bench.log.settle()
    codes = dict(bench.codes())
    assert [codes[number] for number in (1, 4, 5)] == [OK, OK, OK]
    assert bench.value() == "20"


def test_a_gap_is_refused_until_it_is_filled_or_needed_no_more():
    bench = Bench()
    who = writer(bench, ANN)
    assert bench.ask(set_config(1), sequence=0, **who).code is OK
    assert bench.ask(set_config(5), sequence=5, **who).code is OUT_OF_ORDER
    assert bench.ask(set_config(2), sequence=2, **who).code is OUT_OF_ORDER
    assert bench.ask(set_config(3), sequence=1, **who).code is OK
    assert bench.ask(set_config(2), sequence=2, **who).code is OK
    assert bench.ask(set_config(5), sequence=5, **{**who, "oldest_open": 5}).code is OK
    assert bench.value() == "5"


def test_another_leader_asks_for_what_it_has_not_evaluated():
    bench = Bench()
    who = writer(bench, ANN)
    assert bench.ask(set_config("x"), sequence=0, **who).code is ErrorCode.INVALID_CONFIG
    bench.log.depose()
    bench.activate()
    bench.codes()
    assert bench.ask(set_config(1), sequence=1, **who).code is OUT_OF_ORDER
    assert bench.ask(set_config(1), sequence=1, **{**who, "oldest_open": 1}).code is OK
