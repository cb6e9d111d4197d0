"""The read path over one stream: many queries of one client, answered at their read levels.

The linearizable queries of one message share one confirmation by the leader (ADR 9), and one wait
until this node has applied the confirmed offset. So many concurrent readers cost about one round
trip per message, not one per query.

Invariants:
    1. Every query that was read is answered exactly once, unless the stream is gone.
    2. A stream holds at most ``READS_PER_STREAM_MAX`` queries plus one message, and answers of
       about ``GATHERED_BYTES_MAX`` in each of a few messages. At the limit it stops reading.
    3. One turn of the event loop adds answers of at most ``GATHERED_BYTES_MAX`` plus one answer.

See: ADR 9; docs/reference/client-protocol.md (Reading).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from quorate.client.limits import (
    FRAMING_BYTES,
    MESSAGE_BYTES_MAX,
    READ_MESSAGE_BYTES_MAX,
    READS_PER_MESSAGE_MAX,
    READS_PER_STREAM_MAX,
)
from quorate.services.access import Access
from quorate.services.admission import ServiceLimits
from quorate.services.answer_gathering import AnswerGathering
from quorate.services.answers import name_refusal
from quorate.services.calls import Context
from quorate.services.closing import Closing
from quorate.services.errors import RequestRefusedError, code_of
from quorate.services.leadership import not_leader
from quorate.services.outgoing import GATHERED_BYTES_MAX, OutgoingAnswers
from quorate.services.ports import Cancel, ServedNode
from quorate.services.queries import ImageQueries
from quorate.services.reads import (
    AT_LEAST,
    LINEARIZABLE,
    LOCAL,
    UNSPECIFIED,
    WAIT_SECONDS_MAX,
    Reads,
    at_least_offset,
)
from quorate.services.stream_session import StreamSession
from quorum.answered import Form
from quorum.errors import CommandError, ErrorCode, QuorateError
from quorum.transport.callers import caller_of
from quorum.v1 import metadata_pb2
from quorum.v1.errors_pb2 import LeaderHint
from quorum.v1.metadata_pb2 import ReadOptions

_STREAM = "ReadStream"
_ANSWER_BYTES_MAX = MESSAGE_BYTES_MAX - GATHERED_BYTES_MAX - FRAMING_BYTES
"""Maximum size of a single answer, so that it fits in a message with others before it."""
_NO_OPTIONS = ReadOptions(level=-1)  # type: ignore[arg-type]  # an unknown level


@dataclass(slots=True, eq=False)
class _HeldQueries:
    """Queries of one message that wait for the same offset, or for its confirmation."""

    queries: Sequence[metadata_pb2.ReadQuery]
    seconds: float
    offset: int
    """The offset that the image must reach; -1 until the leader has confirmed one."""
    timer: asyncio.TimerHandle | None = None
    cancel: Cancel | None = None


class ReadSession(StreamSession[metadata_pb2.ReadStreamRequest, metadata_pb2.ReadStreamResponse]):
    """One client's read stream. Owned by its call; used on the event loop only."""

    name = _STREAM
    request_type = metadata_pb2.ReadStreamRequest

    def __init__(
        self,
        node: ServedNode,
        context: Context,
        limits: ServiceLimits,
        closing: Closing,
        reads: Reads,
        queries: ImageQueries,
        access: Access | None = None,
    ) -> None:
        response_type = metadata_pb2.ReadStreamResponse
        self._gathering = AnswerGathering()
        outgoing = OutgoingAnswers(
            context.write, response_type, self._answer_ready, self._gathering
        )
        super().__init__(context, limits, closing, node.cluster_id, outgoing)
        self._node = node
        self._reads = reads
        self._access = access
        self._caller = caller_of(context)
        self._answer_of: dict[str, Callable[..., None]] = {
            "list_topics": queries.list_topics,
            "describe_topics": queries.describe_topics,
            "describe_configs": queries.describe_configs,
        }
        self._ready: deque[metadata_pb2.ReadQuery] = deque()
        self._held: set[_HeldQueries] = set()
        self._is_going_on = False

    async def run(self) -> None:
        """Serve the stream; see ``StreamSession.run``."""
        try:
            await super().run()
        finally:
            self._ready.clear()
            for held in tuple(self._held):
                self._release(held)

    def _open(self, first: metadata_pb2.ReadStreamRequest) -> None:
        self._take(first)

    def _is_congested(self) -> bool:
        outgoing = self._outgoing
        # Refusals are owed no longer and yet wait to be written.
        is_full = not outgoing.has_room
        return bool(self._ready) or is_full or outgoing.owed > READS_PER_STREAM_MAX

    async def _decongest(self) -> None:
        await self._outgoing.wait_until(lambda: not self._is_congested())

    def _take(self, message: metadata_pb2.ReadStreamRequest) -> None:
        """Take the queries of one message.

        Raises:
            CommandError: As ``_group``; SASL_AUTHENTICATION_FAILED, the caller's token is not valid
                any more.
        """
        if self._access is not None:
            self._access.check_session(self._node.image)
        self._group(message)

    def _group(self, message: metadata_pb2.ReadStreamRequest) -> None:
        """Group the queries of one message by what they wait for; answer those that need not wait.

        Raises:
            CommandError: INVALID_REQUEST or MESSAGE_TOO_LARGE, the message violates a limit.
        """
        queries = message.queries
        if len(queries) > READS_PER_MESSAGE_MAX or message.max_wait_ms < 0:
            raise CommandError(
                ErrorCode.INVALID_REQUEST,
                f"{len(queries)} queries in one message, at most {READS_PER_MESSAGE_MAX}; "
                f"max_wait_ms {message.max_wait_ms}, at least 0",
            )
        if (size := message.ByteSize()) > READ_MESSAGE_BYTES_MAX:
            raise CommandError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"{size} bytes in one message, more than {READ_MESSAGE_BYTES_MAX}; "
                "send a large query as a unary call",
            )
        self._outgoing.owed += len(queries)
        unconfirmed: list[metadata_pb2.ReadQuery] = []
        by_offset: dict[int, list[metadata_pb2.ReadQuery]] = {}
        for query in queries:
            kind = query.WhichOneof("kind")
            options: ReadOptions = getattr(query, kind).read if kind else _NO_OPTIONS
            level = options.level
            if level in (LOCAL, UNSPECIFIED):
                self._ready.append(query)
            elif level == LINEARIZABLE:
                unconfirmed.append(query)
            elif level == AT_LEAST:
                try:
                    by_offset.setdefault(at_least_offset(options), []).append(query)
                except CommandError as error:
                    self._refuse(query, error)
            else:
                text = f"unknown read level {level}" if kind else "a query of no kind"
                self._refuse(query, CommandError(ErrorCode.INVALID_REQUEST, text))
        self._gathering.arrived(self._loop.time())
        self._outgoing.may_hold = not (unconfirmed or by_offset or self._held)
        self._answer_ready()
        self._outgoing.may_hold = False
        seconds = min(message.max_wait_ms / 1000 or WAIT_SECONDS_MAX, WAIT_SECONDS_MAX)
        if unconfirmed and (held := self._hold(unconfirmed, seconds, -1)):
            self._node.confirm_read(partial(self._on_confirmed, held), len(unconfirmed))
        for offset, waiting in by_offset.items():
            if self._node.image.provenance.end_offset >= offset:
                self._go_on_with(waiting)
            elif held := self._hold(waiting, seconds, offset):
                self._wait_applied(held)

    def _hold(
        self, queries: Sequence[metadata_pb2.ReadQuery], seconds: float, offset: int
    ) -> _HeldQueries | None:
        """Hold queries for at most ``seconds``, or refuse them and return None."""
        try:
            self._reads.held.enter(self._caller)
        except RequestRefusedError as error:
            for query in queries:
                self._refuse(query, error)
            return None
        held = _HeldQueries(queries, seconds, offset)
        held.timer = self._loop.call_later(seconds, self._on_late, held)
        self._held.add(held)
        return held

    def _release(self, held: _HeldQueries) -> None:
        self._held.discard(held)
        self._reads.held.leave(self._caller)
        if held.timer is not None:
            held.timer.cancel()
        if held.cancel is not None:
            held.cancel()

    def _on_confirmed(self, held: _HeldQueries, offset: int | None) -> None:
        if held not in self._held:
            return
        if offset is None:
            self._release(held)
            self._refuse_all(held, not_leader(self._node, ErrorCode.NOT_LEADER_OR_FOLLOWER))
            return
        held.offset = offset
        if self._node.image.provenance.end_offset >= offset:
            self._on_applied(held)
        else:
            self._wait_applied(held)

    def _wait_applied(self, held: _HeldQueries) -> None:
        try:
            held.cancel = self._node.wait_applied(held.offset, partial(self._on_applied, held))
        except CommandError as error:
            # Too many wait. Not raised: the controller may be the caller.
            self._release(held)
            self._refuse_all(held, error)

    def _on_applied(self, held: _HeldQueries) -> None:
        if held in self._held:
            self._release(held)
            self._go_on_with(held.queries)

    def _on_late(self, held: _HeldQueries) -> None:
        self._release(held)
        self._refuse_all(held, self._reads.too_late(held.offset, held.seconds))

    def _refuse_all(self, held: _HeldQueries, error: QuorateError) -> None:
        for query in held.queries:
            self._refuse(query, error)

    def _go_on_with(self, queries: Sequence[metadata_pb2.ReadQuery]) -> None:
        self._ready.extend(queries)
        self._answer_ready()

    def _answer_ready(self) -> None:
        """Answer queries that need not wait, as far as there is room; the rest in a later turn."""
        if not self._ready or self._is_going_on:
            return
        image = self._node.image
        position = self._reads.position(image)
        outgoing = self._outgoing
        while self._ready and outgoing.has_room:
            query = self._ready.popleft()
            kind = query.WhichOneof("kind")
            answer = outgoing.message.answers.add(tag=query.tag)
            response = getattr(answer, kind)
            try:
                self._answer_of[kind](image, getattr(query, kind), response, self._access)
                response.position.CopyFrom(position)
                size = _checked_size(answer)
            except QuorateError as error:
                _fill_refusal(answer, error)
                size = answer.ByteSize()
            if outgoing.settle(size) and self._ready:
                self._is_going_on = True
                self._loop.call_soon(self._go_on)
                return

    def _go_on(self) -> None:
        self._is_going_on = False
        self._outgoing.send_now()
        self._answer_ready()

    def _refuse(self, query: metadata_pb2.ReadQuery, error: QuorateError) -> None:
        answer = self._outgoing.message.answers.add(tag=query.tag)
        _fill_refusal(answer, error)
        self._outgoing.settle(answer.ByteSize())


def _checked_size(answer: metadata_pb2.ReadAnswer) -> int:
    size = answer.ByteSize()
    if size > _ANSWER_BYTES_MAX:
        raise CommandError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the answer has {size} bytes, more than {_ANSWER_BYTES_MAX} on a read stream; "
            "request less at a time",
        )
    return size


def _fill_refusal(answer: Any, error: QuorateError) -> None:
    """Replace the content of ``answer`` with the refusal ``error``."""
    code, tag = code_of(error), answer.tag
    answer.Clear()
    answer.tag, answer.error_code, answer.message = tag, code, str(error)
    if isinstance(error, RequestRefusedError):
        for detail in error.details:
            if isinstance(detail, LeaderHint):
                answer.leader.CopyFrom(detail)
    name_refusal(_STREAM, Form.ANSWER, code)
