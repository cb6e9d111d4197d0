"""A pending command, its result, and the effect of each answer on it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias, TypeVar

from quorate.client.errors import (
    ClientError,
    OutcomeUnknownError,
    PrecedingWriteFailedError,
    ProducerFencedError,
    ProtocolError,
    RefusedError,
)
from quorate.client.limits import COMMAND_BYTES_MAX
from quorate.client.message_value import MessageValue
from quorate.client.producer_sessions import ProducerSession
from quorate.client.results.commands import CommandResult
from quorum.v1 import common_pb2
from quorum.v1.commands_pb2 import Command
from quorum.v1.metadata_pb2 import WriteAnswer

Yielded = TypeVar("Yielded", bound=MessageValue)


class _Filling:
    """An ``Applied`` before it is frozen, since each write makes one and assigning costs less."""

    __slots__ = ("epoch", "offset", "result")


@dataclass(frozen=True, slots=True)
class Applied:
    """A command that is committed and applied.

    ``offset`` is the exclusive end of its records, in ``epoch``; ``result`` has what else it
    yields, for the kinds of commands that yield something.
    """

    offset: int
    """Exclusive end of the command's records."""
    epoch: int
    """Leader epoch of these records."""
    result: CommandResult
    """What else the command yields."""

    @classmethod
    def of(cls, answer: WriteAnswer) -> Applied:
        """Return what a node answered to a command that it applied."""
        made: Any = _Filling()
        made.offset = answer.offset
        made.epoch = answer.epoch
        made.result = CommandResult.of(answer.result)
        made.__class__ = cls
        applied: Applied = made
        return applied

    def yielded(self, kind: type[Yielded]) -> Yielded:
        """Return what the command yields, as ``applied.yielded(CreateTopicResult)``.

        Raises:
            ProtocolError: The command yields something else, or nothing.
        """
        found = self.result.kind
        if not isinstance(found, kind):
            raise ProtocolError(f"the answer has {found}, and no {kind.__name__}")
        return found


class Pending:
    """A command, its number once it has one, and the future that its caller waits on."""

    __slots__ = (
        "attempts",
        "command",
        "deadline",
        "denial",
        "done",
        "has_number",
        "is_init",
        "is_presumed",
        "order",
        "producer_session",
        "size",
        "was_dry_run",
        "was_oldest",
    )

    def __init__(
        self,
        command: Command,
        done: asyncio.Future[Applied],
        deadline: float,
        size: int,
        *,
        is_init: bool = False,
        order: int = 0,
        has_number: bool = True,
    ) -> None:
        self.command = command
        self.done = done
        self.deadline = deadline
        self.size = size
        self.is_init = is_init
        """Asks for a producer on behalf of the writer itself; no caller waits on ``done``."""
        self.order = order
        """Commands of one client are ordered by when they were submitted."""
        self.has_number = has_number
        """Whether it gets a sequence number. Dry runs of an ordered client do not."""
        self.producer_session: PendingProducerSession | None = None
        self.attempts = 0
        """How often it may have reached a server under its present number."""
        self.was_oldest = False
        """Whether its number was the oldest open one of its session when it was last sent."""
        self.denial: ClientError | None = None
        """Why it gets no producer. It is a dry run then, whose own refusal says more."""
        self.is_presumed = False
        """Whether ``denial`` is of an earlier request for a producer, before this command."""
        self.was_dry_run = (False, False)
        """Whether the command and its position were dry runs before the denial."""

    def deny(self, denial: ClientError, *, is_presumed: bool = False) -> bool:
        """Make it a dry run without a number; False if it cannot be one."""
        kind = self.command.WhichOneof("kind")
        if kind is None or not hasattr(getattr(self.command, kind), "dry_run"):
            return False
        position = self.command.with_position
        self.was_dry_run = (getattr(self.command, kind).dry_run, position.dry_run)
        self._set_dry_run(kind, command=True, position=True)
        self.has_number, self.denial, self.is_presumed = False, denial, is_presumed
        return True

    def ask_again(self) -> None:
        """Undo a denial: it is what its caller has submitted, and needs a producer."""
        kind = self.command.WhichOneof("kind")
        if kind is not None:
            command, position = self.was_dry_run
            self._set_dry_run(kind, command=command, position=position)
        self.has_number, self.denial, self.is_presumed = True, None, False
        self.attempts = 0

    def _set_dry_run(self, kind: str, *, command: bool, position: bool) -> None:
        getattr(self.command, kind).dry_run = command
        if self.command.HasField("with_position"):
            self.command.with_position.dry_run = position


