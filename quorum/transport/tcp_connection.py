"""Frames over one TCP or TLS connection: each behind its length, 4 bytes, big-endian, unsigned.

Everything is bounded. The length of a frame is checked first, and only the bytes that arrived are
kept. Unread frames stop the reading from the socket; bytes that the kernel does not accept stop
the writer.
"""

from __future__ import annotations

import asyncio
import errno
import ssl
import struct
from collections import deque
from typing import Final, cast

from quorum.errors import PeerProtocolError

LENGTH: Final = struct.Struct(">I")
_UNREAD_BYTES_MAX: Final = 1 << 20
_UNREAD_FRAMES_MAX: Final = 256
"""Complete frames that wait for the reader. With more, nothing is taken from the socket; one
arrival (256 KiB at most) and one frame may exceed the bounds."""
_JOINED_BYTES_MAX: Final = 16 << 10
"""A longer frame is written behind its length instead of copied to it."""
_CLOSE_S_MAX: Final = 2.0
"""Bound of the wait for the other end to take what is queued when this end closes."""
_BROKEN: Final = frozenset({errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED})
_TLS_RECORD: Final = b"\x16\x03"


class ConnectionEndedError(Exception):
    """The connection is over; raised by reads and writes."""

    def __init__(self, reason: str, *, is_broken: bool) -> None:
        super().__init__(reason)
        self.is_broken = is_broken
        """Closed or reset by the other end's kernel; else ended by this end, or timed out."""


