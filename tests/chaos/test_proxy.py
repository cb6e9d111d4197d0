"""The proxies of the chaos tests apply each fault to its own direction only."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from asyncio import streams
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from quorate.demo.local_cluster import HOST
from quorate.demo.ports import free_ports
from tests.chaos.proxy import Links, Proxy

A, B = 1, 2
SOON = 0.2
"""Seconds, long enough for loopback; held data must not arrive within it."""
STEPS = 20
"""More turns of the loop than a connection needs to be made or to end."""


class Ends:
    """A connection from A through its proxy to an echo server at B."""

    def __init__(self, links: Links, proxy_port: int, port: int) -> None:
        self.links = links
        self._proxy_port = proxy_port
        self.port = port
        self.arrived: asyncio.Queue[bytes] = asyncio.Queue()
        self.writers: list[asyncio.StreamWriter] = []

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(HOST, self._proxy_port)
        self.writers.append(writer)
        return reader, writer

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await self.open()
        writer.write(f"CONNECT {HOST}:{self.port} HTTP/1.1\r\nHost: b\r\n\r\n".encode())
        line = await reader.readuntil(b"\r\n\r\n")
        assert line.startswith(b"HTTP/1.1 200")
        return reader, writer

    async def echo(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(100):
                self.arrived.put_nowait(data)
                writer.write(data)


@contextlib.asynccontextmanager
async def ends() -> AsyncIterator[Ends]:
    links = Links()
    port, proxy_port = free_ports(2)
    made = Ends(links, proxy_port, port)
    server = await asyncio.start_server(made.echo, HOST, port)
    proxy = Proxy(links, A, HOST, proxy_port, {port: B})
    await proxy.start()
    try:
        yield made
    finally:
        await proxy.close()
        server.close()
        for writer in made.writers:
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


def run(body: Callable[[Ends], Awaitable[None]]) -> None:
    async def inside() -> None:
        async with ends() as made, asyncio.timeout(10):
            await body(made)

    asyncio.run(inside())


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    """Return the data that arrives before the connection ends or is reset."""
    try:
        return await reader.read(100)
    except ConnectionError:
        return b""


async def nothing_from(awaitable: Awaitable[bytes]) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(SOON):
            await awaitable


def test_the_proxy_forwards_bytes_both_ways() -> None:
    async def body(made: Ends) -> None:
        reader, writer = await made.connect()
        writer.write(b"hello")
        assert await reader.read(100) == b"hello"

    run(body)


def test_one_direction_is_held_and_delivered_late() -> None:
    async def body(made: Ends) -> None:
        reader, writer = await made.connect()
        made.links.hold([(B, A)])
        writer.write(b"hello")
        assert await made.arrived.get() == b"hello"
        await nothing_from(reader.read(100))
        made.links.heal([(B, A)])
        assert await reader.read(100) == b"hello"

    run(body)


def test_the_other_direction_is_held() -> None:
    async def body(made: Ends) -> None:
        reader, writer = await made.connect()
        made.links.hold([(A, B)])
        writer.write(b"hello")
        await nothing_from(made.arrived.get())
        made.links.heal()
        assert await reader.read(100) == b"hello"

    run(body)


def test_a_cut_resets_connections_and_refuses_new_ones() -> None:
    async def body(made: Ends) -> None:
        reader, _ = await made.connect()
        made.links.cut(A, B)
        assert await rest_of(reader) == b""
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await made.connect()
        made.links.heal([(A, B)])
        await made.connect()

    run(body)


def test_a_delay_delays() -> None:
    async def body(made: Ends) -> None:
        reader, writer = await made.connect()
        made.links.delay([(A, B)], SOON * 2)
        loop = asyncio.get_running_loop()
        began = loop.time()
        writer.write(b"hello")
        assert await reader.read(100) == b"hello"
        assert loop.time() - began >= SOON * 2

    run(body)


def test_nonsense_and_unknown_targets_are_turned_away() -> None:
    async def body(made: Ends) -> None:
        for port, method in ((1, "CONNECT"), (made.port, "GET")):
            reader, writer = await made.open()
            writer.write(f"{method} {HOST}:{port} HTTP/1.1\r\n\r\n".encode())
            assert await rest_of(reader) == b""

    run(body)


class RecordedWriter(asyncio.StreamWriter):
    """Keeps every writer, also those of connections that were not accepted."""

    made: list[asyncio.StreamWriter]

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]  # handed on as they came
        self.made.append(self)


@pytest.mark.parametrize("steps", range(STEPS))
@pytest.mark.parametrize("ends", [False, True], ids=["a connection is made", "a connection ends"])
def test_close_leaves_no_connection_open(
    monkeypatch: pytest.MonkeyPatch, steps: int, ends: bool
) -> None:
    """At any moment. A writer that stays open fails the test in which it is collected."""
    monkeypatch.setattr(streams, "StreamWriter", RecordedWriter)
    monkeypatch.setattr(RecordedWriter, "made", [], raising=False)

    async def far(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.transport.abort()

    async def inside() -> None:
        port, proxy_port = free_ports(2)
        server = await asyncio.start_server(far, HOST, port)
        proxy = Proxy(Links(), A, HOST, proxy_port, {port: B})
        await proxy.start()
        with socket.create_connection((HOST, proxy_port)) as near:
            if ends:
                near.setblocking(False)
                loop = asyncio.get_running_loop()
                await loop.sock_sendall(near, f"CONNECT {HOST}:{port} HTTP/1.1\r\n\r\n".encode())
                assert (await loop.sock_recv(near, 100)).startswith(b"HTTP/1.1 200")
                near.close()
            for _ in range(steps):
                await asyncio.sleep(0)
            await proxy.close()
        server.close()

    asyncio.run(inside())
    still_open = [each for each in RecordedWriter.made if not each.transport.is_closing()]
    assert still_open == []
