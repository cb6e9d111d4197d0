"""Outgoing frames of one stream: bounded, in order, without blocking the sender.

gRPC takes one write at a time. If no write is under way, ``push`` writes the frame itself and
saves a turn of the event loop. The other frames follow one by one as writes end. A write is never
cancelled: that leaks the operation (grpc/grpc#43360).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from quorum.transport.counters import TransportCounters
from quorum.transport.eager import begin
from quorum.transport.limits import MESSAGE_BYTES_MAX, OUTBOX_BYTES_MAX, OUTBOX_FRAMES_MAX


class Outbox:
    """The queue of one stream. Owned by the event loop.

    ``on_dropped`` gets the reason for every frame that is dropped because a limit is exceeded.

    A write that fails closes the outbox and reports nothing: the stream's reader sees the same
    end and handles it.

    Invariants:
        1. At most one write is under way.
        2. Frames leave in the order they were pushed.
    """

    def __init__(
        self,
        write: Callable[[bytes], Coroutine[Any, Any, None]],
        counters: TransportCounters,
        on_dropped: Callable[[str], None],
    ) -> None:
        self._write = write
        self._counters = counters
        self._on_dropped = on_dropped
        self._frames: deque[bytes] = deque()
        self._bytes = 0
        self._bytes_in_flight = 0
        self._idle: asyncio.Future[None] | None = None
        self._is_writing = False
        self.is_closed = False
        """Whether the stream is over. Only ``close`` sets it."""

    def push(self, frame: bytes) -> bool:
        """Write a frame, or queue it behind others. After ``close`` it is dropped silently.

        Returns:
            False if it was dropped: the queue is full or the frame too large.
        """
        size = len(frame)
        if size > MESSAGE_BYTES_MAX:
            self._drop(f"a frame of {size} bytes was dropped: at most {MESSAGE_BYTES_MAX} fit")
            return False
        if len(self._frames) >= OUTBOX_FRAMES_MAX or self._bytes + size > OUTBOX_BYTES_MAX:
            self._drop("frames were dropped: earlier frames have not been sent yet")
            return False
        if not self.is_closed:
            self._frames.append(frame)
            self._bytes += size
            if not self._is_writing:
                self._write_on()
        return True

    def _drop(self, problem: str) -> None:
        self._counters.outbox_dropped += 1
        self._on_dropped(problem)

    def close(self) -> None:
        """Mark the stream as over and discard the queued frames."""
        self.is_closed = True
        self._frames.clear()
        self._bytes = 0
        self._settle()

    async def finish(self, last: bytes) -> None:
        """Write everything queued and then ``last``, for an orderly end of the stream.

        Returns when it has been written, or the outbox is closed.
        """
        if self.is_closed:
            return
        self._frames.append(last)
        self._bytes += len(last)
        if not self._is_writing:
            self._write_on()
        if self._is_writing:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle

    def _write_on(self) -> None:
        """Begin writes until one does not complete at once."""
        frames = self._frames
        self._is_writing = True
        while frames:
            frame = frames.popleft()
            self._bytes -= len(frame)
            self._bytes_in_flight = len(frame)
            try:
                if not begin(self._write(frame), self._written):
                    return
            except (Exception, asyncio.CancelledError):  # noqa: BLE001 - the reader evaluates
                self._is_writing = False
                self.close()
                return
            self._counters.frames_sent += 1
            self._counters.bytes_sent += self._bytes_in_flight
        self._is_writing = False
        if self._idle is not None:
            self._settle()

    def _written(self, error: BaseException | None) -> None:
        self._is_writing = False
        if error is not None:
            self.close()
            return
        self._counters.frames_sent += 1
        self._counters.bytes_sent += self._bytes_in_flight
        if self._frames:
            self._write_on()
        elif self._idle is not None:
            self._settle()

    def _settle(self) -> None:
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)
