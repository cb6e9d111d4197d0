"""How busy the event loop is: processor time of its thread against the time that has passed.

A thread uses no processor time while it waits, whatever event loop it runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def busy_meter() -> Callable[[], float | None]:
    """A function that returns the calling thread's busy share, in [0, 1], since it was last asked.

    Made on the loop's thread, it may be called from any. None if no time has passed.
    """
    clock = time.pthread_getcpuclockid(threading.get_ident())
    last_s, last_busy_s = time.monotonic(), time.clock_gettime(clock)

    def share() -> float | None:
        nonlocal last_s, last_busy_s
        now_s, busy_s = time.monotonic(), time.clock_gettime(clock)
        passed_s, worked_s = now_s - last_s, busy_s - last_busy_s
        if passed_s <= 0:
            return None
        last_s, last_busy_s = now_s, busy_s
        return min(1.0, max(0.0, worked_s / passed_s))

    return share
