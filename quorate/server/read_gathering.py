"""Linearizable reads on their way to a round of confirmation; under load they are held a moment.

A round costs every voter the same, however many reads it confirms. So reads wait until as many as
were lately under way at once are there again, for up to a millisecond: then all readers that the
last round answered have come back, and further ones are unlikely. A lone reader is never held.

If a millisecond was not enough, fewer readers are expected from then on, by a quarter only: a
client that was not scheduled for a moment must not end the gathering, because rounds of a few reads
each would keep the readers from ever coming together again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeAlias

HOLD_SECONDS_MAX: Final = 0.001
"""Longest time that a read is held, if the loop is not late."""

OnOutcome: TypeAlias = Callable[[int | None], None]


class ReadGathering:
    """Owned by the event loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, confirm: Callable[[OnOutcome], None]
    ) -> None:
        """``confirm`` begins the confirmation of a read, and calls back with its outcome."""
        self._loop = loop
        self._confirm = confirm
        self._expected = 1
        """So many reads are likely to be under way at once."""
        self._asked = 0
        """Reads that were passed on and have no outcome yet."""
        self._held: list[OnOutcome] = []
        self._held_reads = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, on_outcome: OnOutcome, reads: int) -> None:
        """Confirm so many reads that share an outcome, now or within ``HOLD_SECONDS_MAX``."""

        def decided(outcome: int | None) -> None:
            self._asked -= reads
            on_outcome(outcome)

        self._held.append(decided)
        self._held_reads += reads
        if self._under_way >= self._expected:
            self._expected = self._under_way
            self._pass_on()
        elif self._timer is None:
            self._timer = self._loop.call_later(HOLD_SECONDS_MAX, self._timed_out)

    @property
    def _under_way(self) -> int:
        return self._asked + self._held_reads

    def _timed_out(self) -> None:
        self._expected = max(self._under_way, self._expected * 3 // 4)
        self._pass_on()

    def _pass_on(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        held, self._held = self._held, []
        self._asked += self._held_reads
        self._held_reads = 0
        for each in held:
            self._confirm(each)
