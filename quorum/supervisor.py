"""Supervision of long-lived tasks: none of them ends unnoticed.

An exception in a long-lived task would silently end its work. ``Supervisor`` restarts such a task,
or ends the process if the failure is a bug of ours (``InvariantViolation`` and its like). No other
module may start a long-lived task; ``tests/tidy/test_supervised.py`` enforces that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

RESTART_PAUSE_S: Final = 0.5
"""Pause before the first restart of a task; it doubles with every further failure."""
RESTART_PAUSE_S_MAX: Final = 5.0
"""Longest pause. A task that ran for this long starts with the first pause again."""

_LOGGER = logging.getLogger(__name__)


class Supervisor:
    """Starts the long-lived tasks of one owner. Owned by the event loop.

    Guarantees:
        1. A task whose work raises an ``Exception`` is restarted after a pause, without limit.
        2. Other exceptions go to the event loop's exception handler, where the server ends its
           process.
        3. A task ends only if its work returns or it is cancelled.
    """

    def __init__(self) -> None:
        self.restarts = 0
        """Number of restarts; any thread may read."""

    def start(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
        """Run ``work()`` in a task of this name until it returns."""
        task = asyncio.get_running_loop().create_task(self._keep(name, work), name=name)
        task.add_done_callback(_report)
        return task

    async def _keep(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        loop = asyncio.get_running_loop()
        pause_s = RESTART_PAUSE_S
        while True:
            began = loop.time()
            try:
                await work()
            except Exception:
                self.restarts += 1
                if loop.time() - began >= RESTART_PAUSE_S_MAX:
                    pause_s = RESTART_PAUSE_S
                _LOGGER.exception("event=task_restarted task=%s pause_s=%.1f", name, pause_s)
            else:
                return
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, RESTART_PAUSE_S_MAX)


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        task.get_loop().call_exception_handler(
            {"message": f"{task.get_name()} stopped", "exception": error, "task": task}
        )
