"""The real clocks. The only module of the quorum that reads time."""

from __future__ import annotations

import time


class SystemClock:
    """Monotonic time that never falls, and wall time for record timestamps."""

    def now_ms(self) -> int:
        """Return milliseconds of the monotonic clock."""
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        """Return milliseconds since 1970; the clock may step, so safety never depends on it."""
        return time.time_ns() // 1_000_000
