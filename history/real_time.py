"""Linearizability of one key in real time: writes, refusals that reveal state, linearizable reads.

Offsets in responses are ignored: the check result does not depend on the log. The log only
provides hints for the search (``hints``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from history.hints import Places, narrowed, search_with_hints
from history.model import TELLING, Model, State
from history.operation import Level, Operation, Outcome
from history.search import FOREVER, STEPS_MAX, CheckResult, Found, Timed, search
from history.violation import Violation

RULE = "linearizable"
SHOWN_BEFORE = 12
"""Number of operations shown before the one that cannot be placed."""


def find_order(
    key: str,
    operations: Sequence[Operation],
    *,
    places: Places | None = None,
    steps_max: int = STEPS_MAX,
) -> Found[State, Operation]:
    """Search an order that explains all responses about one key.

    ``places`` are hints that speed up the search; they cannot change its result to INVALID.
    """
    timed = [each for each in map(_timed, operations) if each is not None]
    model = Model(key, operations)
    if places is not None and any(each.is_optional for each in timed):
        return search_with_hints(timed, narrowed(timed, places), model, steps_max=steps_max)
    return search(timed, model.initial, model.step, steps_max=steps_max)


def explain(key: str, operations: Sequence[Operation], *, steps_max: int = STEPS_MAX) -> Violation:
    """Explain why there is no order: the shortest prefix of the history that has none.

    ``operations`` must be known to have no order.
    """
    ends = sorted({each.end for each in operations if each.end is not None})
    low, high = 0, len(ends) - 1
    while low < high:
        middle = (low + high) // 2
        found = find_order(key, cut(operations, ends[middle]), steps_max=steps_max)
        if found.check_result is CheckResult.INVALID:
            high = middle
        else:
            low = middle + 1
    prefix = cut(operations, ends[low])
    found = find_order(key, prefix, steps_max=steps_max)
    last = next(each for each in prefix if each.end == ends[low])
    message = (
        f"no order of the first {len(prefix)} operations explains the responses that clients "
        f"received; without the response to operation {last.number} there is one. "
        f"Furthest state: {found.state}"
    )
    return Violation(RULE, key, message, _shown(prefix, last, found))


def cut(operations: Sequence[Operation], end: int) -> list[Operation]:
    """Return the history as of ``end``: operations without a response by then are unknown."""
    known = []
    for each in operations:
        if each.call > end:
            continue
        if each.end is None or each.end <= end:
            known.append(each)
        elif not each.is_read:
            known.append(
                replace(each, outcome=Outcome.UNKNOWN, end=None, result={}, error="", offset=-1)
            )
    return known


def _timed(operation: Operation) -> Timed[Operation] | None:
    """Return the operation with its interval, or None if it constrains nothing in real time."""
    outcome = operation.outcome
    if operation.is_read and operation.level is not Level.LINEARIZABLE:
        return None
    if outcome is Outcome.UNKNOWN or operation.end is None:
        if operation.is_read or outcome is Outcome.FAILED:
            return None
        return Timed(operation.call, FOREVER, operation, is_optional=True)
    if outcome is Outcome.FAILED and (operation.is_read or operation.error not in TELLING):
        return None
    return Timed(operation.call, operation.end, operation)


def _shown(
    prefix: Sequence[Operation], last: Operation, found: Found[State, Operation]
) -> tuple[Operation, ...]:
    """Return the end of the prefix, and the operations that are stuck or may still take effect."""
    answered = [each for each in prefix if _timed(each) is not None and each.end is not None]
    newest = sorted(answered, key=lambda each: each.end or 0)[-SHOWN_BEFORE:]
    open_ones = [each for each in prefix if each.outcome is Outcome.UNKNOWN][-SHOWN_BEFORE:]
    numbers = {each.number for each in (*newest, *open_ones, *found.stuck, last)}
    return tuple(each for each in prefix if each.number in numbers)
