"""One accepted write stream: a task that sends, a task that receives, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import grpc

from quorate.client.search import CALL_ERRORS, FoundStream
from quorum.v1.metadata_pb2 import WriteStreamRequest, WriteStreamResponse

END_SECONDS_MAX: Final = 0.5
"""How long the node may take to end a stream that we have ended; then it is cut."""


class LiveStream:
    """Moves messages until the stream breaks. Owned by a ``Writer``, on its event loop.

    Commands that gather while a message is on its way leave together in the next one.

    gRPC hands every completion to the event loop that began the operation, also when that loop is
    closed already, which then fails in whatever loop the process runs next. ``end`` leaves none
    behind; ``close`` is for a loop that goes on.
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
        self._grpc_tasks = found.tasks
        self._take = take
        self._on_answers = on_answers
        self._on_lost = on_lost
        self._wake = asyncio.Event()
        self._wake.set()
        self._is_ending = False
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

    async def end(self) -> None:
        """Send nothing more, and return when the node has ended the stream or it had to be cut.

        What is on its way is written to its end; ``on_answers`` is still called for what comes.
        """
        self._is_ending = True
        self._wake.set()
        try:
            _, late = await asyncio.wait(self._tasks, timeout=END_SECONDS_MAX)
            if late:
                # Not the tasks: cancelled, they would leave their reads and writes with gRPC.
                self._call.cancel()
                # gRPC calls it over at once; its core says so later, and perhaps apart from the
                # end of the read.
                await asyncio.wait({*late, *self._grpc_tasks}, timeout=END_SECONDS_MAX)
        finally:
            self.close()

    async def _send(self) -> None:
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while not self._is_ending:
                    message = self._take()
                    if message is None:
                        break
                    await self._call.write(message)
                if self._is_ending:
                    await self._call.done_writing()
                    return
        except CALL_ERRORS:
            self._on_lost(self)

    async def _receive(self) -> None:
        try:
            while True:
                response = await self._call.read()
                if response is grpc.aio.EOF:
                    await self._call.code()
                    break
                self._on_answers(response)
        except CALL_ERRORS:
            pass
        self._on_lost(self)
