"""A checkpoint's worker takes its share of a core, and no more."""

from __future__ import annotations

import pytest

from quorate.server.checkpoint_pace import paced

VALUES = [b"%d" % number for number in range(10_000)]


class Machine:
    """Processor time and sleep of one thread; each value costs ``value_s``."""

    def __init__(self, value_s: float) -> None:
        self.value_s = value_s
        self.worked_s = 0.0
        self.sleeps: list[float] = []

    def values(self):
        for value in VALUES:
            self.worked_s += self.value_s
            yield value

    def run(self, share: float) -> list[bytes]:
        return list(
            paced(
                self.values(), share, work_clock_s=lambda: self.worked_s, sleep=self.sleeps.append
            )
        )


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("value_s", [1e-6, 4e-6, 1e-3])
def test_the_thread_works_for_its_share(share: float, value_s: float) -> None:
    machine = Machine(value_s)
    assert machine.run(share) == VALUES
    total = machine.worked_s + sum(machine.sleeps)
    assert machine.worked_s / total == pytest.approx(share, rel=0.1)


def test_it_never_holds_the_interpreter_for_long() -> None:
    machine = Machine(4e-6)
    machine.run(0.25)
    assert machine.worked_s / len(machine.sleeps) < 1e-3


def test_a_whole_core_is_never_left_idle() -> None:
    machine = Machine(4e-6)
    assert machine.run(1) == VALUES
    assert not machine.sleeps
