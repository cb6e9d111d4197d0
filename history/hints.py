"""Hints for both searches: the offsets at which the log shows writes of unknown outcome.

An order that respects the narrowed intervals and omits more of the optional operations is also an
order of the original history. A search with hints may therefore only return VALID; after any other
result the search is repeated without hints, so the log cannot influence the check result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from history.history import LogBatch
from history.model import Model, State
from history.operation import Operation, Outcome
from history.search import CheckResult, Found, Timed, search

Places = Mapping[int, int]
"""Number of a write of unknown outcome: the end offset of its batch in the log."""
HINTED_STEPS_MAX = 50_000
"""Bound of a search with hints, which either succeeds almost at once or fails."""


def places_in(operations: Sequence[Operation], log: Sequence[LogBatch]) -> Places:
    """Return the writes found exactly once; others are not in the log or were trimmed."""
    ends = {mark: batch.end for batch in log for mark in batch.marks}
    count = Counter(mark for batch in log for mark in batch.marks)
    return {
        each.number: ends[each.mark]
        for each in operations
        if each.outcome is Outcome.UNKNOWN and each.mark and count[each.mark] == 1
    }


def search_with_hints(
    timed: Sequence[Timed[Operation]],
    hinted: Sequence[Timed[Operation]],
    model: Model,
    *,
    steps_max: int,
) -> Found[State, Operation]:
    """Search ``timed``; first ``hinted``, the same with narrower intervals, for a quick VALID."""
    first = search(hinted, model.initial, model.step, steps_max=HINTED_STEPS_MAX)
    if first.check_result is CheckResult.VALID:
        return first
    found = search(timed, model.initial, model.step, steps_max=steps_max)
    return replace(found, steps=found.steps + first.steps)


def narrowed(timed: Sequence[Timed[Operation]], places: Places) -> list[Timed[Operation]]:
    """Return the operations with intervals narrowed to the order of the log.

    Operations with an offset are placed in log order, as early as their intervals allow. Optional
    operations that the log does not show are omitted. An operation keeps its own interval if it
    has no offset, or if log order would move it out of that interval.
    """
    kept = [each for each in timed if not each.is_optional or each.operation.number in places]
    fine = len(kept) + 1
    ordered = sorted(
        (each for each in kept if _offset(each, places) >= 0),
        # A read at an offset sees the write that ends there.
        key=lambda each: (_offset(each, places), each.operation.is_read, each.begin),
    )
    moments: dict[int, int] = {}
    now = 0
    for rank, each in enumerate(ordered):
        now = max(now, each.begin)
        if now <= each.end:
            moments[each.operation.number] = now * fine + rank
    found = []
    for each in kept:
        moment = moments.get(each.operation.number)
        begin, end = each.begin * fine, each.end * fine + fine - 1
        span = (begin, end) if moment is None else (moment, moment)
        found.append(Timed(*span, each.operation, each.is_optional and moment is None))
    return found


def _offset(timed: Timed[Operation], places: Places) -> int:
    return places.get(timed.operation.number, timed.operation.offset)
