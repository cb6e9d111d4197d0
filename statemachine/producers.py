"""Deduplication of producer commands, and the producer fields of a batch's record headers.

One command is one batch is one sequence number. A refusal or a no-op consumes no number, unless
the command was a retry: then copies of it may be under way, and a batch of its own fences them.
Commands are evaluated in the order of their numbers: a command is refused while an older open
number has not been evaluated. A number that was evaluated and not consumed leaves a hole, which
may be filled later.

A producer belongs to the principal that requested it, and a number to the command that consumed
it. The table keeps each command's fingerprint, so that no client gets another command's answer.

See: requirements 360.7 and 360.8; ADR 10 and 42. The table is in
``statemachine.sections.producers``.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgpack

from quorum.errors import CommandError, ErrorCode, ReplayError
from statemachine.known_producer import ProducerError, hidden_producer, known_producer
from statemachine.records import AnsweredRequest
from statemachine.sections.producer_state import Applied, ProducerState
from statemachine.sections.producers import (
    EPOCH_MAX,
    PRODUCER_WINDOW,
    ProducersDelta,
    ProducersView,
    answered_request,
)

if TYPE_CHECKING:
    from statemachine.open_image import BatchPosition

HEADER_OPEN = "open"
"""Record header with the oldest sequence that the client awaits an answer to, decimal digits."""

HEADER_REQUEST = "request-id"
"""Record header with the id that the client gave to its request. A named writer's are kept."""

HEADER_ANSWER = "answer"
"""Record header with the answer's fields beyond its position, as msgpack."""

HEADER_FINGERPRINT = "fingerprint"
"""Record header with the digest of the command, ``FINGERPRINT_BYTES`` long."""

EPOCH_EXHAUSTED = EPOCH_MAX - 1
"""Last epoch of a producer id; after it, the identity gets a new id instead of a next epoch."""

ANSWER_REFUSED = "refused"
"""Key of a refusal in an answer: the error code's number and a message. The batch of a refusal
changes the producer state only: it consumes the number of a command that was sent twice (360.8)."""

SEQUENCE_MAX = (1 << 31) - 1


class HasProducers(Protocol):
    """An image or a delta over one."""

    @property
    def producers(self) -> ProducersView:
        """The producers section."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """The command was never applied and may be evaluated."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The command was applied before; ``first`` is its answer, to be repeated."""

    first: Applied


_FRESH = Fresh()


@dataclass(slots=True, init=False)
class SequenceClaim:
    """The sequence number of a command, and who sent it.

    ``oldest_open`` is the oldest sequence that the client awaits an answer to.
    """

    producer_id: int
    producer_epoch: int
    sequence: int
    oldest_open: int
    owner: bytes
    """``owner_digest`` of the principal."""
    fingerprint: bytes
    """``command_fingerprint`` of the command."""
    is_ordered: bool
    """Whether a refused or missing command stops all later ones of this epoch (360.6)."""

    def __init__(
        self,
        producer_id: int,
        producer_epoch: int,
        sequence: int,
        oldest_open: int,
        owner: bytes = b"",
        fingerprint: bytes = b"",
        *,
        is_ordered: bool = False,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.sequence = sequence
        self.oldest_open = oldest_open
        self.owner = owner
        self.fingerprint = fingerprint
        self.is_ordered = is_ordered


def check_sequence(
    view: HasProducers,
    claim: SequenceClaim,
    *,
    window: int = PRODUCER_WINDOW,
    unused: Container[int] = (),
) -> Fresh | Duplicate:
    """Return whether a producer's command is new or was applied before.

    ``view`` includes everything appended, committed or not. Sequences may exceed the oldest
    open one by less than ``window``, which is capped at ``PRODUCER_WINDOW``, the number of
    answers kept. ``unused`` are sequences of this producer and epoch that were evaluated and
    consumed no number: no command waits for them.

    Raises:
        CommandError: UNKNOWN_PRODUCER_ID; INVALID_PRODUCER_ID_MAPPING for another principal's
            producer; INVALID_PRODUCER_EPOCH for an older epoch, and for a newer one that the
            client may not choose itself; OUT_OF_ORDER_SEQUENCE_NUMBER for a sequence below
            ``oldest_open``, for a newer epoch that does not begin at 0, and while an older open
            sequence has not been evaluated; DUPLICATE_SEQUENCE_NUMBER below the window, and
            where another command has the sequence; PRODUCER_WINDOW_EXCEEDED above the window.
    """
    producer_id, epoch = claim.producer_id, claim.producer_epoch
    sequence, oldest_open = claim.sequence, claim.oldest_open
    state = view.producers.states.get(producer_id)
    if state is None:
        raise _unknown(view, producer_id)
    if state.owner and state.owner != claim.owner:
        raise ProducerError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            f"producer {producer_id} belongs to another principal",
            hidden_producer(view.producers, producer_id),
        )
    if epoch < state.epoch or state.successor_id >= 0:
        raise _fenced(view, claim)
    if not 0 <= oldest_open <= sequence <= SEQUENCE_MAX:
        raise _out_of_order(view, claim, f"sequence {sequence} with oldest open {oldest_open}")
    if epoch > state.epoch:
        _check_raised_epoch(view, claim)
        state = ProducerState(epoch)
    try:
        return _evaluate_in_epoch(state, claim, min(window, PRODUCER_WINDOW), unused)
    except CommandError as error:
        known = known_producer(view.producers, producer_id)
        raise ProducerError(error.code, error.message, known) from None


