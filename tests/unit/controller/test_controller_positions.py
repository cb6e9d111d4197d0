"""Committed positions: in one batch with a command, fenced with their writer, and expired."""

from __future__ import annotations

import pytest

from quorate.controller.requests import Answer
from quorum.errors import ErrorCode
from quorum.types import ZERO_UUID
from statemachine.codec import decode_record
from statemachine.commands import (
    CommitPosition,
    CreateTopic,
    InitProducerId,
    ReadEpoch,
    WithPosition,
)
from statemachine.dump import count_records, dump_records, dump_values
from statemachine.records import (
    CommittedPositionRecord,
    ConfigRecord,
    PositionEpoch,
    RemoveCommittedPositionRecord,
)
from tests.support.controller_bench import Bench, set_config
from tests.support.image_builder import replayed

ANN = "tls:ann"
READ_TO_9 = CommitPosition(
    "g", 9, 3, (ReadEpoch(1, 0), ReadEpoch(3, 4, b"d" * 16)), b"e" * 16, ZERO_UUID, "mine"
)


def named_writer(bench: Bench, name: str = "copier") -> dict[str, object]:
    """Take over a writer's name, as a process does when it starts."""
    found = bench.ask(InitProducerId(name), principal=ANN).result
    return {
        "producer_id": found["producer_id"],
        "producer_epoch": found["producer_epoch"],
        "oldest_open": 0,
        "principal": ANN,
    }


def position(bench: Bench, group: str = "g") -> int:
    found = bench.controller.image.positions.of(group)
    return -1 if found is None else found.offset


def test_a_position_is_kept_with_all_its_fields_and_the_newest_counts() -> None:
    bench = Bench()
    bench.now = 50
    assert bench.ask(READ_TO_9).code is ErrorCode.NONE
    kept = bench.controller.image.positions.of("g")
    assert kept == CommittedPositionRecord(
        "g", 9, 3, (PositionEpoch(1, 0), PositionEpoch(3, 4, b"d" * 16)), b"e" * 16, ZERO_UUID,
        "mine", 1_050,
    )  # fmt: skip
    assert bench.last_records() == [kept]
    bench.ask(CommitPosition("g", 4))
    bench.ask(CommitPosition("h", 1))
    assert (position(bench), position(bench, "h"), position(bench, "none")) == (4, 1, -1)


@pytest.mark.parametrize("is_kafka", [False, True])
def test_positions_are_in_checkpoints(is_kafka: bool) -> None:
    bench = Bench(uses_native_codec=not is_kafka)
    bench.ask(READ_TO_9)
    image = bench.controller.image
    assert count_records(image) == len(list(dump_records(image)))
    loaded = replayed(*(decode_record(value) for value in dump_values(image, kafka=is_kafka)))
    assert loaded.positions == image.positions


def test_a_command_and_its_position_are_one_batch() -> None:
    bench = Bench()
    done = bench.ask(WithPosition(set_config(1), READ_TO_9), **named_writer(bench), sequence=0)
    assert done.code is ErrorCode.NONE
    first, second = bench.last_records()
    assert (type(first), type(second)) == (ConfigRecord, CommittedPositionRecord)
    assert (bench.value(), position(bench)) == ("1", 9)


def test_a_refused_command_commits_no_position_and_an_invalid_position_no_command() -> None:
    bench = Bench()
    refused = bench.ask(WithPosition(set_config("x"), READ_TO_9))
    assert refused.code is ErrorCode.INVALID_CONFIG
    invalid = bench.ask(WithPosition(set_config(1), CommitPosition("", 9)))
    assert invalid.code is ErrorCode.INVALID_REQUEST
    assert (bench.value(), position(bench)) == (None, -1)


def test_a_command_that_changes_nothing_still_commits_its_position() -> None:
    bench = Bench()
    bench.ask(set_config(1))
    bench.ask(WithPosition(set_config(1), READ_TO_9))
    assert position(bench) == 9


def test_a_dry_run_writes_neither() -> None:
    bench = Bench()
    both = WithPosition(set_config(1, dry_run=True), CommitPosition("g", 9, dry_run=True))
    assert bench.ask(both).code is ErrorCode.NONE
    assert (bench.value(), position(bench)) == (None, -1)
    mixed = WithPosition(set_config(1), CommitPosition("g", 9, dry_run=True))
    assert bench.ask(mixed).code is ErrorCode.INVALID_REQUEST


def process(bench: Bench, writer: dict[str, object], sequence: int, *, repeat: bool) -> Answer:
    """One step of a program: it read up to a position and creates a topic for it."""
    offset = sequence + 1
    command = WithPosition(CreateTopic(f"made-{offset}", 1, 1), CommitPosition("g", offset))
    return bench.ask(command, sequence=sequence, is_repeat=repeat, **writer)


def test_a_repeated_step_is_done_once_and_gets_its_first_answer() -> None:
    bench = Bench()
    writer = named_writer(bench)
    first = process(bench, writer, 0, repeat=False)
    again = process(bench, writer, 0, repeat=True)
    assert (again.code, again.offset, again.result) == (ErrorCode.NONE, first.offset, first.result)
    assert [type(each) for each in bench.last_records()][-1] is CommittedPositionRecord


def test_a_replaced_process_commits_neither_its_command_nor_its_position() -> None:
    """Read-process-write: the zombie wakes up after its successor went on from its position."""
    bench = Bench()
    zombie = named_writer(bench)
    assert process(bench, zombie, 0, repeat=False).code is ErrorCode.NONE
    successor = named_writer(bench)
    assert successor["producer_id"] == zombie["producer_id"]
    begun = position(bench)
    assert begun == 1
    late = process(bench, zombie, 1, repeat=False)
    assert late.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert position(bench) == begun
    assert "made-2" not in bench.controller.image.topics.ids
    mine = WithPosition(CreateTopic("made-2", 1, 1), CommitPosition("g", 2))
    assert bench.ask(mine, sequence=0, **successor).code is ErrorCode.NONE
    assert position(bench) == 2


def test_positions_expire_unless_they_are_committed_again() -> None:
    bench = Bench(position_expiration_ms=10_000, producer_expiry_check_ms=1_000)
    bench.ask(CommitPosition("old", 1))
    bench.ask(CommitPosition("kept", 1))
    bench.tick(6_000)
    bench.log.settle()
    bench.ask(CommitPosition("kept", 1))
    bench.tick(10_000)
    bench.log.settle()
    assert (position(bench, "old"), position(bench, "kept")) == (1, 1)
    bench.tick(11_001)
    bench.log.settle()
    assert (position(bench, "old"), position(bench, "kept")) == (-1, 1)
    assert RemoveCommittedPositionRecord("old") in bench.last_records()
