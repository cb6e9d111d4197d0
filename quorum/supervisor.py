"""Long-lived tasks: none of them ends unnoticed while the process lives.

A task that should run as long as its owner has one failure mode that nobody sees: an exception
ends it, and its work is not done any more. ``Supervisor`` starts such a task again, or lets the
process end when the failure says that we are wrong (``InvariantViolation`` and its like). No other
place may start a long-lived task; ``tests/tidy/test_supervised.py`` refuses it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

RESTART_PAUSE_S: Final = 0.5
"""Pause before the first restart of a task; it doubles with every failure that follows."""
RESTART_PAUSE_S_MAX: Final = 5.0
"""Longest pause. A task that ran for as long begins with the first pause again."""

_LOGGER = logging.getLogger(__name__)


class Supervisor:
    """Starts the long-lived tasks of one owner. Owned by the event loop.

    Guarantees:
        1. A task whose work raises an ``Exception`` does its work again after a pause, for ever.
        2. Anything beyond ``Exception`` goes to the event loop's exception handler, where the
           server ends its process.
        3. A task ends when its work returns or the task is cancelled, and only then.
    """

    def __init__(self) -> None:
        self.restarts = 0
        """How often a task was started again; any thread may read."""

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
