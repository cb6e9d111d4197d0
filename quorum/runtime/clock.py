"""The real clocks. The one place of the quorum that reads time."""

from __future__ import annotations

import time


class SystemClock:
    """Monotonic time that never falls, and wall time for record timestamps."""

    def now_ms(self) -> int:
        """Milliseconds of the monotonic clock."""
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        """Milliseconds since 1970; may step, which is why nothing safe rests on it."""
        return time.time_ns() // 1_000_000
