"""Check writes against the log: acknowledged exactly once, unknown at most once, refused never."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence

from history.history import History, LogBatch, LogGap
from history.operation import Operation, Outcome
from history.violation import Violation


def log_violations(log: Sequence[LogBatch], gaps: Sequence[LogGap] = ()) -> list[Violation]:
    """Return gaps and overlaps between batches, and falling epochs. ``gaps`` are known gaps."""
    violations = []
    known = {(gap.base, gap.end) for gap in gaps}
    for before, after in itertools.pairwise(log):
        if after.base != before.end and (before.end, after.base) not in known:
            text = f"offset {after.base} follows {before.end}"
            violations.append(Violation("log-gap", "log", text))
        if after.epoch < before.epoch:
            text = f"epoch {after.epoch} at {after.base} follows epoch {before.epoch}"
            violations.append(Violation("log-epoch", "log", text))
    violations += [
        Violation("log-batch", "log", f"[{each.base}, {each.end}) is not a valid range")
        for each in log
        if each.end <= each.base
    ]
    return violations


def write_violations(history: History) -> list[Violation]:
    """Find lost, repeated and impossible writes by their marks. Empty without a log."""
    log = history.log
    if not log:
        return []
    places: dict[str, list[LogBatch]] = defaultdict(list)
    for batch in log:
        for mark in batch.marks:
            places[mark].append(batch)
    violations = []
    for each in history.operations:
        if each.mark:
            violations += _evaluate(each, places.pop(each.mark, []), history)
    violations += [
        Violation("nobodys-write", "log", f"{mark} at offset {found[0].base} matches no call")
        for mark, found in places.items()
    ]
    return violations


def _evaluate(write: Operation, found: Sequence[LogBatch], history: History) -> list[Violation]:
    def broken(rule: str, text: str) -> list[Violation]:
        return [Violation(rule, write.key, f"{write.mark}: {text}", (write,))]

    ends = ", ".join(str(batch.end) for batch in found)
    if len(found) > 1:
        return broken("applied-twice", f"is in the log {len(found)} times, up to offsets {ends}")
    if write.outcome is Outcome.FAILED:
        return broken("applied-though-refused", f"is in the log up to {ends}") if found else []
    if write.outcome is Outcome.UNKNOWN:
        return []
    if not found:
        # A batch that was trimmed before it was read proves nothing.
        if history.is_unread(write.offset - 1):
            return []
        return broken("lost-write", f"acknowledged at {write.offset}, but not in the log")
    if found[0].end != write.offset:
        return broken("wrong-offset", f"acknowledged at {write.offset}, but it ends at {ends}")
    return []
