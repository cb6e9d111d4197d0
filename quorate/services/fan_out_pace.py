"""How long a step of the change feed must last, so that watchers cost writers a bounded share.

Each fan-out is measured: processor time of the process from its begin until all watchers it woke
wait again. gRPC's threads count, and so do requests that are served meanwhile. The next fan-out
begins when this time is at most ``SHARE_MAX`` of the time since the last one began.

See: docs/adr/0060-watchers-are-woken-in-steps.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

SHARE_MAX: Final = 0.08
"""Share of one processor's time that fan-outs get while changes follow each other. A message costs
about as much again in the watcher and the kernel, and delays what waits for the loop."""
WATCHER_SECONDS_MIN: Final = 0.0001
WATCHER_SECONDS_MAX: Final = 0.001
"""Bounds of a step for each watcher: 10 to 100 ms for a hundred."""
WATCHER_SECONDS_AT_FIRST: Final = 0.0005
"""A step for each watcher before anything was measured."""
_WEIGHT: Final = 0.25
"""Weight of the newest fan-out in the average."""


class FanOutPace:
    """Measures the fan-outs of this process. Used on the event loop only."""

    def __init__(self, processor_seconds: Callable[[], float] = time.process_time) -> None:
        self._processor_seconds = processor_seconds
        self._cost = WATCHER_SECONDS_AT_FIRST * SHARE_MAX
        """Processor seconds for one watcher, averaged."""
        self._woken = self._away = 0
        self._begun = 0.0

    def step_seconds(self, watchers: int) -> float:
        """Return the least time between the begins of two fan-outs to so many watchers."""
        each = min(max(self._cost / SHARE_MAX, WATCHER_SECONDS_MIN), WATCHER_SECONDS_MAX)
        return watchers * each

    def begin(self, watchers: int) -> None:
        """Record that so many watchers are going to be woken now."""
        self._woken = self._away = watchers
        self._begun = self._processor_seconds()

    def returned(self) -> None:
        """Record that a watcher waits again. If one has ended, its fan-out is not counted."""
        if self._away:
            self._away -= 1
            if not self._away:
                took = (self._processor_seconds() - self._begun) / self._woken
                # A small fan-out during other work would count for a hundred later ones.
                took = min(took, WATCHER_SECONDS_MAX * SHARE_MAX)
                self._cost += (took - self._cost) * _WEIGHT