def _unknown(view: HasProducers, producer_id: int) -> ProducerError:
    known = known_producer(view.producers, producer_id)
    text = f"producer {producer_id} " + (
        "has expired, or is of a broker's block" if known.was_assigned else "was never assigned"
    )
    if known.transactional_id:
        text += f"; InitProducerId gives {known.transactional_id!r} another one"
    return ProducerError(ErrorCode.UNKNOWN_PRODUCER_ID, text, known)


def _fenced(view: HasProducers, claim: SequenceClaim) -> ProducerError:
    known = known_producer(view.producers, claim.producer_id)
    now = f"producer {known.current_producer_id} with epoch {known.current_producer_epoch}"
    owner = f"writer {known.transactional_id!r}: " if known.transactional_id else ""
    return ProducerError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"{owner}producer {claim.producer_id} with epoch {claim.producer_epoch} was replaced "
        f"by {now}",
        known,
    )


def _out_of_order(view: HasProducers, claim: SequenceClaim, text: str) -> ProducerError:
    return ProducerError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"producer {claim.producer_id}: {text}",
        known_producer(view.producers, claim.producer_id),
    )


def _check_raised_epoch(view: HasProducers, claim: SequenceClaim) -> None:
    """Allow only a producer without a transactional id to raise its own epoch (360.6)."""
    producer_id, epoch = claim.producer_id, claim.producer_epoch
    name = view.producers.names.get(producer_id)
    if name is not None or epoch > EPOCH_EXHAUSTED:
        raise ProducerError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {producer_id}: epoch {epoch} was not assigned to it"
            + ("" if name is None else f"; InitProducerId raises that of {name!r}"),
            known_producer(view.producers, producer_id),
        )
    if claim.oldest_open:
        raise _out_of_order(
            view, claim, f"epoch {epoch} begins at sequence 0, not {claim.oldest_open}"
        )


def _evaluate_in_epoch(
    state: ProducerState, claim: SequenceClaim, window: int, unused: Container[int]
) -> Fresh | Duplicate:
    producer_id, sequence = claim.producer_id, claim.sequence
    floor = max(state.oldest_open, claim.oldest_open)
    if sequence >= floor + window:
        raise CommandError(
            ErrorCode.PRODUCER_WINDOW_EXCEEDED,
            f"producer {producer_id}: sequence {sequence} is {window} or more beyond the oldest "
            f"open one, {floor}",
        )
    if sequence > state.last_sequence:
        if claim.is_ordered:
            _check_order(state, claim)
            return _FRESH
        for missing in range(max(floor, state.last_sequence + 1), sequence):
            if missing not in unused:
                raise CommandError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"producer {producer_id}: sequence {sequence} before {missing}, which is open",
                )
        return _FRESH
    first = state.answer_to(sequence)
    if first is not None:
        if first.fingerprint and first.fingerprint != claim.fingerprint:
            raise CommandError(
                ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
                f"producer {producer_id}: sequence {sequence} was taken by another command",
            )
        return Duplicate(first)
    if sequence < state.oldest_open:
        raise CommandError(
            ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
            f"producer {producer_id}: sequence {sequence} was closed, the oldest open one is "
            f"{state.oldest_open}",
        )
    if claim.is_ordered:
        raise CommandError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {producer_id}: sequence {sequence} is a hole below {state.last_sequence}",
        )
    return _FRESH