class FrameConnection(asyncio.Protocol):
    """One connection. Owned by the event loop; one ``read`` at a time.

    ``frame_bytes_max`` bounds each incoming frame.
    """

    def __init__(self, frame_bytes_max: int) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._frames: deque[bytes] = deque()
        self._unread = 0
        self._partial: list[bytes] = []
        self._partial_bytes = 0
        self._wanted = LENGTH.size
        self._is_held = False
        """Whether reading is paused because frames wait."""
        self._reader: asyncio.Future[None] | None = None
        self._writers: list[asyncio.Future[None]] | None = None
        """While the transport wants no more bytes: the writes that wait."""
        self._violation = ""
        self._ended: ConnectionEndedError | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self.lost: asyncio.Future[None] = self._loop.create_future()
        """Done when the connection is over."""

    # ------------------------------------------------------------------ for the stream

    async def read(self) -> bytes:
        """Return the next frame.

        Raises:
            PeerProtocolError: What follows is no frame.
            ConnectionEndedError: Nothing follows.
        """
        while not self._frames:
            if self._violation:
                raise PeerProtocolError(self._violation)
            if self._ended is not None:
                raise ConnectionEndedError(str(self._ended), is_broken=self._ended.is_broken)
            self._reader = self._loop.create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        frame = self._frames.popleft()
        self._unread -= len(frame)
        if self._is_held and not self._is_full:
            self._is_held = False
            self._resume()
        return frame

    async def write(self, frame: bytes) -> None:
        """Send a frame; return when the transport takes more.

        Raises:
            ConnectionEndedError: The connection is over, or ends while this waits.
        """
        if not self.push(frame):
            raise ConnectionEndedError("the connection is closed", is_broken=False)
        if self._writers is not None:
            waiting = self._loop.create_future()
            self._writers.append(waiting)
            await waiting
            if self._ended is not None:
                raise ConnectionEndedError(str(self._ended), is_broken=self._ended.is_broken)

    def push(self, frame: bytes) -> bool:
        """Send a frame without waiting for room; return False if the connection is over."""
        transport = self._transport
        if self._ended is not None or transport is None or transport.is_closing():
            return False
        length = LENGTH.pack(len(frame))
        if len(frame) <= _JOINED_BYTES_MAX:
            transport.write(length + frame)
        else:
            transport.write(length)
            transport.write(frame)
        return True

    def close(self) -> None:
        """End the connection from this side; what is queued is sent, for a bounded time."""
        self._frames.clear()
        self._end("closed by this node", is_broken=False)
        transport = self._transport
        if transport is None or transport.is_closing() or not transport.can_write_eof():
            self._shut()  # TLS waits for the other end itself
        elif self._deadline is None:
            # The kernel answers bytes that nobody has read with a reset, and a reset discards at
            # the other end what was sent. So take and drop bytes until that end closes as well.
            transport.write_eof()
            transport.resume_reading()
            self._deadline = self._loop.call_later(_CLOSE_S_MAX, transport.abort)

    @property
    def last_frame(self) -> bytes:
        """The last complete unread frame; empty if there is none."""
        return self._frames[-1] if self._frames else b""

    def abort(self) -> None:
        """End the connection at once, without what is queued."""
        self._frames.clear()
        self._end("closed by this node", is_broken=False)
        if self._transport is not None:
            self._transport.abort()

    def _shut(self) -> None:
        if self._transport is not None and self._deadline is None and not self.lost.done():
            self._transport.close()
            self._deadline = self._loop.call_later(_CLOSE_S_MAX, self._transport.abort)

    # ------------------------------------------------------------------ from the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Cut what arrived into frames."""
        if self._ended is not None or self._violation:
            return
        if self._partial:
            self._partial.append(data)
            self._partial_bytes += len(data)
            if self._partial_bytes < self._wanted:
                return
            data = b"".join(self._partial)
            self._partial.clear()
        begin, end = 0, len(data)
        wanted = LENGTH.size
        while end - begin >= LENGTH.size:
            (length,) = LENGTH.unpack_from(data, begin)
            if length > self._frame_bytes_max:
                self._refuse(data[begin : begin + LENGTH.size], length)
                return
            wanted = LENGTH.size + length
            if end - begin < wanted:
                break
            self._frames.append(data[begin + LENGTH.size : begin + wanted])
            self._unread += length
            begin += wanted
            wanted = LENGTH.size
        if begin < end:
            self._partial.append(data[begin:])
        self._partial_bytes, self._wanted = end - begin, wanted
        if self._frames:
            self._wake()
            if self._is_full and not self._is_held:
                self._is_held = True
                self._pause()

    def pause_writing(self) -> None:
        """Let writes wait."""
        if self._writers is None:
            self._writers = []

    def resume_writing(self) -> None:
        """Resume writes."""
        waiting, self._writers = self._writers, None
        for each in waiting or ():
            if not each.done():
                each.set_result(None)

    def eof_received(self) -> None:
        """Close: a stream has no half-closed state."""
        self._end("closed by the other end", is_broken=True)
        if self._deadline is None:
            self._shut()
        elif self._transport is not None:
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """Wake all waiting readers and writers."""
        is_broken = (
            error is None
            or isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError)
            or (isinstance(error, OSError) and error.errno in _BROKEN)
        )
        self._end(str(error) if error else "closed by the other end", is_broken=is_broken)
        if self._deadline is not None:
            self._deadline.cancel()
        self.resume_writing()
        if not self.lost.done():
            self.lost.set_result(None)

    # ------------------------------------------------------------------ inside

    @property
    def _is_full(self) -> bool:
        return self._unread > _UNREAD_BYTES_MAX or len(self._frames) > _UNREAD_FRAMES_MAX

    def _refuse(self, first: bytes, length: int) -> None:
        """Take nothing more: after a wrong length no frame can be found again."""
        if first.startswith(_TLS_RECORD):
            self._violation = "the caller speaks TLS, and this port does not"
        elif first.isascii() and first.isupper():
            self._violation = f"the caller does not speak this protocol: it begins with {first!r}"
        else:
            self._violation = f"a frame of {length} bytes: at most {self._frame_bytes_max} fit"
        self._pause()
        self._wake()

    def _end(self, reason: str, *, is_broken: bool) -> None:
        if self._ended is None:
            self._ended = ConnectionEndedError(reason, is_broken=is_broken)
            self._partial.clear()
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _pause(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def _resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
