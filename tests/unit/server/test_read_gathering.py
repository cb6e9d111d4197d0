"""A lone read is never held; those that come while another waits are passed on together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from quorate.server.read_gathering import HOLD_SECONDS_MAX, ReadGathering


class Loop:
    """Notes what is to be called later."""

    def __init__(self) -> None:
        self.due: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        self.due.append((seconds, call))

    def pass_time(self) -> None:
        ((seconds, call),) = self.due
        assert seconds == HOLD_SECONDS_MAX
        self.due.clear()
        call()


def gathering() -> tuple[Loop, list[Callable[[int | None], None]], ReadGathering]:
    loop, begun = Loop(), cast("list[Callable[[int | None], None]]", [])
    return loop, begun, ReadGathering(cast("Any", loop), begun.append)


def test_reads_one_after_the_other_are_not_held() -> None:
    loop, begun, reads = gathering()
    outcomes: list[int | None] = []
    for number in range(5):
        reads.add(outcomes.append)
        begun.pop()(number)
        assert outcomes[-1] == number
    assert not loop.due


def test_reads_that_find_another_waiting_are_passed_on_together() -> None:
    loop, begun, reads = gathering()
    outcomes: list[int | None] = []
    for _ in range(5):
        reads.add(outcomes.append)
    assert len(begun) == 1
    loop.pass_time()
    assert len(begun) == 5
    for number, each in enumerate(begun):
        each(number)
    assert outcomes == [0, 1, 2, 3, 4]
    reads.add(outcomes.append)
    assert len(begun) == 6


def test_a_failed_read_counts_no_longer() -> None:
    """Also one that is refused at once."""
    loop = Loop()
    outcomes: list[int | None] = []
    reads = ReadGathering(cast("Any", loop), lambda on_outcome: on_outcome(None))
    reads.add(outcomes.append)
    reads.add(outcomes.append)
    assert outcomes == [None, None]
    assert not loop.due
