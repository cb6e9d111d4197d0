"""Sends commands of many tasks over one stream; each is applied at most once.

A command waits for a producer session, gets its sequence number there and is sent. If its stream
breaks, or the answer is an unknown outcome, it is sent again to the current leader, under the same
number. It ends with an answer, or at its deadline with an error: never sent, or outcome unknown.

See: KIP-360; ADR 10 and 42; docs/reference/client-protocol.md (Idempotence).
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from itertools import count

from quorate.client.channels import Nodes
from quorate.client.errors import ClientError, RefusedError
from quorate.client.limits import (
    COMMAND_BYTES_MAX,
    COMMANDS_PER_MESSAGE_MAX,
    COMMANDS_PER_STREAM_MAX,
)
from quorate.client.open_commands import OpenCommands
from quorate.client.outgoing_commands import OutgoingCommands
from quorate.client.pending import (
    AnswerClass,
    Applied,
    Pending,
    classify_answer,
    is_dry_run,
)
from quorate.client.producer_requests import ProducerRequests
from quorate.client.producer_sessions import ProducerSessions
from quorate.client.results.commands import InitProducerIdResult
from quorate.client.search import LeaderSearch
from quorate.client.single_producer import SingleProducer
from quorate.client.stream import LiveStream
from quorum.v1 import common_pb2
from quorum.v1.commands_pb2 import Command
from quorum.v1.metadata_pb2 import (
    WriteAnswer,
    WriterIdentity,
    WriteStreamRequest,
    WriteStreamResponse,
)

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
        producers: ProducerSessions[Pending],
    ) -> None:
        self._nodes = nodes
        self._identity = identity
        self._stall_seconds = stall_seconds
        self._rng = rng
        self._loop = asyncio.get_running_loop()
        self._producer_sessions = producers
        self._met = 0
        self._open = OpenCommands(producers)
        self._requests = ProducerRequests(producers, self._open)
        self._tags = count(1)
        self._orders = count(1)
        self._stream: LiveStream[WriteStreamRequest] | None = None
        self._search: asyncio.Task[None] | None = None
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._last_contact_at = 0.0
        self._avoid: str | None = None
        self._is_closed = False

    @property
    def is_in_doubt(self) -> bool:
        """Whether a command was sent that no answer came to; also one that was given up."""
        return self._open.is_in_doubt

    def submit(self, command: Command, timeout_seconds: float) -> asyncio.Future[Applied]:
        """Send a command; its ``tag`` and ``sequence`` are set here.

        The future ends with the answer or with ``RefusedError``, ``OutcomeUnknownError``,
        ``UnavailableError`` or ``PrecedingWriteFailedError``. Cancelling it gives the command up;
        it may still be applied. Of an ordered client it is sent nevertheless.

        Raises:
            ClientError: The client is closed, or too many commands wait already; RefusedError
                when the command is larger than any server takes.
        """
        if self._is_closed:
            raise ClientError("the client is closed")
        producers = self._producer_sessions
        self._open.check_size(command)
        if len(self._open.fresh) >= PENDING_COMMANDS_MAX:
            raise ClientError(f"{len(self._open.fresh)} commands wait already")
        if (error := self._open.ended_already(command)) is not None:
            done: asyncio.Future[Applied] = self._loop.create_future()
            done.set_exception(error)
            return done
        has_number = not (producers.is_ordered and is_dry_run(command))
        return self._submit(command, timeout_seconds, has_number=has_number)

    def _submit(
        self, command: Command, timeout_seconds: float, *, has_number: bool, is_first: bool = False
    ) -> asyncio.Future[Applied]:
        done: asyncio.Future[Applied] = self._loop.create_future()
        deadline = self._loop.time() + timeout_seconds
        size, order = command.ByteSize(), next(self._orders)
        pending = Pending(command, done, deadline, size, order=order, has_number=has_number)
        self._requests.presume(pending, self._loop.time())
        if is_first:
            # Writes that wait for the producer do not stop the request for it.
            self._open.fresh.appendleft(pending)
        else:
            self._open.fresh.append(pending)
        self._move()
        return done

    async def begin_epoch(self, timeout_seconds: float) -> None:
        """Take the name, or go on after a failed write when all earlier writes have ended.

        Raises:
            ClientError: The client is neither named nor ordered; or as ``submit``.
        """
        producers = self._producer_sessions
        if not isinstance(producers, SingleProducer):
            raise ClientError("only a named or an ordered client begins epochs")
        if producers.failure is not None:
            earlier = [each.done for each in self._open.all() if not each.done.done()]
            if earlier:
                await asyncio.wait(earlier)
            self._open.end_epoch()
            producers.begin_epoch()
        producers.forgotten = None
        if not producers.wants_name:
            return
        if producers.opening:
            raise ClientError("a write takes the name already: begin the epoch before it")
        producers.opening += 1
        try:
            command = Command(init_producer_id=producers.request())
            done = self._submit(command, timeout_seconds, has_number=False, is_first=True)
            self._requests.received((await done).yielded(InitProducerIdResult))
            self._move()
        except RefusedError as refusal:
            raise producers.init_refused(refusal) from None
        finally:
            producers.opening -= 1

    async def close(self) -> None:
        """End all commands: those sent end as unknown, the rest as never sent.

        The futures end at once; then the stream is ended in order, which may take as long as
        ``LiveStream.end`` says.
        """
        self._is_closed = True
        for timer in (self._sweep_timer, self._search):
            if timer is not None:
                timer.cancel()
        for pending in list(self._open.all()):
            self._open.give_up(pending, "the client was closed")
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.end()

    def _move(self) -> None:
        """Wake the stream, or start the search for one."""
        if self._is_closed:
            return  # A pause after a refusal may end later than the writer.
        if self._sweep_timer is None:
            self._sweep_timer = self._loop.call_later(SWEEP_SECONDS, self._sweep)
        stream = self._stream
        if stream is not None and self._met == self._nodes.newest_incarnation.number:
            stream.wake()
        elif stream is not None:
            # It may be a former voter's: the node that accepted it knew of no newer log.
            self._drop_stream(stream)
        elif self._search is None:
            self._search = self._loop.create_task(self._find_stream())

    async def _find_stream(self) -> None:
        search = LeaderSearch(self._nodes, self._identity, rng=self._rng, avoid=self._avoid)
        try:
            found = await search.find()
        except RefusedError as denial:
            for pending in (*self._open.fresh, *self._open.again):
                self._open.give_up(pending, str(denial), unsent=denial)
            return
        finally:
            if self._search is asyncio.current_task():
                self._search = None
        self._avoid = None
        self._met = found.met
        self._requests.window = max(1, found.accepted.producer_window)
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
        request = OutgoingCommands(is_ordered=self._producer_sessions.is_ordered)
        if not self._open.sent:
            self._last_contact_at = self._loop.time()
        room = min(COMMANDS_PER_MESSAGE_MAX, COMMANDS_PER_STREAM_MAX - len(self._open.sent))
        # Tags, numbers and groups are added to the commands' own sizes, within the framing.
        size = COMMAND_BYTES_MAX
        while self._open.again and room > 0 and (not request or self._open.again[0].size <= size):
            pending = self._open.again.popleft()
            if self._open.is_over(pending):
                self._open.forget(pending)
                continue
            self._put(request, pending)
            room -= 1
            size -= pending.size
        producer_session, is_producer_missing = None, False
        while self._open.fresh and room > 0 and (not request or self._open.fresh[0].size <= size):
            if self._open.fresh[0].done.done():
                # It needs no producer, and what is behind it must not wait for one.
                self._open.fresh.popleft()
                continue
            if self._open.fresh[0].has_number and not (
                producer_session is not None and producer_session.has_room
            ):
                producer_session = self._producer_sessions.with_room()
                if producer_session is None:
                    is_producer_missing = True
                    break
            pending = self._open.fresh.popleft()
            if pending.has_number and producer_session is not None:
                pending.producer_session = producer_session
                pending.command.sequence = producer_session.admit(pending)
            self._put(request, pending)
            room -= 1
            size -= pending.size
        if is_producer_missing:
            for each in self._requests.missing(self._loop):
                self._put(request, each)
        return request.request if request else None

    def _put(self, request: OutgoingCommands, pending: Pending) -> None:
        tag = next(self._tags)
        request.add(pending, tag)
        self._open.sent[tag] = pending

    # ------------------------------------------------------------------ answers

    def _on_answers(self, response: WriteStreamResponse) -> None:
        self._last_contact_at = self._loop.time()
        is_redirected = False
        for answer in response.answers:
            pending = self._open.sent.pop(answer.tag, None)
            if pending is None:
                continue
            if pending.is_init:
                pending.done.cancel()
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
                self._open.again.append(pending)
            else:
                self._on_refusal(pending, answer_class, answer)
        stream = self._stream
        if stream is None:
            return
        if is_redirected:
            self._avoid = stream.address
            self._drop_stream(stream)
        elif self._open.fresh or self._open.again:
            stream.wake()

    def _settle(self, pending: Pending, answer: WriteAnswer) -> None:
        if pending.is_init:
            self._producer_sessions.opening -= 1
            self._requests.received(InitProducerIdResult.of(answer.result.init_producer_id))
            return
        self._open.release(pending)
        if pending.denial is not None:
            self._requests.end_dry_run(pending, None, self._loop.time())
        elif not pending.done.done():
            pending.done.set_result(Applied.of(answer))

    def _on_init_refused(self, answer_class: AnswerClass, answer: WriteAnswer) -> None:
        self._producer_sessions.opening -= 1
        if answer_class is AnswerClass.OVERLOADED:
            self._loop.call_later(REFUSED_PAUSE_SECONDS, self._move)
        elif answer_class is not AnswerClass.REDIRECTED:
            producers = self._producer_sessions
            refusal = producers.init_refused(producers.refusal(None, answer))
            self._requests.refused(refusal, self._loop.time())

    def _on_refusal(self, pending: Pending, answer_class: AnswerClass, answer: WriteAnswer) -> None:
        session, producers = pending.producer_session, self._producer_sessions
        is_hole = producers.is_hole(answer.error_code, was_oldest=pending.was_oldest)
        if answer_class is AnswerClass.OVERLOADED and not is_hole:
            self._open.pausing[answer.tag] = pending
            self._loop.call_later(REFUSED_PAUSE_SECONDS, self._end_pause, answer.tag)
            return
        refusal = producers.refusal(session, answer)
        self._open.release(pending)
        if pending.denial is not None:
            self._requests.end_dry_run(pending, refusal, self._loop.time())
        elif answer_class is not AnswerClass.PRODUCER_GONE or session is None:
            self._open.fail(pending, refusal)
        elif answer.HasField("producer") and answer.producer.producer_id != session.producer_id:
            # It is about another producer, which the command itself names.
            self._open.fail(pending, refusal)
        else:
            self._open.lose_producer(pending, session, refusal)

    def _end_pause(self, tag: int) -> None:
        pending = self._open.pausing.pop(tag, None)
        if pending is not None and not self._is_closed:
            self._open.again.append(pending)
            self._move()

    # ------------------------------------------------------------------ loss and deadlines

    def _on_lost(self, stream: LiveStream[WriteStreamRequest], _why: BaseException | None) -> None:
        if stream is self._stream:
            self._drop_stream(stream)

    def _drop_stream(self, stream: LiveStream[WriteStreamRequest]) -> None:
        """Leave this stream; what it has not answered goes to the next one, oldest first."""
        self._stream = None
        stream.close()
        sent = [pending for pending in self._open.sent.values() if not pending.is_init]
        for pending in self._open.sent.values():
            if pending.is_init:
                pending.done.cancel()
                self._producer_sessions.opening -= 1
        # In the order of their numbers: a command is refused until all older open ones are done.
        self._open.again = deque(
            sorted([*sent, *self._open.again], key=lambda pending: pending.command.sequence)
        )
        self._open.sent.clear()
        if self._open.again or self._open.fresh:
            self._move()

    def _sweep(self) -> None:
        """End commands past their deadline, and leave a stream that is silent."""
        self._sweep_timer = None
        now = self._loop.time()
        pending_count = 0
        for pending in list(self._open.all()):
            if self._open.is_over(pending):
                self._open.forget(pending)
            elif pending.deadline <= now:
                self._open.give_up(pending, f"no answer before the deadline{self._nodes.lack}")
            else:
                pending_count += 1
        if pending_count == 0:
            self._open.fresh.clear()
            self._open.again.clear()
            if self._search is not None:
                self._search.cancel()
                self._search = None
            return
        stream = self._stream
        if (
            stream is not None
            and self._open.sent
            and now - self._last_contact_at > self._stall_seconds
        ):
            self._avoid = stream.address
            self._drop_stream(stream)
        elif stream is not None and (self._open.fresh or self._open.again):
            # A command that was given up leaves room in its session.
            stream.wake()
        if self._sweep_timer is None:
            delay = SWEEP_SECONDS + pending_count * SWEEP_SECONDS_PER_COMMAND
            self._sweep_timer = self._loop.call_later(delay, self._sweep)
