"""Which commands of a producer are new, and what a batch header says about its producer.

One command is one batch is one sequence number. A refusal or a no-op consumes no number, unless
the command was a repeat: then copies of it may be on their way, and a batch of its own fences
them. Several commands may be outstanding, so the applied sequences may have holes: a hole at or
above the oldest open sequence may still be filled, later than its successors.

See: requirements 360.7 and 360.8; ADR 10. The table itself is
``statemachine.sections.producers``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

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
"""Record header with the oldest sequence the client still waits for, as decimal digits."""

HEADER_ANSWER = "answer"
"""Record header with the answer's fields beyond its position, as msgpack."""

ANSWER_REFUSED = "refused"
"""Key of an answer that refuses: the code's number and a message. Its batch changes nothing but
what is known of the producer: the number of a command that was sent twice is taken (360.8)."""

SEQUENCE_MAX = (1 << 31) - 1


class HasProducers(Protocol):
    """An image or a delta over one."""

    @property
    def producers(self) -> ProducersView:
        """The producers section."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """The command was never applied and may be judged."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The command was applied; this was its first answer, to be given again."""

    first: Applied


_FRESH = Fresh()


def judge_sequence(
    view: HasProducers,
    producer_id: int,
    producer_epoch: int,
    sequence: int,
    oldest_open: int,
    *,
    window: int = PRODUCER_WINDOW,
) -> Fresh | Duplicate:
    """Decide whether a producer's command is new or was applied before.

    ``view`` includes everything appended, committed or not. ``oldest_open`` is the oldest
    sequence whose answer the client still waits for; sequences may run ahead of it by less
    than ``window``, which is capped at ``PRODUCER_WINDOW`` because no more answers are kept.

    Raises:
        CommandError: UNKNOWN_PRODUCER_ID; INVALID_PRODUCER_EPOCH for an older epoch;
            OUT_OF_ORDER_SEQUENCE_NUMBER for a sequence outside what the client itself calls
            open, and for a newer epoch that does not begin at 0; DUPLICATE_SEQUENCE_NUMBER
            below the window; PRODUCER_WINDOW_EXCEEDED above it.
    """
    state = view.producers.state(producer_id)
    if state is None:
        raise CommandError(
            ErrorCode.UNKNOWN_PRODUCER_ID, f"producer {producer_id} is not known or has expired"
        )
    if producer_epoch < state.epoch:
        raise CommandError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {producer_id}: epoch {producer_epoch} is older than {state.epoch}",
        )
    if not 0 <= oldest_open <= sequence <= SEQUENCE_MAX:
        raise CommandError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {producer_id}: sequence {sequence} with oldest open {oldest_open}",
        )
    if producer_epoch > state.epoch:
        if oldest_open:
            raise CommandError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id}: epoch {producer_epoch} begins at sequence 0, "
                f"not {oldest_open}",
            )
        state = ProducerState(producer_epoch)
    return _judge_in_epoch(state, producer_id, sequence, oldest_open, min(window, PRODUCER_WINDOW))


def _judge_in_epoch(
    state: ProducerState, producer_id: int, sequence: int, oldest_open: int, window: int
) -> Fresh | Duplicate:
    floor = max(state.oldest_open, oldest_open)
    if sequence >= floor + window:
        raise CommandError(
            ErrorCode.PRODUCER_WINDOW_EXCEEDED,
            f"producer {producer_id}: sequence {sequence} is {window} or more beyond the oldest "
            f"open one, {floor}",
        )
    if sequence > state.last_sequence:
        return _FRESH
    first = state.answer_to(sequence)
    if first is not None:
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
    """Note that the batch of a producer's command was applied.

    Raises:
        ReplayError: The producer or sequence contradicts the table, or ``open`` is no number.
    """
    oldest_open = 0
    answer = None
    for name, value in headers:
        if name == HEADER_OPEN:
            oldest_open = _parse_open(value)
        elif name == HEADER_ANSWER:
            answer = value
    producers.replay_command(
        header.producer_id,
        header.producer_epoch,
        Applied(header.base_sequence, header.end_offset, header.epoch, answer),
        oldest_open,
        header.max_timestamp,
    )


def is_refusal(answer: bytes | None) -> bool:
    """Whether the ``answer`` header of a batch says that its command was refused."""
    if answer is None:
        return False
    try:
        found = msgpack.unpackb(answer)
    except (ValueError, msgpack.UnpackException):
        return False
    return isinstance(found, dict) and ANSWER_REFUSED in found


def encode_open(oldest_open: int) -> bytes:
    """The value of the ``open`` record header."""
    return b"%d" % oldest_open


def _parse_open(value: bytes | None) -> int:
    if value is None or not value.isdigit() or len(value) > 10:
        raise ReplayError(f"record header {HEADER_OPEN!r} is {value!r}, not a sequence number")
    return int(value)
