"""``early_stop``: a process that is asked to stop before it has an event loop that could be told.

Loading the packages and opening a long log take a while. Whoever stops a node then should see it
stop, and not as if it had been killed.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class EarlyStop(BaseException):
    """Asked to stop while starting. Not an ``Exception``: nobody recovers from it."""


@contextmanager
def early_stop() -> Iterator[None]:
    """Within it the stop signals raise ``EarlyStop``, until an event loop takes them over.

    SIGHUP has nobody to listen to it yet and is ignored: the configuration has just been read.

    For the main thread. Only for work that may be left at any instruction, which opening a data
    directory is: a crash leaves it no differently.
    """
    before = [(number, signal.signal(number, _raise)) for number in STOP_SIGNALS]
    before.append((signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_IGN)))
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise EarlyStop
