"""The port of TCP streams: accepts connections, and serves each as a peer stream.

Connections are accepted by our own loop, so that each handshake gets the newest certificate and no
caller holds more than its share of handshakes.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import grpc
from grpc import aio

from quorum.fair_share import FairShare
from quorum.transport.handshake import HANDSHAKE_TIMEOUT_S, handshake_problem, tune
from quorum.transport.limits import HANDSHAKES_MAX, REQUEST_BYTES_MAX
from quorum.transport.link import Link
from quorum.transport.probe import split_address
from quorum.transport.streams import ServedStream
from quorum.transport.tcp_connection import FrameConnection
from quorum.transport.tcp_stream import TcpContext

_BACKLOG: Final = 512
_ACCEPT_PAUSE_S: Final = 1.0
"""Pause after a failed accept: there may be no descriptor left for now."""
_UNWIND_S_MAX: Final = 2.0
"""Bound of the wait for tasks that have been cancelled and only have to unwind."""

Exchange = Callable[[object, ServedStream], Awaitable[None]]
"""Serves one stream: ``RaftService.exchange``, or something around it."""


class TcpServer:
    """Owned by the event loop. Life-cycle: construct, ``start``, ``stop``."""

    def __init__(self, exchange: Exchange, address: str, link: Link) -> None:
        """Bind ``host:port``, every address of the host; port 0 takes a free one.

        Raises:
            OSError: An address cannot be bound, or the host does not resolve.
            ValueError: Not ``host:port``.
        """
        self._exchange = exchange
        self._link = link
        self.handshakes = FairShare("peer_handshakes", HANDSHAKES_MAX)
        self._listeners = _listen(address)
        self.port: int = self._listeners[0].getsockname()[1]
        self._accepting: list[asyncio.Task[None]] = []
        self._streams: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Accept connections."""
        for listener in self._listeners:
            listener.listen(_BACKLOG)
            accept = partial(self._accept, listener)
            task = self._link.supervisor.start("peer-accept", accept)
            self._accepting.append(task)

    async def stop(self) -> None:
        """Accept nothing more, and end the streams; goodbyes were sent before."""
        tasks = [*self._accepting, *self._streams]
        for task in tasks:
            task.cancel()
        for listener in self._listeners:
            listener.close()
        if tasks:
            await asyncio.wait(tasks, timeout=_UNWIND_S_MAX)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(listener)
            except OSError as error:
                self._warn("connections", f"none is accepted: {error.strerror or error}")
                await asyncio.sleep(_ACCEPT_PAUSE_S)
                continue
            host = str(address[0])
            if not self.handshakes.take(host):
                self._link.counters.streams_rejected += 1
                accepted.close()
                continue
            task = loop.create_task(self._serve(accepted, host))
            self._streams.add(task)
            task.add_done_callback(self._ended)

    async def _serve(self, accepted: socket.socket, host: str) -> None:
        loop = asyncio.get_running_loop()
        tls = self._link.tls
        connection = FrameConnection(REQUEST_BYTES_MAX)
        try:
            tune(accepted)
            # uvloop returns its own object in place of the connection if there is TLS.
            transport, _ = await loop.connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=tls.server_context() if tls else None,
                ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S if tls else None,
            )
        except OSError as error:
            accepted.close()
            # Peers try a port by connecting to it and closing again (``probe.py``).
            if not isinstance(error, ConnectionResetError):
                self._warn(f"connection from {host}", handshake_problem(error))
            return
        finally:
            self.handshakes.release(host)
        context = TcpContext(connection, transport)
        try:
            await self._exchange(None, context)
        except aio.AbortError:
            pass
        except asyncio.CancelledError:
            # Not to be taken for the death of this process.
            context.finish(grpc.StatusCode.UNAVAILABLE, "the node stops")
            raise
        finally:
            connection.close()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._streams.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # A bug of ours; the shell reports it or ends the process.
            task.get_loop().call_exception_handler(
                {"message": "a TCP stream failed", "exception": error, "task": task}
            )

    def _warn(self, about: str, problem: str) -> None:
        self._link.rate_limited_log.warn(about, problem, asyncio.get_running_loop().time())


def _listen(address: str) -> list[socket.socket]:
    host, _, port = address.rpartition(":")
    if port != "0":
        host, number = split_address(address)
    else:
        host, number = host.strip("[]"), 0
    found = socket.getaddrinfo(
        host, number, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE, proto=socket.IPPROTO_TCP
    )
    made: list[socket.socket] = []
    try:
        for family, _, _, _, where in dict.fromkeys(found):
            sock = socket.socket(family, socket.SOCK_STREAM)
            made.append(sock)
            sock.settimeout(0)
            # Without the other option a second process cannot bind the port at the same time.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family is socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            sock.bind((where[0], number or _port_of(made), *where[2:]))
    except OSError:
        for sock in made:
            sock.close()
        raise
    return made


def _port_of(made: list[socket.socket]) -> int:
    """Return the port that the first address got, for the others; 0 for the first itself."""
    return int(made[0].getsockname()[1]) if len(made) > 1 else 0
