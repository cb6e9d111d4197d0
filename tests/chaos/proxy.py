"""TCP between nodes, and between clients and nodes, through something that can break it.

Every process is given an HTTP proxy of its own (gRPC takes it from the environment and asks it to
CONNECT), so each knows who asks and for whom, and every pair can be treated differently. A
direction that is held delivers what it held when it is let go, as a network does that only seemed
dead.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

CLIENT = 0
"""In the place of a node id: any process that is no node."""
CHUNK_BYTES = 1 << 16
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Direction = tuple[int, int]
"""From whom to whom bytes flow, whoever opened the connection."""


@dataclass(slots=True)
class Rule:
    """What happens to bytes in one direction."""

    is_held: bool = False
    delay_seconds: float = 0.0


class Links:
    """The rules of all directions, and the connections they apply to. Lives on one loop."""

    def __init__(self) -> None:
        self._rules: dict[Direction, Rule] = {}
        self._cut: set[frozenset[int]] = set()
        self._changed = asyncio.Event()
        self._open: dict[frozenset[int], set[asyncio.StreamWriter]] = {}

    def hold(self, directions: Iterable[Direction]) -> None:
        """Keep the connections and deliver nothing until ``mend``."""
        for direction in directions:
            self._rules.setdefault(direction, Rule()).is_held = True

    def delay(self, directions: Iterable[Direction], seconds: float) -> None:
        """Let every piece of data take so much longer."""
        for direction in directions:
            self._rules.setdefault(direction, Rule()).delay_seconds = seconds

    def cut(self, one: int, other: int) -> None:
        """Reset the connections of a pair, and every new one, until ``mend``."""
        pair = frozenset((one, other))
        self._cut.add(pair)
        for writer in self._open.get(pair, ()):
            writer.transport.abort()

    def mend(self, directions: Iterable[Direction] | None = None) -> None:
        """End every fault, or those of some directions."""
        if directions is None:
            self._rules.clear()
            self._cut.clear()
        else:
            for direction in directions:
                self._rules.pop(direction, None)
                self._cut.discard(frozenset(direction))
        self._changed.set()
        self._changed = asyncio.Event()

    def is_cut(self, pair: frozenset[int]) -> bool:
        return pair in self._cut

    def register(self, pair: frozenset[int], *writers: asyncio.StreamWriter) -> None:
        self._open.setdefault(pair, set()).update(writers)

    def forget(self, pair: frozenset[int], *writers: asyncio.StreamWriter) -> None:
        self._open.get(pair, set()).difference_update(writers)

    async def pass_through(self, direction: Direction) -> None:
        """Return when data of this direction may go on."""
        rule = self._rules.get(direction)
        if rule is not None and rule.delay_seconds:
            await asyncio.sleep(rule.delay_seconds)
        while (rule := self._rules.get(direction)) is not None and rule.is_held:
            await self._changed.wait()


class Proxy:
    """The way out of one process, to nodes known by their ports."""

    def __init__(
        self, links: Links, source: int, host: str, port: int, targets: Mapping[int, int]
    ) -> None:
        self._links = links
        self._source = source
        self._host, self._port = host, port
        self._targets = targets
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """For the environment variable ``grpc_proxy`` of the process."""
        return f"http://{self._host}:{self._port}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, self._host, self._port)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
            if self._links.is_cut(pair):
                return
            # A held direction holds the handshake of a new connection, too.
            await self._links.pass_through((self._source, target))
            there, back = await asyncio.open_connection(self._host, port)
            writers.append(back)
            self._links.register(pair, back)
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await self._carry((reader, writer), (there, back), target)
        except (OSError, ValueError, KeyError, asyncio.IncompleteReadError):
            # Whoever asked sees its connection end.
            pass
        finally:
            self._links.forget(pair, *writers)
            for each in writers:
                each.transport.abort()
                with contextlib.suppress(OSError):
                    await each.wait_closed()

    @staticmethod
    async def _read_request(reader: asyncio.StreamReader) -> int:
        request = await reader.readuntil(b"\r\n\r\n")
        method, address, _ = request.split(b"\r\n", 1)[0].split(b" ", 2)
        if method != b"CONNECT":
            raise ValueError(f"not a CONNECT: {request!r}")
        return int(address.rpartition(b":")[2])

    async def _carry(self, near: Ends, far: Ends, target: int) -> None:
        halves = [
            asyncio.ensure_future(self._pump(near[0], far[1], (self._source, target))),
            asyncio.ensure_future(self._pump(far[0], near[1], (target, self._source))),
        ]
        try:
            await asyncio.wait(halves, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for half in halves:
                half.cancel()
            await asyncio.gather(*halves, return_exceptions=True)

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: Direction
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                await self._links.pass_through(direction)
                writer.write(data)
                await writer.drain()
