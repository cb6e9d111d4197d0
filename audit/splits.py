"""Split a read into ranges of equal cost, one for each task.

What a task reads before its own range costs time as well: it replays from the newest checkpoint
below, and it verifies what follows the nearest entry of the file in which it begins. So ranges are
not of equal length: they begin at checkpoints where that is cheaper, and are shorter far behind
one.

Runs on Spark executors: its imports must not reach an event loop, gRPC or protobuf.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass

from audit.history_rows import HistoryWanted
from audit.plan import ReadPlan
from audit.schema import HISTORY, PARTITIONS

EFFICIENCY_MIN = 0.7
"""Least part of the tasks' time that goes into what one task alone would do."""
_HALVINGS = 60
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Costs:
    """Processor time per record before a range, in parts of that per record in the range."""

    replay: float = 0.0
    """To replay it; 0 if rows do not depend on records before them."""
    verify: float = 0.0
    """To verify it, behind the entry at which the replay or the range begins."""


ALL_ROWS = Costs(replay=0.4, verify=0.04)
"""Of ``history`` and ``partitions``: 6 of 15 microseconds."""
_WITHOUT_PARTITIONS = Costs(replay=0.9, verify=0.2)
"""Of other typed tables, whose rows are few: nearly all of 2.7 microseconds is to find them."""
_WITHOUT_STATE = Costs(verify=0.12)
_OF_CONTROL = Costs(verify=0.9)
"""Of control records: all others are verified and no more."""


def costs_of(table: str, types: Collection[str] = ()) -> Costs:
    """Return the costs of rows of a table, of these types."""
    if table != HISTORY:
        return ALL_ROWS if table == PARTITIONS else _WITHOUT_PARTITIONS
    wanted = HistoryWanted(0, 0, frozenset(types))
    if not wanted.needs_data:
        return _OF_CONTROL
    if not wanted.needs_state:
        return _WITHOUT_STATE
    return ALL_ROWS if wanted.needs_partitions else _WITHOUT_PARTITIONS


def splits(plan: ReadPlan, start: int, end: int, count: int, costs: Costs) -> list[tuple[int, int]]:
    """Split [start, end) into at most ``count`` ranges, so that the longest task is short.

    The range of a baseline stays whole. Ranges are never empty.
    """
    if start >= end:
        return []
    split = _Split(plan, start, end, costs)
    return split.ranges(split.longest(count), end - start)


def default_count(plan: ReadPlan, start: int, end: int, most: int, costs: Costs) -> int:
    """Return a number of tasks, at most ``most``, that do little more than one would alone."""
    if start >= end:
        return 1
    split = _Split(plan, start, end, costs)
    alone = split.cost(start, end)
    while most > 1 and alone < EFFICIENCY_MIN * most * split.longest(most):
        most //= 2
    return max(most, 1)


class _Split:
    """A range to split, and what its parts cost, in the time of a record in a range."""

    def __init__(self, plan: ReadPlan, start: int, end: int, costs: Costs) -> None:
        self._plan = plan
        self._start = start
        self._end = end
        self._costs = costs
        self._begins = [
            offset
            for segment in plan.segments
            for offset in (segment.base_offset, *(entry.offset for entry in segment.entries))
        ]
        self._whole_until = 0 if plan.baseline is None else plan.baseline.end_offset

    def cost(self, start: int, end: int) -> float:
        """Return what a task costs that reads a range."""
        return self._before(start) + end - min(max(start, self._plan.start_offset), end)

    def longest(self, count: int) -> float:
        """Return the least cost of the longest of so many tasks."""
        low, high = 0.0, self.cost(self._start, self._end)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if len(self.ranges(middle, count)) > count:
                low = middle
            else:
                high = middle
        return high

    def ranges(self, cost_max: float, count: int) -> list[tuple[int, int]]:
        """Return ranges that cost at most so much each, or hold one offset; stop behind ``count``.

        A task that begins later never ends earlier, so each one reaches as far as it can.
        """
        found: list[tuple[int, int]] = []
        at = self._start
        while at < self._end and len(found) <= count:
            room = int(cost_max - self._before(at) + _ROUNDING)
            behind = max(at, self._plan.start_offset) + room
            behind = min(max(behind, at + 1, self._whole_until), self._end)
            found.append((at, behind))
            at = behind
        return found

    def _before(self, at: int) -> float:
        """Return what a task costs before the first record of its own range."""
        plan = self._plan
        if at < self._whole_until:
            return 0.0
        begin = at
        if self._costs.replay:
            checkpoint = plan.replay_start(at)
            if checkpoint is not None:
                begin = checkpoint.end_offset
            elif plan.start_offset == 0:
                begin = 0
        found = bisect_right(self._begins, begin) - 1
        verified = begin - self._begins[found] if found >= 0 else 0
        return self._costs.replay * (at - begin) + self._costs.verify * verified


def files_in(plan: ReadPlan, start: int, end: int) -> int:
    """Return how many segment files a range touches."""
    return sum(file.start_offset < end and file.end_offset > start for file in plan.segments)
