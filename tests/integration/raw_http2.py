"""Just enough HTTP/2 to begin gRPC calls and never finish them: no client library does that."""

from __future__ import annotations

import socket
import struct
import time
from collections import Counter
from dataclasses import dataclass

_DATA, _HEADERS, _SETTINGS, _WINDOW_UPDATE = 0, 1, 4, 8
_ENDING = (3, 7)
"""RST_STREAM and GOAWAY."""
MESSAGE_BYTES = 1 << 20
FRAME_BYTES = 16 << 10
SPARE_SECONDS = 30.0


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """One frame (RFC 9113, 4.1)."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def field(name: bytes, value: bytes) -> bytes:
    """A header field in HPACK's plainest form: literal, without indexing (RFC 7541, 6.2.2)."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def headers(path: str) -> bytes:
    """The fields of a gRPC call with a deadline that is far away."""
    return b"".join(
        field(name, value)
        for name, value in (
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", path.encode()),
            (b":authority", b"x"),
            (b"content-type", b"application/grpc"),
            (b"te", b"trailers"),
            (b"grpc-timeout", b"100S"),
        )
    )


def message(data: bytes) -> bytes:
    """A whole gRPC message."""
    return b"\0" + struct.pack(">I", len(data)) + data


@dataclass(frozen=True, slots=True)
class Stall:
    """A call that stalls in the middle of a message."""

    path: str = "/quorum.v1.MetadataService/Write"
    before: bytes = b""
    """Whole messages that are sent first."""
    message_bytes: int = MESSAGE_BYTES
    """What the message announces; its last byte never comes."""


class _Connection:
    """One connection: its calls' windows, and what was sent on each."""

    def __init__(
        self, host: str, port: int, source: str, calls: int, counts: Counter[str], stall: Stall
    ) -> None:
        self._counts = counts
        self._stall = stall
        self._socket = socket.create_connection((host, port), source_address=(source, 0))
        self._socket.settimeout(0.02)
        self._received = b""
        self._window, self._first_window = 65_535, 65_535
        self._stream = -1
        self._windows: dict[int, int] = {}
        self._left: dict[int, int] = {}
        self._socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(_SETTINGS, 0, 0, b""))
        for _ in range(calls):
            self._begin()

    def _begin(self) -> None:
        self._stream += 2
        self._windows[self._stream] = self._first_window
        self._left[self._stream] = self._stall.message_bytes - 1
        prefix = self._stall.before + b"\0" + struct.pack(">I", self._stall.message_bytes)
        self._socket.sendall(
            frame(_HEADERS, 4, self._stream, headers(self._stall.path))
            + frame(_DATA, 0, self._stream, prefix)
        )
        self._counts["begun"] += 1

    def turn(self) -> None:
        """Take what came, send what the windows allow, begin a call for each that was ended."""
        self._read()
        for stream, left in list(self._left.items()):
            size = min(left, self._window, self._windows[stream], FRAME_BYTES)
            if size > 0:
                self._socket.sendall(frame(_DATA, 0, stream, b"x" * size))
                self._window -= size
                self._windows[stream] -= size
                self._left[stream] -= size
                self._counts["bytes"] += size

    def _read(self) -> None:
        try:
            self._received += self._socket.recv(1 << 16)
        except TimeoutError:
            return
        while len(self._received) >= 9:
            size = int.from_bytes(self._received[:3], "big")
            if len(self._received) < 9 + size:
                return
            kind, flags = self._received[3], self._received[4]
            stream = int.from_bytes(self._received[5:9], "big") & 0x7FFFFFFF
            self._take(kind, flags, stream, self._received[9 : 9 + size])
            self._received = self._received[9 + size :]

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == _SETTINGS and not flags & 1:
            for at in range(0, len(payload), 6):
                key, value = struct.unpack_from(">HI", payload, at)
                if key == 4:
                    grown = value - self._first_window
                    self._first_window = value
                    self._windows = {each: left + grown for each, left in self._windows.items()}
            self._socket.sendall(frame(_SETTINGS, 1, 0, b""))
        elif kind == _WINDOW_UPDATE:
            grown = int.from_bytes(payload, "big")
            if stream == 0:
                self._window += grown
            elif stream in self._windows:
                self._windows[stream] += grown
        elif stream in self._left and (kind in _ENDING or (kind == _HEADERS and flags & 1)):
            self._counts["ended"] += 1
            del self._left[stream], self._windows[stream]
            self._begin()

    def close(self) -> None:
        self._socket.close()


class StalledCalls:
    """Calls of which everything but the last byte of the message is sent."""

    def __init__(
        self,
        host: str,
        port: int,
        source: str,
        *,
        connections: int,
        calls_each: int,
        stall: Stall = Stall(),
    ) -> None:
        self._counts: Counter[str] = Counter()
        self._first_calls = connections * calls_each
        self._connections = [
            _Connection(host, port, source, calls_each, self._counts, stall)
            for _ in range(connections)
        ]

    def run(self, seconds: float) -> dict[str, int]:
        """Keep them going for so long; what was begun, sent, and ended by the node.

        A machine with other work may need longer until the node has seen all of them: up to
        ``SPARE_SECONDS`` more, until as many calls have ended as the first turn begins.
        """
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until or (
            self._counts["ended"] < self._first_calls and now < until + SPARE_SECONDS
        ):
            for connection in self._connections:
                connection.turn()
        for connection in self._connections:
            connection.close()
        return dict(self._counts)
