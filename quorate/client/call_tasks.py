"""The tasks that gRPC starts for a call, so that a caller can wait until they end.

gRPC reports a cancelled call as over at once, through all of its public methods. The task that
takes the call's status from gRPC's core ends later, when another thread has delivered that status.
gRPC has no public way to get this task from a call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


def opened_with_tasks(open_call: Callable[[], Any]) -> tuple[Any, set[asyncio.Task[Any]]]:
    """Open a call; return it, and a set that the loop fills with gRPC's lasting tasks of the call.

    The set is complete before the caller continues after its first wait.

    The call begins with a task of gRPC, whose first step starts the lasting ones. An event loop
    runs callbacks in order, so nothing else runs between the two listings of all tasks.
    """
    loop = asyncio.get_running_loop()
    before: set[asyncio.Task[Any]] = set()
    tasks: set[asyncio.Task[Any]] = set()

    def note() -> None:
        tasks.update(asyncio.all_tasks(loop) - before)
        before.clear()

    loop.call_soon(lambda: before.update(asyncio.all_tasks(loop)))
    call = open_call()
    loop.call_soon(note)
    return call, tasks
