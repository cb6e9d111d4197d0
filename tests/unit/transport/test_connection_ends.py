"""How a TCP connection ends: the reason arrives, and nobody holds the connection for ever."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct

import grpc
import pytest

from quorum.transport import tcp_connection
from quorum.transport.framing import STATUS
from quorum.transport.limits import REQUEST_BYTES_MAX
from quorum.transport.packing import HEADER
from quorum.transport.probe import SocketAddress
from quorum.transport.streams import EndStatus
from quorum.transport.tcp_stream import TcpStream
from tests.support import peer_harness
from tests.support.peer_harness import replica, run


@pytest.fixture(autouse=True)
def over_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_harness, "CARRIER", peer_harness.TCP)


def framed(frame: bytes) -> bytes:
    return struct.pack(">I", len(frame)) + frame


def test_a_caller_that_is_still_sending_reads_the_reason() -> None:
    """Bytes that nobody has read would become a reset, which discards the status."""

    async def scenario() -> None:
        async with replica(1) as leader:
            assert leader.server.tcp is not None
            port = leader.server.tcp.port
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for sent in (struct.pack(">I", REQUEST_BYTES_MAX + 1), bytes(4 << 20)):
                writer.write(sent)
                await asyncio.sleep(0)
            with contextlib.suppress(ConnectionError):
                await writer.drain()
            assert f"at most {REQUEST_BYTES_MAX} fit".encode() in await reader.read()
            writer.close()

    run(scenario())


def test_a_caller_that_never_closes_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: it holds its connection for a bounded time, however much it sends."""
    monkeypatch.setattr(tcp_connection, "_CLOSE_S_MAX", 0.05)

    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: tcp_connection.FrameConnection(REQUEST_BYTES_MAX), sock=ours
        )
        connection.push(b"the last word")
        connection.close()
        with contextlib.suppress(ConnectionError):
            while not connection.lost.done():
                await loop.sock_sendall(theirs, bytes(1 << 10))
        await connection.lost
        assert await loop.sock_recv(theirs, 100) == framed(b"the last word")
        assert not connection._frames
        theirs.close()

    run(scenario())


def test_a_status_is_found_when_a_write_fails_first() -> None:
    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: tcp_connection.FrameConnection(REQUEST_BYTES_MAX), sock=ours
        )
        stream = TcpStream(SocketAddress(socket.AF_INET, "127.0.0.1", 1), "", None)
        stream._connection = connection
        words = HEADER.pack(STATUS, 0, HEADER.size, grpc.StatusCode.ABORTED.value[0]) + b"why"
        theirs.sendall(framed(words))
        theirs.close()
        await connection.lost
        with pytest.raises(tcp_connection.ConnectionEndedError) as caught:
            await stream.write(b"more")
        assert stream.status_of(caught.value) == EndStatus(grpc.StatusCode.ABORTED, "why")

    run(scenario())
