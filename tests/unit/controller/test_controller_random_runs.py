"""Random schedules of commands, commits, elections and losses, compared with the log.

Every command writes a value of its own, so that the log shows exactly which were applied.
"""

from __future__ import annotations

import random

import pytest

from quorate.controller.requests import Answer
from quorum.errors import ErrorCode
from statemachine.commands import BrokerHeartbeat, CreateTopic, DeleteTopic
from statemachine.machine import StateMachine
from statemachine.records import ConfigRecord
from tests.support.controller_bench import Bench, records_of, set_config

STEPS = 500
WRITER_VALUES = 1_000_000


class Writer:
    """An idempotent writer: it repeats a command until it knows that it was applied."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._producer_id = bench.producer()
        self._is_waiting = False
        self.repeats = 0
        self.done = 0
        """Commands known to be applied; the next one has this sequence number."""

    def go_on(self) -> None:
        if self._is_waiting:
            return
        self._is_waiting = True
        self._bench.submit(
            set_config(WRITER_VALUES + self.done, key="segment.ms"),
            "writer",
            producer_id=self._producer_id,
            producer_epoch=0,
            sequence=self.done,
            oldest_open=self.done,
        )

    def answered(self, answer: Answer) -> None:
        self._is_waiting = False
        if answer.code is ErrorCode.NONE:
            self.done += 1
        else:
            assert answer.code in (
                ErrorCode.OUTCOME_UNKNOWN,
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
            )
            self.repeats += 1


class Run:
    """One schedule, its reference replica and its observations."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.bench = Bench(
            idle_interval_ms=self.rng.choice([0, 50]),
            session_timeout_ms=400,
            groups_unflushed_max=self.rng.choice([1, 2, 5]),
            groups_in_flight_max=self.rng.choice([1, 3, 8]),
            group_commands_max=self.rng.choice([1, 3, 100]),
            departure_partitions_max=self.rng.choice([1, 2_048]),
        )
        self.reference = StateMachine()
        self.applied_end = 0
        self.submitted = 0
        self.codes: dict[int, list[ErrorCode]] = {}
        self.writer = Writer(self.bench)
        self.follow()

    def step(self) -> None:
        bench, rng = self.bench, self.rng
        kind = rng.choices(
            [
                "submit",
                "flush",
                "disk",
                "commit",
                "part",
                "control",
                "reads",
                "lose",
                "win",
                "time",
            ],
            [40, 20, 15, 15, 10, 3, 8, 2, 15, 8],
        )[0]
        if kind == "submit":
            self.submit()
            self.writer.go_on()
        elif kind == "flush":
            bench.flush()
        elif kind == "disk":
            bench.log.flush_disk()
        elif kind == "commit":
            bench.log.commit()
        elif kind == "part":
            ends = [end for _, end, _ in bench.log.batches if end > bench.log.high_watermark]
            if ends:
                bench.log.commit(rng.choice(ends))
        elif kind == "control" and bench.log.can_write:
            bench.log.append_control()
        elif kind == "reads":
            (bench.log.confirm_reads if rng.random() < 0.8 else bench.log.fail_reads)()
        elif kind == "lose" and bench.log.is_leader:
            bench.log.depose(truncates=rng.random() < 0.5)
        elif kind == "win" and not bench.log.is_leader:
            bench.log.elect(is_committed=False)
        elif kind == "time":
            bench.tick(bench.now + rng.randrange(100))
        self.follow()

    def submit(self) -> None:
        number = self.submitted
        self.submitted += 1
        kind = self.rng.randrange(10)
        name = f"topic-{self.rng.randrange(3)}"
        if kind == 0:
            command = CreateTopic(name, 1, 1)
        elif kind == 1:
            command = DeleteTopic(name)
        elif kind == 2:
            command = BrokerHeartbeat(1, 1, 100)
        elif kind == 3:
            command = set_config("refused")
        else:
            command = set_config(number)
        self.bench.submit(command, number)

    def follow(self) -> None:
        """Replay what is committed elsewhere, and hold image and answers against it."""
        bench = self.bench
        for base, end, batch in bench.log.batches:
            if base >= self.applied_end and end <= bench.log.high_watermark:
                self.reference.apply(batch)
                self.applied_end = end
        for number, answer in bench.answers:
            if number == "writer":
                self.writer.answered(answer)
                continue
            self.codes.setdefault(number, []).append(answer.code)
            assert answer.offset <= bench.controller.image.provenance.end_offset
        bench.answers.clear()
        image = bench.controller.image
        if image.provenance.end_offset == self.reference.image.provenance.end_offset:
            assert image.has_content_of(self.reference.image)
        if not bench.log.is_leader:
            assert image.provenance.end_offset == bench.log.high_watermark

    def written(self) -> list[int]:
        """Return the numbers of the commands whose value is in the committed log, in order."""
        data = b"".join(
            batch
            for _, end, batch in self.bench.log.batches
            if end <= self.bench.log.high_watermark
        )
        return [
            int(record.value)
            for record in records_of(data)
            if type(record) is ConfigRecord and record.value is not None
        ]


@pytest.mark.parametrize("seed", range(25))
def test_every_command_gets_one_answer_and_the_log_bears_it_out(seed):
    run = Run(seed)
    for _ in range(STEPS):
        run.step()
    if run.bench.log.is_leader:
        run.bench.log.depose(truncates=False)
        run.follow()
    assert all(len(codes) == 1 for codes in run.codes.values())
    assert sorted(run.codes) == list(range(run.submitted))
    run.bench.log.commit()
    run.follow()
    written = run.written()
    assert len(set(written)) == len(written)
    of_writer = [value - WRITER_VALUES for value in written if value >= WRITER_VALUES]
    assert of_writer[: run.writer.done] == list(range(run.writer.done))
    assert len(of_writer) <= run.writer.done + 1
    for number, (code,) in run.codes.items():
        if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            assert number not in written
    assert len(written) > 10


def test_the_schedules_make_writers_repeat_themselves():
    repeats = done = 0
    for seed in range(5):
        run = Run(seed)
        for _ in range(STEPS):
            run.step()
        repeats += run.writer.repeats
        done += run.writer.done
    assert repeats > 20
    assert done > 50


def test_one_seed_runs_the_same_twice():
    logs = []
    for _ in range(2):
        run = Run(7)
        for _ in range(STEPS):
            run.step()
        logs.append(b"".join(batch for _, _, batch in run.bench.log.batches))
    assert logs[0] == logs[1]
