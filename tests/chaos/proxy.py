"""Proxies that inject network faults between nodes, and between clients and nodes.

Every process has an HTTP proxy of its own. gRPC takes its address from the environment and sends it
CONNECT. So each proxy knows both ends of a connection, and every pair can have its own faults. A
held direction delivers all held bytes when it is released, as a slow network does.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

CLIENT = 0
"""Used as node id for every process that is not a node."""
CHUNK_BYTES = 1 << 16
ACCEPT_TURNS = 4
"""Turns of the loop from ``accept(2)`` to the call of ``_accept``: three, and one more."""
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Direction = tuple[int, int]
"""Sender and receiver of bytes; either of them may have opened the connection."""


@dataclass(slots=True)
class Rule:
    """The rule for bytes in one direction."""

    is_held: bool = False
    delay_seconds: float = 0.0


class Links:
    """The rules of all directions, and their connections. Used on one event loop."""

    def __init__(self) -> None:
        self._rules: dict[Direction, Rule] = {}
        self._cut: set[frozenset[int]] = set()
        self._changed = asyncio.Event()
        self._open: dict[frozenset[int], set[asyncio.StreamWriter]] = {}
        self._affected: Counter[Direction] = Counter()

    def affected(self, directions: Iterable[Direction]) -> int:
        """Return how often data or connections of these directions met a rule, since the start.

        Held and delayed data count, and so do connections that were reset or refused. A fault
        during which the number does not rise had no effect.
        """
        return sum(self._affected[direction] for direction in directions)

    def _count_pair(self, pair: frozenset[int], times: int = 1) -> None:
        one, other = pair
        self._affected[one, other] += times
        self._affected[other, one] += times

    def hold(self, directions: Iterable[Direction]) -> None:
        """Keep the connections and deliver nothing until ``heal``."""
        for direction in directions:
            self._rules.setdefault(direction, Rule()).is_held = True

    def delay(self, directions: Iterable[Direction], seconds: float) -> None:
        """Delay all data by so much."""
        for direction in directions:
            self._rules.setdefault(direction, Rule()).delay_seconds = seconds

    def cut(self, one: int, other: int) -> None:
        """Reset the connections of a pair, and every new one, until ``heal``."""
        pair = frozenset((one, other))
        self._cut.add(pair)
        reset = self._open.get(pair, set())
        self._count_pair(pair, len(reset))
        for writer in reset:
            writer.transport.abort()

    def heal(self, directions: Iterable[Direction] | None = None) -> None:
        """End all faults, or those of the given directions."""
        if directions is None:
            self._rules.clear()
            self._cut.clear()
        else:
            for direction in directions:
                self._rules.pop(direction, None)
                self._cut.discard(frozenset(direction))
        self._changed.set()
        self._changed = asyncio.Event()

    def refuses(self, pair: frozenset[int]) -> bool:
        """Return whether a new connection of this pair is to be reset, and count it if so."""
        if pair not in self._cut:
            return False
        self._count_pair(pair)
        return True

    def register(self, pair: frozenset[int], *writers: asyncio.StreamWriter) -> None:
        self._open.setdefault(pair, set()).update(writers)

    def forget(self, pair: frozenset[int], *writers: asyncio.StreamWriter) -> None:
        self._open.get(pair, set()).difference_update(writers)

    async def pass_through(self, direction: Direction) -> None:
        """Return when data of this direction may be delivered."""
        rule = self._rules.get(direction)
        self._affected[direction] += rule is not None
        if rule is not None and rule.delay_seconds:
            await asyncio.sleep(rule.delay_seconds)
        while (rule := self._rules.get(direction)) is not None and rule.is_held:
            await self._changed.wait()


class Proxy:
    """The proxy of one process for connections to nodes, which are known by their ports."""

    def __init__(
        self, links: Links, source: int, host: str, port: int, targets: Mapping[int, int]
    ) -> None:
        self._links = links
        self._source = source
        self._host, self._port = host, port
        self._targets = targets
        self.carried: Counter[int] = Counter()
        """Bytes that were passed on in either direction, by the port that was asked for."""
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: set[asyncio.StreamWriter] = set()
        self._is_closed = False

    @property
    def url(self) -> str:
        """The value for the environment variable ``grpc_proxy`` of the process."""
        return f"http://{self._host}:{self._port}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, self._host, self._port)

    async def close(self) -> None:
        """Stop accepting, and abort every connection, in whatever state it is.

        A writer that outlives its loop raises in the test that runs when it is collected.
        """
        self._is_closed = True
        if self._server is not None:
            # Python 3.11 leaks a connection whose transport is being made when the server closes.
            for each in self._server.sockets:
                asyncio.get_running_loop().remove_reader(each.fileno())
            for _ in range(ACCEPT_TURNS):
                await asyncio.sleep(0)
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # A task that was cancelled before its first step has not aborted its connection.
        for writer in self._open:
            writer.transport.abort()
        self._open.clear()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_closed:
            # Accepted before the server was closed, and reported after it.
            writer.transport.abort()
            return
        self._open.add(writer)
        task = asyncio.get_running_loop().create_task(self._connect(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        pair: frozenset[int] = frozenset()
        try:
            port = await self._read_request(reader)
            target = self._targets[port]
            pair = frozenset((self._source, target))
            self._links.register(pair, writer)
            if self._links.refuses(pair):
                return
            # A held direction holds the handshake of a new connection, too.
            await self._links.pass_through((self._source, target))
            there, back = await asyncio.open_connection(self._host, port)
            writers.append(back)
            self._open.add(back)
            self._links.register(pair, back)
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await self._carry((reader, writer), (there, back), port)
        except (OSError, ValueError, KeyError, asyncio.IncompleteReadError):
            # The client sees its connection end.
            pass
        finally:
            self._links.forget(pair, *writers)
            # All are aborted before any is waited for: ``close`` may cancel the wait.
            for each in writers:
                each.transport.abort()
            self._open.difference_update(writers)
            for each in writers:
                with contextlib.suppress(OSError):
                    await each.wait_closed()

    @staticmethod
    async def _read_request(reader: asyncio.StreamReader) -> int:
        request = await reader.readuntil(b"\r\n\r\n")
        method, address, _ = request.split(b"\r\n", 1)[0].split(b" ", 2)
        if method != b"CONNECT":
            raise ValueError(f"not a CONNECT: {request!r}")
        return int(address.rpartition(b":")[2])

    async def _carry(self, near: Ends, far: Ends, port: int) -> None:
        target = self._targets[port]
        halves = [
            asyncio.ensure_future(self._pump(near[0], far[1], (self._source, target), port)),
            asyncio.ensure_future(self._pump(far[0], near[1], (target, self._source), port)),
        ]
        try:
            await asyncio.wait(halves, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for half in halves:
                half.cancel()
            await asyncio.gather(*halves, return_exceptions=True)

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        direction: Direction,
        port: int,
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                await self._links.pass_through(direction)
                self.carried[port] += len(data)
                writer.write(data)
                await writer.drain()