def _check_order(state: ProducerState, claim: SequenceClaim) -> None:
    """Let an ordered producer continue only right behind its last command, if that was applied."""
    last, problem = state.last_sequence, ""
    if claim.sequence != last + 1:
        problem = f"sequence {claim.sequence} does not follow {last}"
    else:
        before = state.answer_to(last)
        if before is not None and is_refusal(before.answer):
            problem = f"sequence {last} was refused, so {claim.sequence} may not follow"
    if problem:
        raise CommandError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, f"producer {claim.producer_id}: {problem}"
        )


def apply_command(
    producers: ProducersDelta,
    header: BatchPosition,
    headers: Sequence[tuple[str, bytes | None]],
) -> None:
    """Record in the producer table that the batch of a producer's command was applied.

    Raises:
        ReplayError: The producer or sequence contradicts the table, or ``open`` is no number.
    """
    oldest_open = 0
    answer = None
    fingerprint = b""
    request_id = b""
    for name, value in headers:
        if name == HEADER_OPEN:
            oldest_open = _parse_open(value)
        elif name == HEADER_ANSWER:
            answer = value
        elif name == HEADER_FINGERPRINT:
            fingerprint = value or b""
        elif name == HEADER_REQUEST:
            request_id = value or b""
    producers.replay_command(
        header.producer_id,
        header.producer_epoch,
        Applied(header.base_sequence, header.end_offset, header.epoch, answer, fingerprint),
        oldest_open,
        header.max_timestamp,
    )
    if request_id:
        writer = producers.names.get(header.producer_id)
        if writer is not None:
            text = request_id.decode("utf-8", "replace")
            producers.replay_request(
                writer, AnsweredRequest(text, header.end_offset, header.epoch, answer, fingerprint)
            )


def first_answer_to_request(
    view: HasProducers, claim: SequenceClaim, request_id: str
) -> Duplicate | None:
    """Return the first answer to a request that a named writer repeats; None if it is new (360.8).

    The writer may be another process, epoch or producer id of that name by now.

    Raises:
        CommandError: INVALID_REQUEST: another command has that request id.
    """
    name = view.producers.names.get(claim.producer_id)
    if name is None:
        return None
    first = answered_request(view.producers, name, request_id)
    if first is None:
        return None
    if first.fingerprint and first.fingerprint != claim.fingerprint:
        raise CommandError(
            ErrorCode.INVALID_REQUEST,
            f"writer {name!r} used request id {request_id!r} for another command; "
            "give each command an id of its own",
        )
    return Duplicate(Applied(claim.sequence, *_answer_of(first)))


def _answer_of(first: AnsweredRequest) -> tuple[int, int, bytes | None, bytes]:
    return first.offset, first.epoch, first.answer, first.fingerprint


def is_refusal(answer: bytes | None) -> bool:
    """Whether the ``answer`` header of a batch records a refusal."""
    if answer is None:
        return False
    try:
        found = msgpack.unpackb(answer)
    except (ValueError, msgpack.UnpackException):
        return False
    return isinstance(found, dict) and ANSWER_REFUSED in found


def encode_open(oldest_open: int) -> bytes:
    """Return the value of the ``open`` record header."""
    return b"%d" % oldest_open


def _parse_open(value: bytes | None) -> int:
    if value is None or not value.isdigit() or len(value) > 10:
        raise ReplayError(f"record header {HEADER_OPEN!r} is {value!r}, not a sequence number")
    return int(value)
