"""Stop signals of a process that has no event loop yet.

Loading the packages and opening a long log take a while. A stop signal in that time must end the
process with exit code 0, not as if it had been killed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
EARLY_STOP_TEXT = "stopped before the node had started"
"""What the process says on standard error; its exit code is 0."""


class EarlyStop(BaseException):
    """Asked to stop while starting. Not an ``Exception``: no code recovers from it."""


def leave_when_asked() -> None:
    """From now on, until ``early_stop``, the stop signals end the process there and then.

    For the time in which it loads packages and has opened nothing that would need an end. SIGHUP is
    ignored: the configuration has not been read yet. For the main thread.
    """
    for number in STOP_SIGNALS:
        signal.signal(number, _leave)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


@contextmanager
def early_stop() -> Iterator[None]:
    """Within it the stop signals raise ``EarlyStop``, until an event loop takes them over.

    SIGHUP has no handler yet and is ignored: the configuration has just been read.

    For the main thread. Only for work that may be left at any instruction, which opening a data
    directory is: a crash leaves it no differently.
    """
    before = [(number, signal.signal(number, _raise)) for number in STOP_SIGNALS]
    before.append((signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_IGN)))
    try:
        yield
    finally:
        for number, handler in before:
            # What comes after a node is no start.
            signal.signal(number, signal.SIG_DFL if handler is _leave else handler)


def _leave(_number: int, _frame: FrameType | None) -> None:
    # Nothing is raised: an import may catch it, or leave a library half made that warns at its end.
    # The reader of standard error may be gone; the process ends in the same way.
    with suppress(OSError):
        os.write(2, f"{EARLY_STOP_TEXT}\n".encode())
    os._exit(0)


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise EarlyStop
