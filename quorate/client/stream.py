"""One open stream of a node: a task that sends, a task that receives, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Set
from typing import Any, Final, Generic, TypeVar

import grpc
from google.protobuf.message import Message

from quorate.client.errors import ClientError
from quorate.client.search import CALL_ERRORS, StreamCall

RequestT = TypeVar("RequestT", bound=Message)

END_SECONDS_MAX: Final = 0.25
"""How long the node may take to end a stream that we have ended; then it is cut."""


class LiveStream(Generic[RequestT]):
    """Moves messages until the stream breaks. Has one owner, on its event loop.

    Requests that arrive while a message is being sent leave together in the next one.

    gRPC delivers every completion to the event loop that began the operation, even if that loop is
    closed; the error then shows in the next loop of the process. ``end`` leaves no operation
    behind; ``close`` is for a loop that continues.
    """

    def __init__(
        self,
        address: str,
        call: StreamCall,
        grpc_tasks: Set[asyncio.Task[Any]],
        *,
        take: Callable[[], RequestT | None],
        on_answers: Callable[[Any], None],
        on_lost: Callable[[LiveStream[RequestT], BaseException | None], None],
        check: Callable[[Any], None] | None = None,
    ) -> None:
        """``grpc_tasks`` are those of ``opened_with_tasks``.

        ``on_lost`` is given the reason, or None where the node has ended the stream in order.

        ``check`` is given the initial metadata before the first answer; what it raises, a
        ``ClientError``, ends the stream.
        """
        self.address = address
        self._call = call
        self._grpc_tasks = grpc_tasks
        self._take = take
        self._on_answers = on_answers
        self._on_lost = on_lost
        self._check = check
        self._wake = asyncio.Event()
        self._wake.set()
        self._is_ending = False
        loop = asyncio.get_running_loop()
        self._tasks = (loop.create_task(self._send()), loop.create_task(self._receive()))

    def wake(self) -> None:
        """Wake the sender. Requests added in this turn of the event loop are sent together."""
        self._wake.set()

    def close(self) -> None:
        """Cut the stream. ``on_lost`` is not called any more."""
        for task in self._tasks:
            task.cancel()
        self._call.cancel()

    async def end(self) -> None:
        """Send no more requests, and return when the node has ended the stream or it was cancelled.

        A message that is being sent is completed; ``on_answers`` is still called for answers.
        """
        self._is_ending = True
        self._wake.set()
        try:
            _, late = await asyncio.wait(self._tasks, timeout=END_SECONDS_MAX)
            if late:
                # Do not cancel the tasks: their reads and writes would stay pending in gRPC.
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
        except CALL_ERRORS as error:
            self._on_lost(self, error)

    async def _receive(self) -> None:
        why: BaseException | None = None
        try:
            if self._check is not None:
                self._check(await self._call.initial_metadata())
            while True:
                response = await self._call.read()
                if response is grpc.aio.EOF:
                    await self._call.code()
                    break
                self._on_answers(response)
        except (*CALL_ERRORS, ClientError) as error:
            why = error
        self._on_lost(self, why)
