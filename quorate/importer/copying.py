"""Copies steps over one write stream: many in flight, all in order.

Commands without a producer are evaluated in the order in which a stream carries them, and the
cluster accepts a range of the source only if it begins where the one before ended. So nothing can
be left out or applied twice: after any failure the next run asks for the import's position and
continues there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator

import grpc

from quorate.client.errors import RefusedError
from quorate.client.limits import COMMAND_BYTES_MAX, MESSAGE_BYTES_MAX
from quorate.client.pending import AnswerClass, classify_answer
from quorate.client.search import CALL_ERRORS, StreamCall
from quorate.importer.plan import Step
from quorum.v1 import common_pb2
from quorum.v1.commands_pb2 import Command, ImportBatch, SourcePosition
from quorum.v1.metadata_pb2 import WriteAnswer, WriteStreamRequest
from statemachine import import_state

COMMANDS_OPEN_MAX = 512
"""Most commands sent and not yet answered."""
BYTES_OPEN_MAX = 4 << 20
COMMANDS_PER_MESSAGE = 128

OnCopied = Callable[[Step], None]


class InterruptedCopyError(Exception):
    """A stream ended before its steps did; only the cluster knows which of them were applied."""


class StreamCopy:
    """One attempt: sends steps on an accepted stream until all are answered.

    ``on_copied`` is called for each step once the cluster has it, in order.
    """

    def __init__(
        self, call: StreamCall, make: Callable[[Step], ImportBatch], on_copied: OnCopied
    ) -> None:
        self._call = call
        self._make = make
        self._on_copied = on_copied
        self._open: deque[tuple[Step, int]] = deque()
        self._open_bytes = 0
        self._tag = 0
        self._answered = 0
        self._has_room = asyncio.Event()

    async def run(self, steps: Iterator[Step]) -> None:
        """Copy all of them.

        Raises:
            RefusedError: The cluster does not take one; none behind it was applied.
            InterruptedCopyError: The stream broke or its node no longer leads.
            Exception: Whatever ``steps`` raises, at once.
        """
        sending = asyncio.create_task(self._send(steps), name="import-send")
        receiving = asyncio.create_task(self._receive(sending), name="import-receive")
        try:
            await asyncio.wait((sending, receiving), return_when=asyncio.FIRST_EXCEPTION)
            if sending.done() and not isinstance(sending.exception(), CALL_ERRORS):
                # Without this, the error of a source that cannot be read would be lost.
                await sending
            # The answers that still arrive on a broken call say more than a failed write.
            await receiving
        finally:
            sending.cancel()
            receiving.cancel()
            await asyncio.gather(sending, receiving, return_exceptions=True)

    async def _send(self, steps: Iterator[Step]) -> None:
        step = next(steps, None)
        while step is not None:
            while len(self._open) >= COMMANDS_OPEN_MAX or self._open_bytes >= BYTES_OPEN_MAX:
                self._has_room.clear()
                await self._has_room.wait()
            request = WriteStreamRequest()
            group = request.groups.add()
            size = 0
            while (
                step is not None and len(group.commands) < COMMANDS_PER_MESSAGE
            ) and size < COMMAND_BYTES_MAX:
                batch = self._make(step)
                # A large one is sent alone: together they could exceed the bound of a message.
                if size and size + batch.ByteSize() > COMMAND_BYTES_MAX:
                    break
                self._tag += 1
                group.commands.append(Command(tag=self._tag, import_batch=batch))
                size += batch.ByteSize()
                self._open.append((step, batch.ByteSize()))
                self._open_bytes += batch.ByteSize()
                step = next(steps, None)
            await self._call.write(request)
        await self._call.done_writing()

    async def _receive(self, sending: asyncio.Task[None]) -> None:
        try:
            while True:
                response = await self._call.read()
                if response is grpc.aio.EOF:
                    break
                for answer in response.answers:
                    self._take(answer)
            await sending
        except CALL_ERRORS as error:
            if "larger than max" in str(error):
                raise RefusedError(
                    common_pb2.ERROR_CODE_MESSAGE_TOO_LARGE,
                    "a batch of the source is larger than the nodes take; set "
                    f"limits.client_message_bytes_max = {MESSAGE_BYTES_MAX} on all of them",
                ) from error
            raise InterruptedCopyError(str(error)) from error
        if self._open:
            raise InterruptedCopyError(f"{len(self._open)} commands were not answered")

    def _take(self, answer: WriteAnswer) -> None:
        if answer.error_code != common_pb2.ERROR_CODE_NONE:
            if classify_answer(answer.error_code) is AnswerClass.REFUSED:
                raise RefusedError(answer.error_code, answer.message)
            raise InterruptedCopyError(answer.message)
        self._answered += 1
        if answer.tag != self._answered:
            raise InterruptedCopyError(f"answer {answer.tag} where {self._answered} is due")
        step, size = self._open.popleft()
        self._open_bytes -= size
        self._has_room.set()
        self._on_copied(step)


def wire_position(position: import_state.SourcePosition) -> SourcePosition:
    """Return the wire message of a position."""
    return SourcePosition(is_in_checkpoint=not position.is_in_log, offset=position.offset)


def from_wire(position: SourcePosition) -> import_state.SourcePosition:
    """The reverse of ``wire_position``."""
    return import_state.SourcePosition(not position.is_in_checkpoint, position.offset)