PendingProducerSession: TypeAlias = ProducerSession[Pending]


def check_size(command: Command) -> None:
    """Refuse a command that no server takes.

    Raises:
        RefusedError: MESSAGE_TOO_LARGE.
    """
    size = command.ByteSize()
    if size > COMMAND_BYTES_MAX:
        code = common_pb2.ERROR_CODE_MESSAGE_TOO_LARGE
        raise RefusedError(code, f"{size} bytes in one command, more than {COMMAND_BYTES_MAX}")


def has_position(command: Command) -> bool:
    """Whether a command commits the position of a group, alone or with what it changes."""
    return command.HasField("with_position") or command.HasField("commit_position")


def is_dry_run(command: Command) -> bool:
    """Whether a command is evaluated and not applied."""
    kind = command.WhichOneof("kind")
    return kind is not None and bool(getattr(getattr(command, kind), "dry_run", False))


def later_error(failure: ClientError, *, was_sent: bool) -> ClientError:
    """Return the error of a write behind the one that failed (360.6)."""
    if isinstance(failure, ProducerFencedError):
        return failure
    if was_sent and isinstance(failure, OutcomeUnknownError):
        return OutcomeUnknownError(f"the outcome of an earlier write is unknown: {failure}")
    return PrecedingWriteFailedError(failure)


class AnswerClass(Enum):
    """What an error code asks of the writer."""

    REFUSED = "refused"
    """Nothing has changed and nothing will: the caller's to handle."""
    REDIRECTED = "redirected"
    """Send to the current leader, under the same number."""
    OVERLOADED = "overloaded"
    """Send again later, under the same number."""
    PRODUCER_GONE = "producer gone"
    """The number is no longer valid, or another writer has used or closed it."""


_ANSWER_CLASSES: dict[int, AnswerClass] = {
    common_pb2.ERROR_CODE_NOT_CONTROLLER: AnswerClass.REDIRECTED,
    common_pb2.ERROR_CODE_NOT_LEADER_OR_FOLLOWER: AnswerClass.REDIRECTED,
    common_pb2.ERROR_CODE_OUTCOME_UNKNOWN: AnswerClass.REDIRECTED,
    common_pb2.ERROR_CODE_REQUEST_TIMED_OUT: AnswerClass.REDIRECTED,
    common_pb2.ERROR_CODE_QUEUE_FULL: AnswerClass.OVERLOADED,
    common_pb2.ERROR_CODE_RESOURCE_EXHAUSTED: AnswerClass.OVERLOADED,
    common_pb2.ERROR_CODE_BROKER_NOT_AVAILABLE: AnswerClass.OVERLOADED,
    common_pb2.ERROR_CODE_PRODUCER_WINDOW_EXCEEDED: AnswerClass.OVERLOADED,
    # An older open command has not been evaluated there; it is on its way.
    common_pb2.ERROR_CODE_OUT_OF_ORDER_SEQUENCE_NUMBER: AnswerClass.OVERLOADED,
    common_pb2.ERROR_CODE_UNKNOWN_PRODUCER_ID: AnswerClass.PRODUCER_GONE,
    common_pb2.ERROR_CODE_INVALID_PRODUCER_EPOCH: AnswerClass.PRODUCER_GONE,
    common_pb2.ERROR_CODE_INVALID_PRODUCER_ID_MAPPING: AnswerClass.PRODUCER_GONE,
    common_pb2.ERROR_CODE_DUPLICATE_SEQUENCE_NUMBER: AnswerClass.PRODUCER_GONE,
}


def classify_answer(code: int) -> AnswerClass:
    """What an error code of an answer asks of the writer."""
    return _ANSWER_CLASSES.get(code, AnswerClass.REFUSED)
