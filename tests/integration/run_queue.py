"""Measures how long processes waited for a processor on a loaded machine.

A bound on the quorum's delays does not apply to the time that other programs take. Linux counts for
every thread how long it was ready but not running, and how long the host of a virtual machine
withheld processors.
"""

from __future__ import annotations

import bisect
import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType

import psutil

SAMPLE_SECONDS = 0.05


class RunQueue:
    """Watches processes, including this one, from a thread of its own while it is entered.

    Args:
        pids: Returns the other processes to watch; called at every sample.
    """

    def __init__(self, pids: Callable[[], Iterable[int]]) -> None:
        self._pids = pids
        self._known: dict[tuple[int, str], int] = {}
        self._moments: list[float] = []
        self._totals: list[float] = []
        self._total_ns = 0
        self._stolen = _stolen_seconds()
        self._is_over = threading.Event()
        self._guard = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="run-queue")

    def __enter__(self) -> RunQueue:
        self.sample()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()
        self.sample()

    def waited(self, began: float, ended: float) -> float:
        """Seconds that all threads together were kept from running in [began, ended), and those
        that the machine's host took from all processors.

        Both are of the monotonic clock. Widened to whole samples; 0.0 on a quiet machine.
        """
        with self._guard:
            first = max(0, bisect.bisect_right(self._moments, began) - 1)
            last = min(len(self._moments) - 1, bisect.bisect_left(self._moments, ended))
            return self._totals[last] - self._totals[first]

    def _watch(self) -> None:
        while not self._is_over.wait(SAMPLE_SECONDS):
            self.sample()

    def sample(self) -> None:
        """Look now: what was waited until now is seen from here on. Any thread may call it."""
        with self._guard:
            self._look()

    def _look(self) -> None:
        for pid in {os.getpid(), *self._pids()}:
            for task in _tasks(pid):
                try:
                    delay_ns = int((task / "schedstat").read_text().split()[1])
                except OSError:
                    # The thread has ended; its wait since the last sample is unknown.
                    continue
                key = pid, task.name
                self._total_ns += delay_ns - self._known.get(key, 0)
                self._known[key] = delay_ns
        self._moments.append(time.monotonic())
        self._totals.append(self._total_ns / 1e9 + _stolen_seconds() - self._stolen)


def _stolen_seconds() -> float:
    """Return the sum over all processors since the machine's start; 0.0 where it is unknown."""
    return float(getattr(psutil.cpu_times(), "steal", 0.0))


def _tasks(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []
