"""A node's clocks: both drift, and the wall clock steps. Safety depends on neither."""

from __future__ import annotations

from simulation.scheduler import Scheduler

_START_MS = 1_000
_WALL_MS = 1_700_000_000_000


class DriftingClock:
    """``ports.Clock`` over virtual time. ``rate`` is in parts per thousand of true time."""

    def __init__(self, scheduler: Scheduler, rate: int) -> None:
        self._scheduler = scheduler
        self._rate = rate
        self._wall_offset_ms = 0
        self._base_us = 0
        self._base_ms = _START_MS
        self._slow_readings = 0
        self._slow_ms = 0

    def now_ms(self) -> int:
        if self._slow_readings:
            self._slow_readings -= 1
            self._base_ms += self._slow_ms
        return self.seen_ms()

    def seen_ms(self) -> int:
        """Return the time as observers see it: to look at it takes none."""
        elapsed_us = self._scheduler.now_us - self._base_us
        return self._base_ms + elapsed_us * self._rate // 1_000_000

    def wall_ms(self) -> int:
        return _WALL_MS + self._wall_offset_ms + self.now_ms()

    def step_wall(self, by_ms: int) -> None:
        """Step the wall clock, as an operator or NTP does."""
        self._wall_offset_ms += by_ms

    def set_rate(self, rate: int) -> None:
        """Continue from here at another rate, in parts per thousand of true time."""
        self._base_ms, self._base_us = self.seen_ms(), self._scheduler.now_us
        self._rate = rate

    def jump(self, by_ms: int) -> None:
        """Advance the clock by ``by_ms`` at once: the machine was suspended.

        Never moves backwards.
        """
        self._base_ms += by_ms

    def run_slowly(self, by_ms: int, readings: int) -> None:
        """Let ``by_ms`` pass before each of the next ``readings``: the process gets little time.

        So a deadline can come while the node is in the middle of a call.
        """
        self._slow_ms, self._slow_readings = by_ms, readings

    def true_us(self, deadline_ms: int) -> int:
        """Return the virtual time at which ``now_ms`` reaches ``deadline_ms``."""
        return self._base_us - (-(deadline_ms - self._base_ms) * 1_000_000 // self._rate)
