"""One accepted write stream: a task that sends, a task that receives, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import grpc

from quorate.client.search import CALL_ERRORS, FoundStream
from quorum.v1.metadata_pb2 import WriteStreamRequest, WriteStreamResponse


class LiveStream:
    """Moves messages until the stream breaks. Owned by a ``Writer``, on its event loop.

    Commands that gather while a message is on its way leave together in the next one.
    """

    def __init__(
        self,
        found: FoundStream,
        *,
        take: Callable[[], WriteStreamRequest | None],
        on_answers: Callable[[WriteStreamResponse], None],
        on_lost: Callable[[LiveStream], None],
    ) -> None:
        self.address = found.address
        self._call = found.call
        self._take = take
        self._on_answers = on_answers
        self._on_lost = on_lost
        self._wake = asyncio.Event()
        self._wake.set()
        loop = asyncio.get_running_loop()
        self._tasks = (loop.create_task(self._send()), loop.create_task(self._receive()))

    def wake(self) -> None:
        """There may be something to send. What is added in this turn goes along."""
        self._wake.set()

    def close(self) -> None:
        """Cut the stream. ``on_lost`` is not called any more."""
        for task in self._tasks:
            task.cancel()
        self._call.cancel()

    async def _send(self) -> None:
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                message = self._take()
                while message is not None:
                    await self._call.write(message)
                    message = self._take()
        except CALL_ERRORS:
            self._on_lost(self)

    async def _receive(self) -> None:
        try:
            while True:
                response = await self._call.read()
                if response is grpc.aio.EOF:
                    break
                self._on_answers(response)
        except CALL_ERRORS:
            pass
        self._on_lost(self)
