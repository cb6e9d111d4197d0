"""The claim of a command to a sequence number: whether it was applied before, what it takes.

Most outcomes without records take no number. These do, in a batch of their own: what a copy under
way must not contradict (ADR 31), what changes nothing but comes from an ordered producer, and every
outcome of a named writer's request, because a later process may repeat that (360.8).
"""

from __future__ import annotations

from typing import NamedTuple

import msgpack

from quorate.controller.requests import Answer, RequestContext
from quorum.errors import CommandError, ErrorCode
from statemachine.commands import Command, ImportBatch
from statemachine.fingerprint import owner_digest
from statemachine.producers import (
    ANSWER_REFUSED,
    Duplicate,
    Fresh,
    HasProducers,
    SequenceClaim,
    first_answer_to_request,
)

REQUEST_ID_BYTES_MAX = 255
"""Longest request id of a named writer, because it is kept; the same in the client's limits."""


class Taking(NamedTuple):
    """Which outcomes of a command take its sequence number, besides records."""

    nothing_to_change: bool = False
    refusal: bool = False


NOTHING_TAKEN = Taking()
_ORDERED_TAKE = Taking(nothing_to_change=True)
_REPEATS_TAKE = Taking(nothing_to_change=True, refusal=True)


def claim_of(context: RequestContext, fingerprint: bytes) -> SequenceClaim:
    """Return the claim of a command to the number that it came under."""
    return SequenceClaim(
        context.producer_id,
        context.producer_epoch,
        context.sequence,
        context.oldest_open,
        owner_digest(context.principal),
        fingerprint,
        is_ordered=context.is_ordered,
    )


def applied_before(
    view: HasProducers,
    claim: SequenceClaim,
    by_number: Fresh | Duplicate,
    command: Command,
    request_id: str,
) -> Duplicate | None:
    """Return the first answer if the command was applied: under its request id, or its number.

    Raises:
        CommandError: INVALID_REQUEST: the request id is too long, or another command has it.
    """
    if request_id and not command.dry_run:
        if len(request_id.encode("utf-8", "replace")) > REQUEST_ID_BYTES_MAX:
            raise CommandError(
                ErrorCode.INVALID_REQUEST,
                f"a request id has at most {REQUEST_ID_BYTES_MAX} bytes where it is kept",
            )
        first = first_answer_to_request(view, claim, request_id)
        if first is not None:
            return first
    return by_number if type(by_number) is Duplicate else None


def taking_of(view: HasProducers, command: Command, context: RequestContext) -> Taking:
    """Return which outcomes of a new command take its number."""
    if command.dry_run:
        return NOTHING_TAKEN
    is_kept = bool(context.request_id) and context.producer_id in view.producers.names
    # A range of an import is placed by its offset, so a late copy of it does no harm.
    is_final = (context.is_repeat or is_kept) and type(command) is not ImportBatch
    if is_final:
        return _REPEATS_TAKE
    return _ORDERED_TAKE if context.is_ordered else NOTHING_TAKEN


def first_answer(found: Duplicate) -> Answer:
    """Return the answer that a command got when it was applied."""
    first = found.first
    result = {} if first.answer is None else msgpack.unpackb(first.answer)
    number, message = result.pop(ANSWER_REFUSED, (0, ""))
    try:
        code = ErrorCode(number)
    except ValueError:
        # Of a newer release.
        code = ErrorCode.UNKNOWN_SERVER_ERROR
    return Answer(code, message, first.offset, first.epoch, result)
