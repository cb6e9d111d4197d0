"""The write path from the wire to the controller: one command, or many over one stream.

The hello of a stream has its constant values (client, reason). Each later message carries any
number of commands of any number of producers. Answers that are ready within one turn of the
event loop leave as one message.

Invariants:
    1. Every command that was read is answered exactly once, unless the stream is gone. A stopping
       node still sends the answers that are ready; the other outcomes are unknown to the client.
    2. At most ``COMMANDS_PER_STREAM_MAX`` commands of a stream are evaluated at a time. Further
       ones are refused with QUEUE_FULL without evaluation. About as many answers wait to be read.

See: ADR 10 and 42; docs/reference/client-protocol.md (Writing).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from google.protobuf.message import Message

from quorate.client.limits import (
    COMMAND_BYTES_MAX,
    COMMANDS_PER_MESSAGE_MAX,
    COMMANDS_PER_STREAM_MAX,
    IMPORT_BYTES_MAX,
)
from quorate.controller.requests import (
    NO_PRODUCER,
    Answer,
    PendingCommand,
    RequestContext,
    each_answer,
)
from quorate.services.access import Access
from quorate.services.admission import ServiceLimits
from quorate.services.answers import name_refusal
from quorate.services.calls import Context
from quorate.services.closing import Closing
from quorate.services.commands import KINDS, to_command
from quorate.services.errors import RequestRefusedError
from quorate.services.identity import bounded_text, caller
from quorate.services.incarnations import check_writer
from quorate.services.leadership import leader_hint, not_leader
from quorate.services.outgoing import OutgoingAnswers
from quorate.services.ports import ServedNode
from quorate.services.results import to_result
from quorate.services.stream_session import StreamSession
from quorum.answered import Form
from quorum.errors import CommandError, ErrorCode
from quorum.v1 import commands_pb2, errors_pb2, metadata_pb2
from statemachine.known_producer import KnownProducer

_STREAM = "WriteStream"
_REDIRECTING = frozenset(
    {ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.OUTCOME_UNKNOWN}
)


async def write_once(
    node: ServedNode,
    request: metadata_pb2.WriteRequest,
    context: Context,
    access: Access | None = None,
) -> metadata_pb2.WriteResponse:
    """Evaluate one command and answer once it is committed and applied.

    Raises:
        CommandError: The command was refused, or its outcome is unknown (OUTCOME_UNKNOWN);
            LOG_INCARNATION_MISMATCH, the writer knows another incarnation of the log.
    """
    check_writer(node, request.writer)
    _check_size(request.command)
    value = to_command(request.command)
    request_context = RequestContext(
        principal=caller(
            context, request.writer.client_id, None if access is None else access.audit_name
        ),
        client_id=request.writer.client_id,
        reason=bounded_text(request.writer.reason, "reason"),
        access=access,
    )
    if request.HasField("producer_id") and request.producer_id >= 0:
        request_context.producer_id = request.producer_id
        request_context.producer_epoch = request.producer_epoch
        request_context.sequence = request.command.sequence
        request_context.oldest_open = request.oldest_open
        request_context.is_repeat = request.command.is_repeat
        request_context.is_ordered = request.is_ordered
    _take_origin(request_context, request.command)
    done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def on_answer(answer: Answer) -> None:
        # The call may have been cancelled meanwhile.
        if not done.done():
            done.set_result(answer)

    command = PendingCommand(value, request_context, each_answer(on_answer))
    node.submit([command])
    answer = await done
    if answer.code is not ErrorCode.NONE:
        details: list[Message] = []
        if answer.code in _REDIRECTING:
            details.append(leader_hint(node))
        if answer.known_producer is not None:
            details.append(_known_producer(answer.known_producer))
        raise RequestRefusedError(answer.code, answer.message, details)
    return metadata_pb2.WriteResponse(
        answer=metadata_pb2.WriteAnswer(
            tag=request.command.tag,
            offset=answer.offset,
            epoch=answer.epoch,
            result=to_result(
                KINDS[command.kind],
                answer.result,
                partial(name_refusal, "Write", Form.PART),
            ),
        )
    )


def _known_producer(known: KnownProducer) -> errors_pb2.KnownProducer:
    return errors_pb2.KnownProducer(**known._asdict())


def _take_origin(context: RequestContext, command: commands_pb2.Command) -> None:
    """Replace the stream's origin by the command's own, if it has one."""
    if command.HasField("origin"):
        origin = command.origin
        if origin.request_id:
            context.request_id = bounded_text(origin.request_id, "request id")
        if origin.traceparent:
            context.traceparent = bounded_text(origin.traceparent, "traceparent")
        if origin.reason:
            context.reason = bounded_text(origin.reason, "reason")


def _check_size(command: commands_pb2.Command) -> None:
    limit = IMPORT_BYTES_MAX if command.HasField("import_batch") else COMMAND_BYTES_MAX
    if command.ByteSize() > limit:
        raise CommandError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{command.ByteSize()} bytes in one command, more than {limit}",
        )


class WriteSession(
    StreamSession[metadata_pb2.WriteStreamRequest, metadata_pb2.WriteStreamResponse]
):
    """One client's write stream. Owned by its call; used on the event loop only."""

    name = _STREAM
    request_type = metadata_pb2.WriteStreamRequest

    def __init__(
        self,
        node: ServedNode,
        context: Context,
        limits: ServiceLimits,
        closing: Closing,
        access: Access | None = None,
    ) -> None:
        outgoing = OutgoingAnswers(context.write, metadata_pb2.WriteStreamResponse)
        super().__init__(context, limits, closing, node.cluster_id, outgoing)
        self._node = node
        self._access = access
        self._principal = ""
        self._client_id = ""
        self._reason = ""
        # Made once: the controller recognises answers of one receiver by it.
        self._on_answers = self._answered

    async def run(self) -> None:
        """Serve the stream; see ``StreamSession.run``."""
        try:
            await super().run()
        finally:
            # It refers to the session. The cycle of the two might stay in memory for ever
            # (quorate/server/cycle_collection.py).
            del self._on_answers

    def _open(self, first: metadata_pb2.WriteStreamRequest) -> None:
        """Answer the hello.

        Raises:
            CommandError: NOT_CONTROLLER if this node does not accept commands, INVALID_REQUEST
                without a hello, LOG_INCARNATION_MISMATCH if the writer knows another incarnation
                of the log.
        """
        self._greet(first)
        self._submit(first)

    def _is_congested(self) -> bool:
        outgoing = self._outgoing
        return not outgoing.has_room or outgoing.waiting > COMMANDS_PER_STREAM_MAX

    async def _decongest(self) -> None:
        await self._outgoing.wait_until(lambda: not self._is_congested())

    def _take(self, message: metadata_pb2.WriteStreamRequest) -> None:
        if message.HasField("hello"):
            raise CommandError(ErrorCode.INVALID_REQUEST, "a second hello")
        self._submit(message)
        # Before the next read begins, because a single write would wait for that read.
        self._node.evaluate_submitted()

    def _greet(self, first: metadata_pb2.WriteStreamRequest) -> None:
        if not first.HasField("hello"):
            raise CommandError(ErrorCode.INVALID_REQUEST, "the first message must be a hello")
        hello = first.hello
        access = self._access
        proved = None if access is None else access.audit_name
        self._principal = caller(self._context, hello.client_id, proved)
        self._client_id = hello.client_id
        self._reason = bounded_text(hello.reason, "reason")
        # First, because a former voter's hint leads to a leader of the former incarnation.
        check_writer(self._node, hello)
        if not self._node.can_write:
            raise not_leader(self._node, ErrorCode.NOT_CONTROLLER)
        accepted = self._outgoing.message.accepted
        accepted.node_id = self._node.node_id
        accepted.leader_epoch = self._node.leadership.epoch
        accepted.producer_window = self._limits.producer_window
        accepted.commands_max = COMMANDS_PER_STREAM_MAX
        self._outgoing.greet()

    def _submit(self, message: metadata_pb2.WriteStreamRequest) -> None:
        if self._access is not None:
            self._access.check_session(self._node.image)
        count = sum([len(group.commands) for group in message.groups])
        if count > COMMANDS_PER_MESSAGE_MAX:
            raise CommandError(
                ErrorCode.INVALID_REQUEST,
                f"{count} commands in one message, more than {COMMANDS_PER_MESSAGE_MAX}",
            )
        may_be_large = message.ByteSize() > COMMAND_BYTES_MAX
        access = self._access
        taken: list[PendingCommand] = []
        for group in message.groups:
            producer_id = group.producer_id if group.HasField("producer_id") else NO_PRODUCER
            producer_epoch = group.producer_epoch
            oldest_open = group.oldest_open
            is_ordered = group.is_ordered
            for command in group.commands:
                # All at once and by position: compiled code sets a field, or finds an argument by
                # its name, as slowly as interpreted code.
                if producer_id >= 0:
                    context = RequestContext(
                        self._principal, self._client_id, "", self._reason, "",
                        producer_id, producer_epoch, command.sequence, oldest_open,
                        command.is_repeat, is_ordered, access,
                    )  # fmt: skip
                else:
                    context = RequestContext(
                        self._principal, self._client_id, "", self._reason, access=access
                    )
                self._take_command(command, context, taken, may_be_large=may_be_large)
        if taken:
            self._node.submit(taken)

    def _take_command(
        self,
        command: commands_pb2.Command,
        context: RequestContext,
        taken: list[PendingCommand],
        *,
        may_be_large: bool,
    ) -> None:
        """Add what the message describes to the commands of its message, or refuse it."""
        tag, outgoing = command.tag, self._outgoing
        outgoing.owed += 1
        if outgoing.owed > COMMANDS_PER_STREAM_MAX:
            text = f"{COMMANDS_PER_STREAM_MAX} commands are unanswered"
            self._refuse(tag, Answer(ErrorCode.QUEUE_FULL, text))
            return
        try:
            if may_be_large:
                _check_size(command)
            _take_origin(context, command)
            taken.append(PendingCommand(to_command(command), context, self._on_answers, tag))
        except CommandError as error:
            self._refuse(tag, Answer(error.code, error.message))

    def _answered(self, answered: Sequence[PendingCommand]) -> None:
        outgoing, plain = self._outgoing, 0
        add = outgoing.message.answers.add
        for pending in answered:
            answer = pending.answer
            if answer.code is not ErrorCode.NONE:
                self._refuse(pending.tag, answer)
            elif answer.result:
                self._add_result(pending)
            else:
                add(tag=pending.tag, offset=answer.offset, epoch=answer.epoch)
                plain += 1
                continue
            # The message may have become full.
            add = outgoing.message.answers.add
        if plain:
            outgoing.settle(answers=plain)

    def _add_result(self, pending: PendingCommand) -> None:
        answer = pending.answer
        added = self._outgoing.message.answers.add(
            tag=pending.tag, offset=answer.offset, epoch=answer.epoch
        )
        kind = KINDS[pending.kind]
        result = to_result(kind, answer.result, partial(name_refusal, _STREAM, Form.PART))
        if result is not None:
            added.result.CopyFrom(result)
        self._outgoing.settle(added.ByteSize())

    def _refuse(self, tag: int, answer: Answer) -> None:
        name_refusal(_STREAM, Form.ANSWER, answer.code)
        known = answer.known_producer
        added = self._outgoing.message.answers.add(
            tag=tag,
            error_code=answer.code,
            message=answer.message,
            offset=answer.offset,
            epoch=answer.epoch,
            leader=leader_hint(self._node) if answer.code in _REDIRECTING else None,
            producer=_known_producer(known) if known is not None else None,
        )
        self._outgoing.settle(added.ByteSize())
