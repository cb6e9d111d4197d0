"""A lone read is never held; readers that come back one by one are confirmed together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from quorate.server.read_gathering import HOLD_SECONDS_MAX, ReadGathering


class Timer:
    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class Bench:
    """A gathering, its timer, and the confirmations that it began."""

    def __init__(self) -> None:
        self.timers: list[Timer] = []
        self.begun: list[Callable[[int | None], None]] = []
        self.outcomes: list[int | None] = []
        self.reads = ReadGathering(cast("Any", self), self.begun.append)

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        assert seconds == HOLD_SECONDS_MAX
        self.timers.append(Timer(call))
        return self.timers[-1]

    @property
    def is_timed(self) -> bool:
        return any(timer.call for timer in self.timers)

    def pass_time(self) -> None:
        (call,) = (timer.call for timer in self.timers if timer.call)
        self.timers.clear()
        call()

    def add(self, reads: int = 1) -> None:
        self.reads.add(self.outcomes.append, reads)

    def confirm_all(self) -> int:
        """Decide what was begun, and return how many outcomes that were."""
        begun = list(self.begun)
        self.begun.clear()
        for each in begun:
            each(7)
        return len(begun)


def test_reads_one_after_the_other_are_not_held() -> None:
    bench = Bench()
    for number in range(5):
        bench.add()
        assert bench.confirm_all() == 1
        assert bench.outcomes == [7] * (number + 1)
    assert not bench.timers


def test_readers_that_come_back_one_by_one_share_the_next_round() -> None:
    bench = Bench()
    bench.add(64)
    bench.confirm_all()
    bench.add(3)
    bench.add(60)
    assert not bench.begun
    bench.add(1)
    assert len(bench.begun) == 3
    assert not bench.is_timed, "it would cut the next gathering short"


def test_reads_under_way_count_so_two_groups_alternate_without_holding() -> None:
    bench = Bench()
    bench.add(32)
    bench.add(32)
    first, second = bench.begun
    bench.begun.clear()
    first(7)
    bench.add(32)
    assert len(bench.begun) == 1, "32 are under way, so all are there"
    second(7)
    bench.add(32)
    assert len(bench.begun) == 2
    assert not bench.timers


def test_a_reader_that_remains_is_held_a_few_times_only() -> None:
    bench = Bench()
    bench.add(4)
    bench.confirm_all()
    held = 0
    for _ in range(10):
        bench.add()
        if bench.is_timed:
            bench.pass_time()
            held += 1
        assert bench.confirm_all() == 1
    assert held <= 3


def test_a_pause_of_the_client_does_not_end_the_gathering() -> None:
    bench = Bench()
    bench.add(64)
    bench.confirm_all()
    bench.add(1)
    bench.pass_time()
    assert bench.confirm_all() == 1
    bench.add(40)
    assert not bench.begun
    bench.add(8)
    assert bench.confirm_all() == 2


def test_a_failed_read_counts_no_longer() -> None:
    """Also one that is refused at once."""
    bench = Bench()
    reads = ReadGathering(cast("Any", bench), lambda on_outcome: on_outcome(None))
    reads.add(bench.outcomes.append, 1)
    reads.add(bench.outcomes.append, 1)
    assert bench.outcomes == [None, None]
    assert not bench.timers
