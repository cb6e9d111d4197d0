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
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgpack

from quorum.errors import CommandError, ErrorCode, ReplayError
from statemachine.sections.producers import (
    PRODUCER_WINDOW,
    Applied,
    ProducersDelta,
    ProducerState,
    ProducersView,
)

if TYPE_CHECKING:
    from statemachine.open_image import BatchPosition

HEADER_OPEN = "open"
"""Record header with the oldest sequence that the client awaits an answer to, decimal digits."""

HEADER_ANSWER = "answer"
"""Record header with the answer's fields beyond its position, as msgpack."""

HEADER_FINGERPRINT = "fingerprint"
"""Record header with the digest of the command, ``FINGERPRINT_BYTES`` long."""

EPOCH_MAX = 32_767
"""Reserved for fencing: never assigned to a client."""

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


class SequenceClaim(NamedTuple):
    """The sequence number of a command, and who sent it.

    ``oldest_open`` is the oldest sequence that the client awaits an answer to.
    """

    producer_id: int
    producer_epoch: int
    sequence: int
    oldest_open: int
    owner: bytes = b""
    """``owner_digest`` of the principal."""
    fingerprint: bytes = b""
    """``command_fingerprint`` of the command."""


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
    state = view.producers.state(producer_id)
    if state is None:
        raise CommandError(
            ErrorCode.UNKNOWN_PRODUCER_ID, f"producer {producer_id} is not known or has expired"
        )
    if state.owner and state.owner != claim.owner:
        raise CommandError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            f"producer {producer_id} belongs to another principal",
        )
    if epoch < state.epoch:
        raise CommandError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {producer_id}: epoch {epoch} is older than {state.epoch}",
        )
    if not 0 <= oldest_open <= sequence <= SEQUENCE_MAX:
        raise CommandError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {producer_id}: sequence {sequence} with oldest open {oldest_open}",
        )
    if epoch > state.epoch:
        _check_raised_epoch(view, claim)
        state = ProducerState(epoch)
    return _evaluate_in_epoch(state, claim, min(window, PRODUCER_WINDOW), unused)


def _check_raised_epoch(view: HasProducers, claim: SequenceClaim) -> None:
    """Allow only a producer without a transactional id to raise its own epoch (360.6)."""
    producer_id, epoch = claim.producer_id, claim.producer_epoch
    name = view.producers.names.get(producer_id)
    if name is not None or epoch > EPOCH_EXHAUSTED:
        raise CommandError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {producer_id}: epoch {epoch} was not assigned to it"
            + ("" if name is None else f"; InitProducerId raises that of {name!r}"),
        )
    if claim.oldest_open:
        raise CommandError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {producer_id}: epoch {epoch} begins at sequence 0, not {claim.oldest_open}",
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
    return _FRESH


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
    for name, value in headers:
        if name == HEADER_OPEN:
            oldest_open = _parse_open(value)
        elif name == HEADER_ANSWER:
            answer = value
        elif name == HEADER_FINGERPRINT:
            fingerprint = value or b""
    producers.replay_command(
        header.producer_id,
        header.producer_epoch,
        Applied(header.base_sequence, header.end_offset, header.epoch, answer, fingerprint),
        oldest_open,
        header.max_timestamp,
    )


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
