"""What strangers do to the port of TCP streams: each has one line of log and no other effect."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import shutil
import socket
import ssl
import struct
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import grpc
import pytest

from quorum.transport import tcp_connection, tcp_server
from quorum.transport.framing import STATUS, encode_frame
from quorum.transport.hello import Hello, encode_hello
from quorum.transport.limits import REQUEST_BYTES_MAX
from quorum.transport.security import TlsIdentity
from quorum.types import ReplicaKey
from tests.support import peer_harness
from tests.support.certificates import authority, node
from tests.support.peer_harness import CLUSTER, Replica, bare_stream, end_of, fetch, replica, run

HELLO = encode_hello(Hello(CLUSTER, ReplicaKey(-1), b""))
FETCH = encode_frame(fetch(-1, 1, replica=ReplicaKey(-1)))


@pytest.fixture(autouse=True)
def over_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_harness, "CARRIER", peer_harness.TCP)


def framed(frame: bytes) -> bytes:
    return struct.pack(">I", len(frame)) + frame


def port_of(to: Replica) -> int:
    assert to.server.tcp is not None
    return to.server.tcp.port


OPEN: list[asyncio.StreamWriter] = []


async def connect(
    to: Replica, context: ssl.SSLContext | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    made = await asyncio.open_connection("127.0.0.1", port_of(to), ssl=context)
    OPEN.append(made[1])
    return made


def play(scenario: Coroutine[Any, Any, None]) -> None:
    """Run it, and close what strangers left open."""

    async def and_close() -> None:
        try:
            await scenario
        finally:
            for writer in OPEN:
                writer.transport.abort()
            for _ in range(10):
                await asyncio.sleep(0)
            OPEN.clear()

    run(and_close())


async def answered(reader: asyncio.StreamReader) -> bytes:
    """Everything up to the end of the connection; a reset is an end."""
    data = b""
    try:
        while part := await reader.read(1 << 16):
            data += part
    except ConnectionResetError:
        pass
    return data


async def assert_unharmed(to: Replica) -> None:
    """An honest peer is answered, and nothing of the strangers is left."""
    to.echo()
    async with replica(2) as follower:
        follower.network.set_peers({1: to.address})
        follower.network.send(1, fetch(2, 1))
        await follower.handler.until(lambda: bool(follower.handler.received))
    while to.network.service.stream_count or to.server.tcp._streams:  # type: ignore[union-attr]
        await asyncio.sleep(0)
    assert to.server.tcp is not None
    assert to.server.tcp.handshakes.open_count == 0


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (struct.pack(">I", REQUEST_BYTES_MAX + 1), f"at most {REQUEST_BYTES_MAX} fit"),
        (b"\xff\xff\xff\xff" + bytes(100), "a frame of 4294967295 bytes"),
        (b"\x16\x03\x01\x02\x00\x01", "the caller speaks TLS"),
        (
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "does not speak this protocol: it begins with b'PRI '",
        ),
        (b"GET / HTTP/1.1\r\n\r\n", "it begins with b'GET '"),
        (framed(b""), "a stream opens with a hello"),
        (framed(b"nonsense"), "a stream opens with a hello"),
        (framed(HELLO) + framed(b"\x99"), "unknown kind 99"),
        (framed(HELLO) + struct.pack(">I", REQUEST_BYTES_MAX + 1), "at most"),
    ],
    ids=["a byte too long", "4 GiB", "TLS", "gRPC", "HTTP", "empty", "nonsense", "kind", "later"],
)
def test_what_is_no_stream_ends_with_one_line(
    sent: bytes, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The caller gets the same words in a status, and the connection ends."""

    async def scenario() -> None:
        async with replica(1) as leader:
            for _ in range(3):
                reader, writer = await connect(leader)
                writer.write(sent)
                answer = await answered(reader)
                assert words.encode() in answer
                assert bytes([STATUS]) in answer
                writer.close()
            assert leader.link.counters.malformed == 3
            assert leader.handler.received == []
            await assert_unharmed(leader)

    with caplog.at_level(logging.WARNING, logger="quorum.transport"):
        play(scenario())
    assert len([r for r in caplog.records if words in r.getMessage()]) == 1


