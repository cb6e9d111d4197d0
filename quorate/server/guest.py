"""A guest of a node: other work in its process, such as a broker's agent beside its observer.

It runs while the node runs. When it ends, so does the process; when the process is asked to stop,
the guest ends in order while the node still works.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeAlias

from quorate.server.ending import Ending

if TYPE_CHECKING:
    from quorate.server.node import ServerNode

Guest: TypeAlias = Callable[["ServerNode", asyncio.Event], Coroutine[Any, Any, None]]
"""Called when the node has started. Returns by itself, or some time after the event is set."""


class GuestRun:
    """A guest that runs. Owned by the event loop; end with ``leave``, then ``check``."""

    def __init__(self, guest: Guest, node: ServerNode, ending: Ending) -> None:
        """Start it; ``ending`` is asked when it ends."""
        self._must_end = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] = loop.create_task(guest(node, self._must_end))
        self._task.add_done_callback(lambda _: ending.ask())

    async def end(self) -> None:
        """Request its end, and wait for it. May be cancelled."""
        self._must_end.set()
        await asyncio.wait((self._task,))

    async def leave(self) -> None:
        """Break it off, if it has not ended."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def check(self) -> None:
        """Raise what it has raised; it has ended."""
        if not self._task.cancelled():
            self._task.result()
