"""Where the log shows the writes of unknown outcome: a hint for both searches.

An order that keeps to narrower intervals, and uses fewer of the optional operations, is an order
of the history as it is. So a search with hints may say VALID, and nothing else: whatever else it
says, the search goes on without them, and the log has had no part in the verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from history.history import LogBatch
from history.operation import Operation, Outcome
from history.search import Timed

Places = Mapping[int, int]
"""By number of a write of unknown outcome: the offset where its batch ends in the log."""
HINTED_STEPS_MAX = 50_000
"""Bound of a search with hints, which goes straight to its end or nowhere."""


def places_in(operations: Sequence[Operation], log: Sequence[LogBatch]) -> Places:
    """Those found exactly once; the others are not in the log, or were trimmed from it."""
    ends = {mark: batch.end for batch in log for mark in batch.marks}
    count = Counter(mark for batch in log for mark in batch.marks)
    return {
        each.number: ends[each.mark]
        for each in operations
        if each.outcome is Outcome.UNKNOWN and each.mark and count[each.mark] == 1
    }


def narrowed(timed: Sequence[Timed[Operation]], places: Places) -> list[Timed[Operation]]:
    """The same operations, on a finer clock: those with an offset at moments in the order of the
    log, as early as their intervals allow; optional ones that the log does not show left out.

    What the log's order would push out of its interval, and what names no offset, keeps its own.
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
