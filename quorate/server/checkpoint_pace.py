"""The pace at which a worker thread makes the content of a checkpoint.

A thread that computes all the time holds the interpreter for up to 5 ms whenever another thread
wants it, and takes a core from the other nodes of the machine. A write passes through several
threads, so its latency grows many times. This thread computes for a short time and then sleeps.

See: requirement 630.18.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

_LOOK_EVERY = 32
"""Values between two looks at the clock: about 0.1 ms of work."""
_WORK_S = 0.5e-3
"""Processor time after which the thread sleeps; other threads wait for the interpreter so long."""


def paced(
    values: Iterable[bytes],
    share: float,
    *,
    work_clock_s: Callable[[], float] = time.thread_time,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[bytes]:
    """Yield ``values``, so that the thread works for at most about ``share`` of the time.

    ``share`` is of one core, in (0, 1]; 1 never sleeps. What the thread does between the values
    counts as its work.
    """
    if share >= 1:
        yield from values
        return
    rest_per_work = (1 - share) / share
    since = work_clock_s()
    for count, value in enumerate(values):
        yield value
        if count % _LOOK_EVERY == 0:
            worked = work_clock_s() - since
            if worked >= _WORK_S:
                sleep(worked * rest_per_work)
                since = work_clock_s()
