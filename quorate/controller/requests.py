"""Input and output of the controller: a command, where it comes from, and its outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, TypeAlias

from quorum.errors import ErrorCode
from quorum.types import NO_NODE, NodeId
from statemachine.commands import BrokerHeartbeat, Command, WithPosition
from statemachine.known_producer import KnownProducer
from statemachine.prepare.view import View

NO_PRODUCER = -1
"""Producer id, epoch and sequence of a command without an idempotent writer."""


class CommandAccess(Protocol):
    """Decides whether a caller may have a command evaluated."""

    def check_command(self, view: View, command: Command) -> None:
        """Refuse what the caller may not do on this state.

        Raises:
            CommandError: With an authorization code.
        """

    def allows_heartbeat(self, view: View, heartbeat: BrokerHeartbeat) -> bool:
        """Whether ``check_command`` would let it pass on this state; a "no" is not reported."""


_NO_FIELDS: Mapping[str, object] = MappingProxyType({})


@dataclass(slots=True, init=False)
class RequestContext:
    """The requester of a command, its reason, and its producer and sequence number.

    The first five fields go into the headers of the command's first record (ADR 4). ``sequence``
    counts a producer's commands from 0 per epoch. ``oldest_open`` is the lowest sequence whose
    answer the producer still waits for; older answers may be forgotten. ``is_repeat``: another copy
    may be in flight, so the outcome of this one takes the number, also if it is a refusal.
    ``is_ordered``: a refused or missing command stops all later ones of this epoch. Must not
    change after ``submit``; commands with equal values may share one.
    """

    principal: str
    client_id: str
    request_id: str
    reason: str
    traceparent: str
    producer_id: int
    producer_epoch: int
    sequence: int
    oldest_open: int
    is_repeat: bool
    is_ordered: bool
    access: CommandAccess | None
    """What the sender may do; None: everything."""

    # Written out, because mypyc would leave a generated one to the interpreter (ADR 64).
    def __init__(  # noqa: PLR0913 - one for each field
        self,
        principal: str = "",
        client_id: str = "",
        request_id: str = "",
        reason: str = "",
        traceparent: str = "",
        producer_id: int = NO_PRODUCER,
        producer_epoch: int = NO_PRODUCER,
        sequence: int = NO_PRODUCER,
        oldest_open: int = NO_PRODUCER,
        is_repeat: bool = False,  # noqa: FBT001, FBT002 - by position, as all of a hot call
        is_ordered: bool = False,  # noqa: FBT001, FBT002
        access: CommandAccess | None = None,
    ) -> None:
        self.principal = principal
        self.client_id = client_id
        self.request_id = request_id
        self.reason = reason
        self.traceparent = traceparent
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.sequence = sequence
        self.oldest_open = oldest_open
        self.is_repeat = is_repeat
        self.is_ordered = is_ordered
        self.access = access


@dataclass(slots=True, init=False)
class Answer:
    """The outcome of a command.

    ``offset`` is exclusive: everything the answer rests on lies below it, is committed and is
    in the published image; ``epoch`` is the leader's that evaluated it. For an applied command
    that is the end of its own batch, for a duplicate the end of the first one. On
    ``OUTCOME_UNKNOWN`` and when nothing was evaluated, ``offset`` is -1.
    """

    code: ErrorCode
    message: str
    offset: int
    epoch: int
    result: Mapping[str, object]
    leader_hint: NodeId
    """The last known leader, for answers that redirect the client."""
    known_producer: KnownProducer | None
    """What is known of the producer because of which the command was refused."""

    def __init__(
        self,
        code: ErrorCode,
        message: str = "",
        offset: int = -1,
        epoch: int = 0,
        result: Mapping[str, object] = _NO_FIELDS,
        leader_hint: NodeId = NO_NODE,
        known_producer: KnownProducer | None = None,
    ) -> None:
        self.code = code
        self.message = message
        self.offset = offset
        self.epoch = epoch
        self.result = result
        self.leader_hint = leader_hint
        self.known_producer = known_producer


@dataclass(slots=True, init=False, eq=False, repr=False)
class PendingCommand:
    """A command from its submission until its answer leaves.

    ``command`` and ``context`` are gone once it is evaluated, because a refusal may wait long for
    the proof that this node still leads.
    """

    __deletable__ = ("command", "context")

    command: Command
    context: RequestContext
    kind: type
    """Type of the command; of one with a position, that of the single command."""
    on_answers: OnAnswers
    tag: int
    """The sender's own number for it."""
    answer: Answer
    """Unset until the command is evaluated or refused. May be replaced until it leaves, as by
    OUTCOME_UNKNOWN; several commands may share one, so an answer itself never changes."""
    is_repeat: bool
    """Whether the answer repeats a first answer: it is true of the log, whoever leads now."""
    settled_at: int
    """End offset of a batch that took the number of a repeat; -1 if none did."""

    def __init__(
        self, command: Command, context: RequestContext, on_answers: OnAnswers, tag: int = 0
    ) -> None:
        self.command = command
        self.context = context
        self.kind = type(command.command if isinstance(command, WithPosition) else command)
        self.on_answers = on_answers
        self.tag = tag
        self.is_repeat = False
        self.settled_at = -1

    def drop_content(self) -> None:
        """Free what only the evaluation needs."""
        del self.command
        del self.context

    @property
    def rests_on(self) -> int:
        """The answer leaves when everything below this offset is in the image."""
        return max(self.answer.offset, self.settled_at)


OnAnswers: TypeAlias = Callable[[Sequence[PendingCommand]], None]
"""Takes commands whose ``answer`` is final: those of one receiver that leave together, in order.

Each submitted command is in exactly one such call, on the controller's thread. It must not raise.
"""

OnAnswer: TypeAlias = Callable[[Answer], None]
"""As ``OnAnswers``, for a single command."""


def each_answer(on_answer: OnAnswer) -> OnAnswers:
    """Return the receiver of answers that are taken one by one."""

    def take(answered: Sequence[PendingCommand]) -> None:
        for pending in answered:
            on_answer(pending.answer)

    return take
