"""The outgoing answers of one stream: batched into messages, and written without a task.

Answers that are ready within one turn of the event loop leave as one message. If no request remains
unanswered, the message leaves within that turn, because no further answer can join it. On a busy
read stream it may wait for answers to queries that are about to come (``answer_gathering``).

Invariant: a message holds answers of at most ``GATHERED_BYTES_MAX`` plus one answer. Only the sizes
that ``settle`` gets count.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, Generic, TypeVar

from quorate.services.answer_gathering import HOLD_SECONDS_MAX, AnswerGathering
from quorum.transport.eager import begin
from quorum.v1.metadata_pb2 import ReadStreamResponse, WriteStreamResponse

AnswersT = TypeVar("AnswersT", bound=WriteStreamResponse | ReadStreamResponse)
GATHERED_BYTES_MAX: Final = 256 << 10
"""Answers of this many bytes leave in one message; further answers follow in the next."""
FULL_MESSAGES_MAX: Final = 2
"""Full messages waiting to be written; at this limit a stream adds no answers that can wait."""


class OutgoingAnswers(Generic[AnswersT]):
    """Batches and sends the answers of one call. Used on the event loop only.

    Invariant: at most one write is in progress. It is never cancelled (quorum/transport/DESIGN.md).
    """

    def __init__(
        self,
        write: Callable[[AnswersT], Coroutine[Any, Any, None]],
        message_type: type[AnswersT],
        on_progress: Callable[[], None] | None = None,
        gathering: AnswerGathering | None = None,
    ) -> None:
        """``on_progress`` is called whenever a write has ended and the next one has begun.

        ``gathering`` decides about answers while ``may_hold``.
        """
        self._write = write
        self._message_type = message_type
        self._on_progress = on_progress
        self._gathering = gathering
        self.may_hold = False
        """Whether the answers being added may wait for further ones."""
        self._held: asyncio.TimerHandle | None = None
        self.message = message_type()
        """The message to add answers to; sent after the full ones."""
        self._message_bytes = 0
        self._full: deque[AnswersT] = deque()
        self._has_greeting = False
        self.owed = 0
        """Requests that were read and have no answer in a message yet."""
        self._is_writing = False
        self._is_due = False
        self._is_closed = False
        self._failure: BaseException | None = None
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def waiting(self) -> int:
        """Return the number of answers that are not being written yet."""
        return len(self.message.answers) + sum(len(full.answers) for full in self._full)

    @property
    def has_room(self) -> bool:
        """Return whether fewer than ``FULL_MESSAGES_MAX`` full messages wait to be written."""
        return len(self._full) < FULL_MESSAGES_MAX

    def greet(self) -> None:
        """Send ``message`` even if it contains no answer."""
        self._has_greeting = True
        self.send_soon()

    def settle(self, size: int = 0, *, answers: int = 1) -> bool:
        """Record that ``message`` now contains more pending answers, of ``size`` bytes.

        ``size`` may be left out of answers of a few bytes.

        Returns:
            Whether that made the message full. ``message`` is then another one.
        """
        self._message_bytes += size
        is_full = self._message_bytes >= GATHERED_BYTES_MAX
        if is_full:
            # It contains the greeting, if there is one.
            self._full.append(self.message)
            self._begin_message()
        self.owed -= answers
        if self.owed:
            self.send_soon()
        elif (
            self.may_hold
            and self._gathering
            and not is_full
            and self._gathering.holds(len(self.message.answers))
        ):
            self._hold()
        else:
            self.send_now()
        return is_full

    def _begin_message(self) -> None:
        self.message, self._message_bytes = self._message_type(), 0
        self._has_greeting = False

    def send_soon(self) -> None:
        """Send ``message`` with everything that is added to it in this turn."""
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._send_due)

    def _hold(self) -> None:
        self._is_due = False
        if self._held is None:
            loop = asyncio.get_running_loop()
            self._held = loop.call_later(HOLD_SECONDS_MAX, self._send_held)

    def _send_held(self) -> None:
        self._held = None
        if self._gathering is not None:
            self._gathering.timed_out(len(self.message.answers))
        self.send_now()

    def send_now(self) -> None:
        """Send ``message`` now, or as soon as the current write has ended."""
        while not (self._is_writing or self._is_closed) and self._has_something:
            if self._full:
                message = self._full.popleft()
            else:
                message = self.message
                self._begin_message()
            if self._gathering is not None:
                self._sent(len(message.answers))
            self._is_writing = True
            try:
                has_ended = begin(self._write(message), self._written)
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - raised to waiters
                self._fail(error)
                break
            if not has_ended:
                break
            self._is_writing = False
        if self._waiters:
            self._notify()

    def _sent(self, answers: int) -> None:
        if self._held is not None:
            self._held.cancel()
            self._held = None
        if self._gathering is not None:
            self._gathering.sent(answers)

    async def wait_below(self, most: int) -> None:
        """Return once at most ``most`` answers are ``waiting``, or the stream is over.

        Raises:
            BaseException: The error of a write; nothing more is written.
        """
        await self.wait_until(lambda: self.waiting <= most)

    async def wait_until(self, is_so: Callable[[], bool]) -> None:
        """Return once ``is_so`` is true, checked after each write, or the stream is over.

        Raises:
            BaseException: The error of a write; nothing more is written.
        """
        while not is_so() and not self._is_over:
            await self._next_progress()

    async def drain(self) -> None:
        """Return once all messages were written, or the stream is over.

        Raises:
            BaseException: The error of a write; nothing more is written.
        """
        while (self._is_writing or self._has_something) and not self._is_over:
            await self._next_progress()

    async def finish(self) -> None:
        """Return once every request is answered and written, or the stream is over.

        Raises:
            BaseException: The error of a write; nothing more is written.
        """
        while (self.owed or self._is_writing or self._has_something) and not self._is_over:
            await self._next_progress()

    def close(self) -> None:
        """Mark the stream as over: begin no more writes and wake every waiting caller."""
        self._is_closed = True
        self._notify()

    @property
    def _is_over(self) -> bool:
        # ``_next_progress`` raises the failure for a caller that waits for a failed write.
        return self._is_closed and self._failure is None

    @property
    def _has_something(self) -> bool:
        return bool(self.message.answers) or bool(self._full) or self._has_greeting

    def _send_due(self) -> None:
        if self._is_due:
            self._is_due = False
            self.send_now()

    def _written(self, error: BaseException | None) -> None:
        self._is_writing = False
        if error is not None:
            self._fail(error)
        if self._held is None or self._full:
            self.send_now()
        else:
            # Answers that are held wait for others, not for the write before.
            self._notify()
        if self._on_progress is not None:
            self._on_progress()

    def _fail(self, error: BaseException) -> None:
        self._failure = error
        self.close()

    async def _next_progress(self) -> None:
        if self._failure is None:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        if self._failure is not None:
            raise self._failure

    def _notify(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
