"""Write streams between a client's ``Writer`` and the services, over queues instead of sockets.

Messages keep their order on a stream and take a random time. A stream may break at any moment: then
what is under way on it is lost, in both directions.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import grpc

from quorate.client.channels import Nodes
from quorate.client.cluster import CLUSTER_ID_KEY
from quorate.services.errors import rich_status
from quorum.errors import QuorateError
from quorum.transport.answers import DETAILS_KEY

CLUSTER = "c"


class Pipe:
    """One direction of a stream: what is put in comes out in order, each after a delay."""

    def __init__(self, delay: Callable[[], float]) -> None:
        self._delay = delay
        self._under_way: deque[Any] = deque()
        self._items: deque[Any] = deque()
        self._last = 0.0
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None

    def put(self, item: Any) -> None:
        """Deliver ``item`` behind everything that was put before."""
        self._last = max(self._last, self._loop.time() + self._delay())
        self._under_way.append(item)
        self._loop.call_at(self._last, self._arrive)

    def cut(self, item: Any) -> None:
        """Drop what has arrived, and deliver ``item`` from now on."""
        self._items = deque([item] * 8)
        self._wake()

    def _arrive(self) -> None:
        # Timers of one moment may run in any order.
        self._items.append(self._under_way.popleft())
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def get(self) -> Any:
        """Return the next item, or raise it if it is an error."""
        while not self._items:
            self._waiter = self._loop.create_future()
            await self._waiter
        item = self._items.popleft()
        if isinstance(item, BaseException):
            raise item
        return item


class MemoryCall:
    """Both ends of one stream: the client's call, and ``context`` for the services."""

    def __init__(self, serve: Callable[[Any], Awaitable[None]], delay: Callable[[], float]) -> None:
        self._to_server, self._to_client = Pipe(delay), Pipe(delay)
        self._metadata = grpc.aio.Metadata((CLUSTER_ID_KEY, CLUSTER))
        self.is_over = False
        self.context = SimpleNamespace(
            read=self._to_server.get,
            write=self._answer,
            auth_context=dict,
            peer=lambda: "memory:1",
        )
        self._task = asyncio.ensure_future(self._serve(serve))

    async def _serve(self, serve: Callable[[Any], Awaitable[None]]) -> None:
        try:
            await serve(self.context)
        except QuorateError as error:
            status = rich_status(error)
            details = (DETAILS_KEY, status.SerializeToString())
            self._to_client.put(self._failure(details))
        else:
            self._to_client.put(grpc.aio.EOF)

    def _failure(self, *details: tuple[str, bytes]) -> grpc.aio.AioRpcError:
        trailing = grpc.aio.Metadata((CLUSTER_ID_KEY, CLUSTER), *details)
        return grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), trailing)

    async def _answer(self, message: Any) -> None:
        if not self.is_over:
            copy = type(message)()
            copy.CopyFrom(message)
            self._to_client.put(copy)

    def break_off(self) -> None:
        """Lose the connection."""
        if not self.is_over:
            self.is_over = True
            self._task.cancel()
            self._to_client.cut(self._failure())

    # ------------------------------------------------------------------ the client's end

    async def write(self, message: Any) -> None:
        if self.is_over:
            raise self._failure()
        copy = type(message)()
        copy.CopyFrom(message)
        self._to_server.put(copy)

    async def read(self) -> Any:
        return await self._to_client.get()

    async def done_writing(self) -> None:
        self._to_server.put(grpc.aio.EOF)

    async def initial_metadata(self) -> grpc.aio.Metadata:
        return self._metadata

    async def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.OK

    def cancel(self) -> bool:
        self.break_off()
        return True


class MemoryNodes(Nodes):
    """The nodes of a client, reached by ``open_stream`` with their address."""

    def __init__(self, addresses: list[str], open_stream: Callable[[str], MemoryCall]) -> None:
        super().__init__(addresses, cluster_id=CLUSTER)
        self._open_stream = open_stream

    def node(self, address: str) -> Any:
        """Return what offers the one call that a writer makes."""
        stream = lambda: self._open_stream(address)  # noqa: E731
        return SimpleNamespace(metadata=SimpleNamespace(WriteStream=stream))
