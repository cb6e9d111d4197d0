"""Sends commands of many tasks over one stream; each is applied at most once.

A command waits for a producer session, gets its sequence number there and is sent. If its stream
breaks, or the answer is an unknown outcome, it is sent again to the current leader, under the same
number. It ends with an answer, or at its deadline with an error: never sent, or outcome unknown.

Invariant: a command is in exactly one of ``_fresh`` (no number yet), ``_again`` (to be sent
again), ``_sent`` (on the current stream), waiting for its pause to end, or done.

See: KIP-360; ADR 10 and 42; docs/reference/client-protocol.md (Idempotence).
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Iterable
from itertools import count

from quorate.client.channels import Nodes
from quorate.client.errors import (
    ClientError,
    OutcomeUnknownError,
    RefusedError,
    UnavailableError,
    code_name,
    refused,
)
from quorate.client.limits import (
    COMMAND_BYTES_MAX,
    COMMANDS_PER_MESSAGE_MAX,
    COMMANDS_PER_STREAM_MAX,
)
from quorate.client.pending import (
    AnswerClass,
    Applied,
    Pending,
    PendingProducerSession,
    classify_answer,
)
from quorate.client.producer_sessions import ProducerSession, ProducerSessions
from quorate.client.search import LeaderSearch
from quorate.client.stream import LiveStream
from quorum.v1 import common_pb2
from quorum.v1.commands_pb2 import Command, InitProducerId
from quorum.v1.metadata_pb2 import (
    ProducerCommands,
    WriteAnswer,
    WriterIdentity,
    WriteStreamRequest,
    WriteStreamResponse,
)

PRODUCER_SESSIONS_MAX = 64
"""Most producers of one client: with 32 commands each, 2048 writers at a time."""
PENDING_COMMANDS_MAX = 100_000
"""Most commands that wait in one client."""
SWEEP_SECONDS = 0.02
"""How often deadlines are looked at while commands are pending."""
SWEEP_SECONDS_PER_COMMAND = 10e-6
"""Added, in seconds, for each pending command, so that the check costs at most a few per cent."""
REFUSED_PAUSE_SECONDS = 0.02
"""Pause before a command is sent again that the leader had no room for."""


class Writer:
    """The write side of one client. Lives on the event loop it was made on."""

    def __init__(
        self,
        nodes: Nodes,
        identity: WriterIdentity,
        *,
        stall_seconds: float,
        rng: random.Random,
        producer_sessions_max: int = PRODUCER_SESSIONS_MAX,
    ) -> None:
        self._nodes = nodes
        self._identity = identity
        self._stall_seconds = stall_seconds
        self._rng = rng
        self._loop = asyncio.get_running_loop()
        self._producer_sessions: ProducerSessions[Pending] = ProducerSessions(
            producer_sessions_max=producer_sessions_max
        )
        self._window = 1
        self._fresh: deque[Pending] = deque()
        self._again: deque[Pending] = deque()
        self._sent: dict[int, Pending] = {}
        self._pausing: dict[int, Pending] = {}
        self._tags = count(1)
        self._stream: LiveStream[WriteStreamRequest] | None = None
        self._search: asyncio.Task[None] | None = None
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._last_contact_at = 0.0
        self._avoid: str | None = None
        self._is_closed = False

    def submit(self, command: Command, timeout_seconds: float) -> asyncio.Future[Applied]:
        """Send a command; its ``tag`` and ``sequence`` are set here.

        The future ends with the answer or with ``RefusedError``, ``OutcomeUnknownError`` or
        ``UnavailableError``. Cancelling it gives the command up; it may still be applied.

        Raises:
            ClientError: The client is closed, or too many commands wait already; RefusedError
                when the command is larger than any server takes.
        """
        if self._is_closed:
            raise ClientError("the client is closed")
        size = command.ByteSize()
        if size > COMMAND_BYTES_MAX:
            code = common_pb2.ERROR_CODE_MESSAGE_TOO_LARGE
            raise RefusedError(code, f"{size} bytes in one command, more than {COMMAND_BYTES_MAX}")
        if len(self._fresh) >= PENDING_COMMANDS_MAX:
            raise ClientError(f"{len(self._fresh)} commands wait already")
        done: asyncio.Future[Applied] = self._loop.create_future()
        deadline = self._loop.time() + timeout_seconds
        self._fresh.append(Pending(command, done, deadline, size, is_init=False))
        self._move()
        return done

    async def close(self) -> None:
        """End all commands: those sent end as unknown, the rest as never sent.

        The futures end at once; then the stream is ended in order, which may take as long as
        ``LiveStream.end`` says.
        """
        self._is_closed = True
        for timer in (self._sweep_timer, self._search):
            if timer is not None:
                timer.cancel()
        for pending in list(self._all_pending()):
            self._give_up(pending, "the client was closed")
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.end()

    def _move(self) -> None:
        """Wake the stream, or start the search for one."""
        if self._is_closed:
            # A pause after a refusal may end later than the writer.
            return
        if self._sweep_timer is None:
            self._sweep_timer = self._loop.call_later(SWEEP_SECONDS, self._sweep)
        if self._stream is not None:
            self._stream.wake()
        elif self._search is None:
            self._search = self._loop.create_task(self._find_stream())

    async def _find_stream(self) -> None:
        search = LeaderSearch(self._nodes, self._identity, rng=self._rng, avoid=self._avoid)
        try:
            found = await search.find()
        except RefusedError as denial:
            for pending in (*self._fresh, *self._again):
                self._give_up(pending, str(denial), unsent=denial)
            return
        finally:
            if self._search is asyncio.current_task():
                self._search = None
        self._avoid = None
        self._window = max(1, found.accepted.producer_window)
        self._last_contact_at = self._loop.time()
        self._stream = LiveStream(
            found.address,
            found.call,
            found.tasks,
            take=self._take,
            on_answers=self._on_answers,
            on_lost=self._on_lost,
        )

    # ------------------------------------------------------------------ sending

    def _take(self) -> WriteStreamRequest | None:
        """The next message: repeats first, then new commands as far as sessions have room."""
        request = WriteStreamRequest()
        groups: dict[PendingProducerSession | None, ProducerCommands] = {}
        if not self._sent:
            self._last_contact_at = self._loop.time()
        room = min(COMMANDS_PER_MESSAGE_MAX, COMMANDS_PER_STREAM_MAX - len(self._sent))
        # Tags, numbers and groups are added to the commands' own sizes, within the framing.
        size = COMMAND_BYTES_MAX
        while self._again and room > 0 and (not groups or self._again[0].size <= size):
            pending = self._again.popleft()
            if pending.done.done():
                self._release(pending)
                continue
            self._put(request, groups, pending)
            room -= 1
            size -= pending.size
        producer_session = None
        while self._fresh and room > 0 and (not groups or self._fresh[0].size <= size):
            if producer_session is None or not producer_session.has_room:
                producer_session = self._producer_sessions.with_room()
                if producer_session is None:
                    break
            pending = self._fresh.popleft()
            if pending.done.done():
                continue
            pending.producer_session = producer_session
            pending.command.sequence = producer_session.admit(pending)
            self._put(request, groups, pending)
            room -= 1
            size -= pending.size
        if self._fresh and producer_session is None and room > 0:
            for _ in range(self._producer_sessions.wanted(len(self._fresh), self._window)):
                self._put(request, groups, self._new_init())
        return request if groups else None

    def _put(
        self,
        request: WriteStreamRequest,
        groups: dict[PendingProducerSession | None, ProducerCommands],
        pending: Pending,
    ) -> None:
        producer_session = pending.producer_session
        group = groups.get(producer_session)
        if group is None:
            if producer_session is None:
                group = request.groups.add()
            else:
                group = request.groups.add(
                    producer_id=producer_session.producer_id,
                    producer_epoch=producer_session.producer_epoch,
                    oldest_open=producer_session.oldest_open,
                )
            groups[producer_session] = group
        tag = next(self._tags)
        pending.command.tag = tag
        pending.attempts += 1
        pending.command.is_repeat = pending.attempts > 1
        self._sent[tag] = pending
        group.commands.append(pending.command)

    def _new_init(self) -> Pending:
        self._producer_sessions.opening += 1
        done: asyncio.Future[Applied] = self._loop.create_future()
        command = Command(init_producer_id=InitProducerId())
        return Pending(command, done, float("inf"), 0, is_init=True)

    # ------------------------------------------------------------------ answers

    def _on_answers(self, response: WriteStreamResponse) -> None:
        self._last_contact_at = self._loop.time()
        is_redirected = False
        for answer in response.answers:
            pending = self._sent.pop(answer.tag, None)
            if pending is None:
                continue
            if answer.error_code == common_pb2.ERROR_CODE_NONE:
                self._settle(pending, answer)
                continue
            answer_class = classify_answer(answer.error_code)
            if answer_class is AnswerClass.REDIRECTED:
                is_redirected = True
                self._nodes.learn(answer.leader if answer.HasField("leader") else None)
            if pending.is_init:
                self._on_init_refused(answer_class, answer)
            elif answer_class is AnswerClass.REDIRECTED:
                self._again.append(pending)
            else:
                self._on_refusal(pending, answer_class, answer)
        stream = self._stream
        if stream is None:
            return
        if is_redirected:
            self._avoid = stream.address
            self._drop_stream(stream)
        elif self._fresh or self._again:
            stream.wake()

    def _settle(self, pending: Pending, answer: WriteAnswer) -> None:
        if pending.is_init:
            result = answer.result.init_producer_id
            self._producer_sessions.opening -= 1
            self._producer_sessions.add(
                ProducerSession(result.producer_id, result.producer_epoch, window=self._window)
            )
            return
        self._release(pending)
        if not pending.done.done():
            pending.done.set_result(Applied(answer.offset, answer.epoch, answer.result))

    def _on_init_refused(self, answer_class: AnswerClass, answer: WriteAnswer) -> None:
        self._producer_sessions.opening -= 1
        if answer_class is AnswerClass.OVERLOADED:
            self._loop.call_later(REFUSED_PAUSE_SECONDS, self._move)
        elif answer_class is not AnswerClass.REDIRECTED:
            for waiting in self._fresh:
                self._fail(waiting, refused(answer.error_code, answer.message))
            self._fresh.clear()

    def _on_refusal(self, pending: Pending, answer_class: AnswerClass, answer: WriteAnswer) -> None:
        if answer_class is AnswerClass.OVERLOADED:
            self._pausing[answer.tag] = pending
            self._loop.call_later(REFUSED_PAUSE_SECONDS, self._end_pause, answer.tag)
            return
        self._release(pending)
        if answer_class is AnswerClass.REFUSED:
            self._fail(pending, refused(answer.error_code, answer.message))
        elif pending.producer_session is not None:
            self._producer_sessions.retire(pending.producer_session)
            if pending.attempts > 1:
                text = f"{code_name(answer.error_code)}: {answer.message}"
                self._fail(pending, OutcomeUnknownError(f"the producer is gone: {text}"))
                return
            # Sent once and refused: it certainly was not applied under the lost number.
            pending.producer_session = None
            pending.attempts = 0
            self._fresh.appendleft(pending)

    def _end_pause(self, tag: int) -> None:
        pending = self._pausing.pop(tag, None)
        if pending is not None and not self._is_closed:
            self._again.append(pending)
            self._move()

    def _release(self, pending: Pending) -> None:
        if pending.producer_session is not None:
            pending.producer_session.settle(pending.command.sequence)

    def _fail(self, pending: Pending, error: ClientError) -> None:
        if not pending.done.done():
            pending.done.set_exception(error)

    # ------------------------------------------------------------------ loss and deadlines

    def _on_lost(self, stream: LiveStream[WriteStreamRequest], _why: BaseException | None) -> None:
        if stream is self._stream:
            self._drop_stream(stream)

    def _drop_stream(self, stream: LiveStream[WriteStreamRequest]) -> None:
        """Leave this stream; what it has not answered goes to the next one, oldest first."""
        self._stream = None
        stream.close()
        sent = [pending for pending in self._sent.values() if not pending.is_init]
        self._producer_sessions.opening -= len(self._sent) - len(sent)
        # In the order of their numbers: a command is refused until all older open ones are done.
        self._again = deque(
            sorted([*sent, *self._again], key=lambda pending: pending.command.sequence)
        )
        self._sent.clear()
        if self._again or self._fresh:
            self._move()

    def _sweep(self) -> None:
        """End commands past their deadline, and leave a stream that is silent."""
        self._sweep_timer = None
        now = self._loop.time()
        pending_count = 0
        for pending in list(self._all_pending()):
            if pending.done.done():
                self._forget(pending)
            elif pending.deadline <= now:
                self._give_up(pending, "no answer before the deadline")
            else:
                pending_count += 1
        if pending_count == 0:
            self._fresh.clear()
            self._again.clear()
            if self._search is not None:
                self._search.cancel()
                self._search = None
            return
        stream = self._stream
        if stream is not None and self._sent and now - self._last_contact_at > self._stall_seconds:
            self._avoid = stream.address
            self._drop_stream(stream)
        elif stream is not None and (self._fresh or self._again):
            # A command that was given up leaves room in its session.
            stream.wake()
        if self._sweep_timer is None:
            delay = SWEEP_SECONDS + pending_count * SWEEP_SECONDS_PER_COMMAND
            self._sweep_timer = self._loop.call_later(delay, self._sweep)

    def _all_pending(self) -> Iterable[Pending]:
        yield from self._fresh
        yield from self._again
        yield from self._pausing.values()
        yield from self._sent.values()

    def _give_up(self, pending: Pending, why: str, *, unsent: ClientError | None = None) -> None:
        self._forget(pending)
        if pending.attempts:
            error: ClientError = OutcomeUnknownError(f"{why}; the outcome is unknown")
        else:
            error = unsent or UnavailableError(f"{why}; the command was never sent")
        self._fail(pending, error)

    def _forget(self, pending: Pending) -> None:
        """Free the number of a command for its session. A late answer is ignored."""
        self._release(pending)
        self._sent.pop(pending.command.tag, None)
        self._pausing.pop(pending.command.tag, None)