@pytest.mark.parametrize(
    "sent",
    [b"", b"\x00", struct.pack(">I", 40), framed(HELLO), framed(HELLO) + framed(FETCH)[:-1]],
    ids=["nothing", "a part of a length", "a length", "a hello", "a part of a request"],
)
def test_a_connection_that_is_closed_or_half_closed_ends_quietly(
    sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with replica(1) as leader:
            for is_half in (False, True):
                reader, writer = await connect(leader)
                writer.write(sent)
                if is_half:
                    writer.write_eof()
                    await answered(reader)
                writer.close()
            assert leader.handler.received == []
            await assert_unharmed(leader)
            assert leader.link.counters.malformed == 0

    with caplog.at_level(logging.WARNING, logger="quorum.transport"):
        play(scenario())
    assert not [r for r in caplog.records if "stream from" in r.getMessage()]


@pytest.mark.parametrize("sent", [b"", b"\x00\x00", framed(HELLO)[:-1]])
def test_a_caller_that_stalls_before_its_hello_is_ended(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorum.transport.inbound.HELLO_TIMEOUT_S", 0.05)

    async def scenario() -> None:
        async with replica(1) as leader:
            reader, writer = await connect(leader)
            writer.write(sent)
            assert b"no hello came" in await answered(reader)
            writer.close()
            await assert_unharmed(leader)

    play(scenario())


def test_a_caller_that_stalls_within_a_message_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The part that arrived does not count as a sign of life."""
    monkeypatch.setattr("quorum.transport.inbound.STREAM_SILENCE_S", 0.05)

    async def scenario() -> None:
        async with replica(1) as leader:
            reader, writer = await connect(leader)
            writer.write(framed(HELLO) + framed(FETCH)[:-1])
            assert b"no answer to a probe" in await answered(reader)
            writer.close()
            assert leader.link.counters.streams_silent == 1
            assert leader.handler.received == []

    play(scenario())


def test_random_bytes_harm_nothing() -> None:
    """Bytes with and without a right length, in arrivals of any size, before and after a hello."""
    rng = random.Random(12)

    async def scenario() -> None:
        async with replica(1) as leader:
            for number in range(150):
                reader, writer = await connect(leader)
                noise = rng.randbytes(rng.randrange(1, 300))
                data = framed(noise) if number % 3 else noise
                data = (framed(HELLO) if number % 2 else b"") + data
                # It may be refused before its end; uvloop raises RuntimeError then.
                with contextlib.suppress(OSError, RuntimeError):
                    while data:
                        cut = rng.randrange(1, len(data) + 1)
                        writer.write(data[:cut])
                        await asyncio.sleep(0)
                        data = data[cut:]
                    writer.write_eof()
                await answered(reader)
                writer.close()
            await assert_unharmed(leader)

    play(scenario())


def test_a_caller_that_does_not_read_gets_no_more_than_the_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Responses of 1 MiB: the kernel takes some, the queue its bound, the rest is dropped."""
    monkeypatch.setattr("quorum.transport.outbox.OUTBOX_BYTES_MAX", 4 << 20)

    async def scenario() -> None:
        async with replica(1) as leader:
            _, writer = await connect(leader)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            leader.handler.on_request = lambda sender, message: leader.network.send(
                sender, peer_harness.answer_to(message, records=bytes(1 << 20))
            )
            writer.write(framed(HELLO))
            for number in range(40):
                request = fetch(-1, number, replica=ReplicaKey(-1))
                writer.write(framed(encode_frame(request)))
            await leader.handler.until(lambda: len(leader.handler.received) == 40)
            assert leader.link.counters.outbox_dropped >= 20
            writer.transport.abort()

    play(scenario())


def test_frames_that_nobody_reads_stop_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection keeps its bound of frames, and delivers all of them in the end."""
    monkeypatch.setattr(tcp_connection, "_UNREAD_FRAMES_MAX", 4)

    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        loop = asyncio.get_running_loop()
        transport, connection = await loop.create_connection(
            lambda: tcp_connection.FrameConnection(REQUEST_BYTES_MAX), sock=ours
        )
        await loop.sock_sendall(theirs, framed(b"a") * 10)
        while not connection._frames:
            await asyncio.sleep(0)
        assert not transport.is_reading()
        await loop.sock_sendall(theirs, framed(b"b"))
        assert [await connection.read() for _ in range(11)] == [b"a"] * 10 + [b"b"]
        assert transport.is_reading()
        theirs.close()
        with pytest.raises(tcp_connection.ConnectionEndedError) as caught:
            await connection.read()
        assert caught.value.is_broken
        await connection.lost

    play(scenario())


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
@pytest.mark.parametrize(
    ("sent", "words"),
    [(framed(HELLO), "plain text"), (b"\x16\x03\x01\x00\x05garbage", "no TLS handshake"),
     (b"GET / HTTP/1.1\r\n\r\n", "plain text")],
    ids=["plain text", "garbage", "HTTP"],
)  # fmt: skip
def test_what_is_no_tls_ends_with_one_line(
    sent: bytes, words: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority(tmp_path, "ours")
    tls = TlsIdentity(node(tmp_path, "ours", "leader"))

    async def scenario() -> None:
        async with replica(1, tls=tls) as leader:
            reader, writer = await connect(leader)
            writer.write(sent)
            await answered(reader)
            writer.close()
            while leader.server.tcp._streams:  # type: ignore[union-attr]
                await asyncio.sleep(0)
            assert leader.server.tcp.handshakes.open_count == 0  # type: ignore[union-attr]

    with caplog.at_level(logging.WARNING, logger="quorum.transport"):
        play(scenario())
    (line,) = [r.getMessage() for r in caplog.records if "connection from" in r.getMessage()]
    assert words in line


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_a_caller_without_a_certificate_opens_no_stream(tmp_path: Path) -> None:
    authority(tmp_path, "ours")
    tls = TlsIdentity(node(tmp_path, "ours", "leader"))
    context = ssl.create_default_context(cafile=str(tmp_path / "ours.pem"))

    async def scenario() -> None:
        async with replica(1, tls=tls) as leader:
            reader, writer = await connect(leader, context)
            writer.write(framed(HELLO))
            with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
            assert leader.network.service.stream_count == 0
            assert leader.link.counters.frames_received == 0

    play(scenario())


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_stalled_handshakes_are_bounded_by_caller_and_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of eight places one address gets five; the others are closed at once, and all in time."""
    monkeypatch.setattr(tcp_server, "HANDSHAKES_MAX", 8)
    monkeypatch.setattr(tcp_server, "HANDSHAKE_TIMEOUT_S", 0.3)
    authority(tmp_path, "ours")
    tls = TlsIdentity(node(tmp_path, "ours", "leader"))

    async def scenario() -> None:
        async with replica(1, tls=tls) as leader:
            made = [await connect(leader) for _ in range(8)]
            await asyncio.gather(*(answered(reader) for reader, _ in made))
            assert leader.link.counters.streams_rejected == 3
            for _, writer in made:
                writer.close()
            while leader.server.tcp._streams:  # type: ignore[union-attr]
                await asyncio.sleep(0)

    play(scenario())


def test_many_connections_of_one_address_leave_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address gets its share of streams; further connections end with a status."""
    monkeypatch.setattr("quorum.transport.server.STREAMS_PER_CALLER_MAX", 4)

    async def scenario() -> None:
        async with replica(1) as leader:
            made = [await connect(leader) for _ in range(4)]
            for reader, writer in made:
                writer.write(framed(HELLO))
                await reader.readexactly(4)
            async with bare_stream(leader) as fifth:
                assert (await end_of(fifth)).code is grpc.StatusCode.RESOURCE_EXHAUSTED
            for _, writer in made:
                writer.close()

    play(scenario())
