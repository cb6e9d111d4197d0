"""Linearizable reads on their way to a round of confirmation; under load they are held a moment.

A round costs every voter the same, however many reads it confirms. While a round is under way no
other begins (ADR 9), so a read that finds others waiting may as well wait for further ones, up to a
millisecond. A read that finds none is passed on at once, so a lone reader notices nothing.
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
        self._waiting = 0
        """Reads without an outcome yet, held or not."""
        self._held: list[OnOutcome] = []

    def add(self, on_outcome: OnOutcome) -> None:
        """Confirm a read, now or within ``HOLD_SECONDS_MAX``."""

        def decided(outcome: int | None) -> None:
            self._waiting -= 1
            on_outcome(outcome)

        self._waiting += 1
        if self._waiting == 1:
            self._confirm(decided)
            return
        self._held.append(decided)
        if len(self._held) == 1:
            self._loop.call_later(HOLD_SECONDS_MAX, self._pass_on)

    def _pass_on(self) -> None:
        held, self._held = self._held, []
        for each in held:
            self._confirm(each)
