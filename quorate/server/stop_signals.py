"""The stop signals of a running server: the first requests a stop, the second ends the process at
once.

Ends it for certain: the second is not left to the event loop, which a hung disk may hold, and no
orderly stop is begun or finished. What is on the disk is what a crash at that moment leaves.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

from quorate.cli.exits import Exit
from quorate.early_stop import STOP_SIGNALS
from quorate.server.ending import Ending


class StopSignals:
    """One per process; construct it on the event loop, in the main thread.

    Args:
        ending: Is asked at the first signal; its status, or 1 while that is 0, is the exit code
            at the second.
        leave: Ends the process with an exit code, without unwinding anything.
    """

    def __init__(self, ending: Ending, leave: Callable[[int], object] = os._exit) -> None:
        self._ending = ending
        self._leave = leave
        self._is_asked = False
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._on_signal)

    def _on_signal(self) -> None:
        # Two that come in one turn of the loop both get here.
        if self._is_asked:
            self._leave_now()
            return
        self._is_asked = True
        for number in STOP_SIGNALS:
            # Runs between two instructions of the main thread, also while that waits for a lock.
            signal.signal(number, lambda _number, _frame: self._leave_now())
        self._ending.ask()

    def _leave_now(self) -> None:
        self._leave(self._ending.status or Exit.FAILED)
