"""A node whose wall clock steps by the milliseconds that a file of its folder holds.

Replaces the result of ``SystemClock.wall_ms``, the one place where a node reads wall time. The
monotonic clock runs on evenly, as it does on a machine whose date is set.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

VARIABLE = "QUORATE_CAMPAIGN_CLOCK_FILE"
_MS = 1_000_000


def step_by_file(path: Path) -> None:
    """Make this process add the file's milliseconds to its wall clock; the file may be missing."""
    from quorum.runtime.clock import SystemClock

    def wall_ms(_: SystemClock) -> int:
        try:
            step_ms = int(path.read_text() or "0")
        except FileNotFoundError:
            step_ms = 0
        return time.time_ns() // _MS + step_ms

    SystemClock.wall_ms = wall_ms  # type: ignore[method-assign]


if __name__ == "__main__":
    step_by_file(Path(os.environ[VARIABLE]))
    from quorate.entry import main

    sys.exit(main())
