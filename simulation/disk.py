"""One node's disk as the driver sees it: passes take time, and a crash may interrupt one."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from quorum.runtime.ports import WriteGroup
from simulation.memory_filesystem import CrashMode, Faults, MemoryFileSystem, PowerLost

if TYPE_CHECKING:
    from quorum.runtime.persistence import Persistence

CALLS_IN_A_PASS = 12
"""Approximate number of changing calls per pass; a crash comes after any of them."""


class WriteQueue:
    """``runtime.ports.Writer``: groups are collected while a pass runs, as in production.

    ``on_begin`` starts the timer of a pass. When it ends, ``take`` returns the groups of the pass:
    at most ``groups_max``, or with 0 all that were waiting when the pass began.
    """

    def __init__(
        self,
        on_begin: Callable[[], None],
        on_group: Callable[[WriteGroup], None],
        groups_max: int = 0,
    ) -> None:
        self._on_begin = on_begin
        self._on_group = on_group
        self._groups_max = groups_max
        self._waiting: list[WriteGroup] = []
        self._under_way: list[WriteGroup] = []

    def submit(self, group: WriteGroup) -> None:
        self._on_group(group)
        self._waiting.append(group)
        self.begin()

    def begin(self) -> None:
        """Start the next pass if groups are waiting and none is running."""
        if self._waiting and not self._under_way:
            count = self._groups_max or len(self._waiting)
            self._under_way, self._waiting = self._waiting[:count], self._waiting[count:]
            self._on_begin()

    def take(self) -> list[WriteGroup]:
        """Return the groups of the pass that is complete."""
        groups, self._under_way = self._under_way, []
        return groups

    def cut_off(self, fs: MemoryFileSystem, persistence: Persistence, rng: random.Random) -> bool:
        """End the process: apply part of a running pass.

        Returns whether a pass was running or groups were waiting.
        """
        groups = self.take()
        if groups:
            fs.faults = Faults(stop_after_call=rng.randrange(CALLS_IN_A_PASS))
            try:
                persistence.execute(groups)
            except PowerLost:
                pass
        return bool(groups or self._waiting)


def crash(fs: MemoryFileSystem, rng: random.Random, mode: CrashMode) -> int:
    """Stop the machine and restart it; return how many written bytes are lost."""
    before = fs.used_bytes()
    fs.crash(rng, mode)
    return max(0, before - fs.used_bytes())
