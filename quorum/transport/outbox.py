"""Frames on their way out of one stream: bounded, in order, without blocking the sender.

gRPC takes one write at a time and each is awaited: a task per stream does that, so that a slow
receiver of records never keeps the stream's votes unread. That task is closed, not cancelled:
cancelling whoever awaits an operation of grpc.aio leaks the operation (grpc/grpc#43360).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from quorum.transport.counters import TransportCounters
from quorum.transport.limits import MESSAGE_BYTES_MAX, OUTBOX_BYTES_MAX, OUTBOX_FRAMES_MAX


class Outbox:
    """The queue of one stream. Owned by the event loop.

    Invariants:
        1. At most one write is under way.
        2. Frames leave in the order they were pushed.
    """

    def __init__(
        self, write: Callable[[bytes], Awaitable[None]], counters: TransportCounters
    ) -> None:
        self._write = write
        self._counters = counters
        self._frames: deque[bytes] = deque()
        self._bytes = 0
        self._wake: asyncio.Future[None] | None = None
        self._idle: asyncio.Future[None] | None = None
        self._is_writing = False
        self._is_closed = False

    def push(self, frame: bytes) -> bool:
        """Queue a frame.

        Returns:
            False when it was dropped: the queue is full or the frame too large.
        """
        size = len(frame)
        if (
            size > MESSAGE_BYTES_MAX
            or len(self._frames) >= OUTBOX_FRAMES_MAX
            or self._bytes + size > OUTBOX_BYTES_MAX
        ):
            self._counters.outbox_dropped += 1
            return False
        self._frames.append(frame)
        self._bytes += size
        self._wake_writer()
        return True

    async def run(self) -> None:
        """The writer task; ends after ``close``, or with what a write raises."""
        loop = asyncio.get_running_loop()
        while not self._is_closed:
            if self._frames and not self._is_writing:
                await self._drain()
                continue
            self._wake = loop.create_future()
            await self._wake
            self._wake = None

    def close(self) -> None:
        """The stream is over: what is queued will not leave, and ``run`` returns."""
        self._is_closed = True
        self._frames.clear()
        self._bytes = 0
        self._wake_writer()

    async def finish(self, last: bytes) -> None:
        """Write everything queued and then ``last``. For an orderly end of the stream."""
        self._frames.append(last)
        self._bytes += len(last)
        if not self._is_writing:
            await self._drain()
            return
        self._idle = asyncio.get_running_loop().create_future()
        await self._idle

    async def _drain(self) -> None:
        self._is_writing = True
        frames, counters = self._frames, self._counters
        try:
            while frames:
                frame = frames.popleft()
                self._bytes -= len(frame)
                await self._write(frame)
                counters.frames_sent += 1
                counters.bytes_sent += len(frame)
        finally:
            self._is_writing = False
            if self._idle is not None and not self._idle.done():
                self._idle.set_result(None)

    def _wake_writer(self) -> None:
        wake = self._wake
        if wake is not None and not wake.done():
            wake.set_result(None)
