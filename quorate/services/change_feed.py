"""Committed batches as watch messages, converted once for all watchers at the same place.

Watchers hold positions, not queues: each asks for what follows its own offset when it is ready
for it. Memory is therefore bounded by this feed's cache, however slow a watcher is.
"""

from __future__ import annotations

import asyncio

from quorate.services.change_message import CHANGE_BYTES_MAX, ChangeMessage, message_of
from quorate.services.ports import Cancel, ServedNode
from quorate.services.watch_cursor import WatchCursor

CACHED_MESSAGES_MAX = 32
"""Messages kept for other watchers that come by the same offset."""


class ChangeFeed:
    """Committed changes from any offset on. One per node; used on the event loop only."""

    def __init__(self, node: ServedNode) -> None:
        self._node = node
        self._cached: dict[int, asyncio.Task[ChangeMessage]] = {}
        self._published = asyncio.Event()
        self._cancel: Cancel = node.subscribe(self._on_published)

    def close(self) -> None:
        """Stop listening to the node."""
        self._cancel()

    def _on_published(self) -> None:
        self._published.set()
        self._published = asyncio.Event()

    async def wait_beyond(self, offset: int, seconds: float) -> bool:
        """Whether the image reached beyond ``offset`` within ``seconds``."""
        try:
            async with asyncio.timeout(seconds):
                while WatchCursor.visible_end(self._node) <= offset:
                    await self._published.wait()
        except TimeoutError:
            return False
        return True

    async def changes(self, offset: int) -> ChangeMessage:
        """Applied batches from the one containing ``offset`` on; ``offset`` must be applied.

        Raises:
            StorageError: The log could not be read, or what it holds is damaged.
        """
        task = self._cached.get(offset)
        if task is None:
            task = asyncio.create_task(self._convert(offset))
            self._cached[offset] = task
            if len(self._cached) > CACHED_MESSAGES_MAX:
                del self._cached[next(iter(self._cached))]
        try:
            # One watcher's end must not take the message away from the others.
            return await asyncio.shield(task)
        except BaseException:
            if task.done() and self._cached.get(offset) is task:
                del self._cached[offset]
            raise

    async def _convert(self, offset: int) -> ChangeMessage:
        end_offset = WatchCursor.visible_end(self._node)
        data = await self._node.read_log(offset, CHANGE_BYTES_MAX, end_offset)
        return message_of(data)
