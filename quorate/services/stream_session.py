"""The common part of request streams: the first message, idleness, and the end.

Each message of a write stream or read stream holds many requests. Answers that are ready within one
turn of the event loop leave as one message.

Invariants:
    1. A stopping node still sends the answers that are ready, then the status.
    2. A stream ends if it has no pending answer and received no whole message for
       ``stream_idle_seconds_max``. gRPC does not show whether the client is idle or has stalled in
       the middle of a message, which occupies memory.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

import grpc
from google.protobuf.message import Message

from quorate.services.admission import ServiceLimits
from quorate.services.calls import Context, Malformed, fail, well_formed
from quorate.services.closing import Closing
from quorate.services.outgoing import AnswersT, OutgoingAnswers
from quorum.errors import CommandError, ErrorCode, QuorateError
from quorum.transport.link import forget_failure

RequestT = TypeVar("RequestT", bound=Message)


class StreamSession(ABC, Generic[RequestT, AnswersT]):
    """One client's stream. Owned by its call; used on the event loop only. Use once: ``run``."""

    name: str
    """Name of the method, for refusals."""
    request_type: type[RequestT]

    def __init__(
        self,
        context: Context,
        limits: ServiceLimits,
        closing: Closing,
        cluster_id: str,
        outgoing: OutgoingAnswers[AnswersT],
    ) -> None:
        self._context = context
        self._limits = limits
        self._closing = closing
        self._cluster_id = cluster_id
        self._outgoing = outgoing
        self._end: asyncio.Task[None] | None = None
        self._is_ending = False
        self._loop = asyncio.get_running_loop()
        self._last_message_at = 0.0
        self._idle_timer: asyncio.TimerHandle | None = None

    @abstractmethod
    def _open(self, first: RequestT) -> None:
        """Process the first message."""

    @abstractmethod
    def _take(self, message: RequestT) -> None:
        """Process a further message."""

    @abstractmethod
    def _is_congested(self) -> bool:
        """Return whether too many answers wait for this client; reading pauses meanwhile."""

    @abstractmethod
    async def _decongest(self) -> None:
        """Return once fewer answers wait, or the stream is over."""

    async def run(self) -> None:
        """Serve the stream until the client ends it and has all its answers.

        Raises:
            CommandError: INVALID_REQUEST if the client violates the protocol,
                BROKER_NOT_AVAILABLE if the node is stopping, REQUEST_TIMED_OUT if no first
                message arrives; the errors of ``_open`` and ``_take``.
            AbortError: The node stops or the stream is idle for too long; it has already ended with
                BROKER_NOT_AVAILABLE or REQUEST_TIMED_OUT.
        """
        if self._closing.is_begun:
            raise self._closing.refusal()
        try:
            with self._closing.notifying(lambda: self._begin_end(self._closing.refusal())):
                first = await self._first_message()
                if first is grpc.aio.EOF:
                    return
                self._open(well_formed(first, self.request_type))
                self._watch_idleness()
                await self._receive()
                await self._outgoing.finish()
        finally:
            self._outgoing.close()
            if self._idle_timer is not None:
                self._idle_timer.cancel()
            if self._end is not None:
                if not self._is_ending:
                    self._end.cancel()
                (ended,) = await asyncio.gather(self._end, return_exceptions=True)
                if isinstance(ended, grpc.aio.AbortError):
                    # The stream already has its status, so other errors no longer matter.
                    raise ended

    async def _receive(self) -> None:
        read, request_type = self._context.read, self.request_type
        while True:
            if self._is_congested():
                await self._decongest()
            message = await read()
            if message is grpc.aio.EOF:
                break
            self._last_message_at = self._loop.time()
            if isinstance(message, Malformed):
                message = well_formed(message, request_type)
            self._take(message)

    async def _first_message(self) -> Any:
        # Shielded, not cancelled: the read ends with the call.
        read = asyncio.ensure_future(self._context.read())
        read.add_done_callback(forget_failure)
        seconds = self._limits.message_seconds_max
        await asyncio.wait({read}, timeout=seconds)
        if not read.done():
            text = f"the first message did not arrive within {seconds:g} s"
            raise CommandError(ErrorCode.REQUEST_TIMED_OUT, text)
        return read.result()

    def _watch_idleness(self) -> None:
        """End the stream once it has been idle for too long, else schedule the next check."""
        most = self._limits.stream_idle_seconds_max
        if not most:
            return
        if self._idle_timer is None or self._outgoing.owed or self._outgoing.waiting:
            self._last_message_at = self._loop.time()
        due = self._last_message_at + most
        if self._loop.time() < due:
            self._idle_timer = self._loop.call_at(due, self._watch_idleness)
            return
        text = f"no message arrived within {most:g} s; open a new stream to continue"
        self._begin_end(CommandError(ErrorCode.REQUEST_TIMED_OUT, text))

    def _begin_end(self, why: QuorateError) -> None:
        if self._end is None:
            self._end = asyncio.create_task(self._end_with(why))

    async def _end_with(self, why: QuorateError) -> None:
        """End the stream from this side, after the answers that are ready."""
        await self._outgoing.drain()
        # Done here, because the reader cannot be interrupted: its read ends with the call.
        self._is_ending = True
        self._outgoing.close()
        await fail(self._context, self.name, why, self._cluster_id)
