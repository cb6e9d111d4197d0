"""Search for a linearization: the algorithm of Wing and Gong with Lowe's cache of configurations.

Every operation takes effect at one moment of its closed interval. The search looks for an order
that contradicts neither the intervals nor the model. Optional operations may be omitted.

Three optimisations, none of which changes the result:

- A configuration (the placed operations and the resulting state) is entered only once. The same
  configuration with more optional operations used is not entered either.
- An operation that may come next and does not change the state is placed next.
- The configuration with the most placed operations is taken first; ties go to the one with the
  fewest optional operations.

See: Wing, Gong: Testing and Verifying Concurrent Objects (1993); Lowe: Testing for
Linearizability (2017).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

S = TypeVar("S", bound=Hashable)
O = TypeVar("O")  # noqa: E741 - an operation
FOREVER = 1 << 62
STEPS_MAX = 1_000_000
"""Default bound of one search, in configurations; beyond it the result is UNKNOWN."""


class CheckResult(Enum):
    """The result of a search."""

    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"
    """The budget was exhausted first: neither proven nor refuted."""


class Timed(NamedTuple, Generic[O]):
    """An operation and the closed interval [begin, end] that it takes effect in."""

    begin: int
    end: int
    operation: O
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Found(Generic[S, O]):
    """The result, and the furthest configuration that the search reached."""

    check_result: CheckResult
    steps: int
    state: S
    """State after the most operations that could be placed."""
    stuck: tuple[O, ...] = ()
    """Operations that must come next in that state and cannot."""


class _Place(NamedTuple, Generic[S]):
    """A configuration. Placed are all required operations below ``base``, those of ``mask`` above
    it (bit 0: ``base``), and the optional ones of ``used``.
    """

    base: int
    mask: int
    used: int
    state: S


def search(
    operations: Sequence[Timed[O]],
    start: S,
    step: Callable[[S, O], S | None],
    *,
    steps_max: int = STEPS_MAX,
) -> Found[S, O]:
    """Search for an order, in at most ``steps_max`` configurations."""
    return _Search(operations, step).run(start, steps_max)


class _Search(Generic[S, O]):
    def __init__(self, operations: Sequence[Timed[O]], step: Callable[[S, O], S | None]) -> None:
        ordered = sorted(operations, key=lambda each: (each.begin, each.end))
        self._required = [each for each in ordered if not each.is_optional]
        self._optional = [each for each in ordered if each.is_optional]
        self._step = step
        self._entered: dict[tuple[int, int, S], list[int]] = {}
        self._heap: list[tuple[int, int, int, _Place[S]]] = []
        self._count = 0

    def run(self, start: S, steps_max: int) -> Found[S, O]:
        self._enter(_Place(0, 0, 0, start))
        furthest, most = _Place(0, 0, 0, start), -1
        steps = 0
        while self._heap:
            place = heapq.heappop(self._heap)[3]
            placed = place.base + place.mask.bit_count()
            if placed == len(self._required):
                return Found(CheckResult.VALID, steps, place.state)
            if placed > most:
                furthest, most = place, placed
            if steps >= steps_max:
                return self._unplaced(CheckResult.UNKNOWN, steps, furthest)
            steps += 1
            self._expand(place)
        return self._unplaced(CheckResult.INVALID, steps, furthest)

    def _unplaced(self, check_result: CheckResult, steps: int, place: _Place[S]) -> Found[S, O]:
        following, _ = self._following(place)
        stuck = tuple(self._required[index].operation for index in following)
        return Found(check_result, steps, place.state, stuck)

    def _following(self, place: _Place[S]) -> tuple[list[int], int]:
        """Return the required operations that may come next, and the latest time at which they,
        or an optional one, may begin.
        """
        following: list[int] = []
        horizon = FOREVER
        base, mask = place.base, place.mask
        for index in range(base, len(self._required)):
            begin, end = self._required[index][:2]
            if begin > horizon:
                break
            if not mask >> (index - base) & 1:
                following.append(index)
                horizon = min(horizon, end)
        # Operations are visited by start time, so an early one may have passed a bound that a
        # later one tightened.
        return [i for i in following if self._required[i].begin <= horizon], horizon

    def _expand(self, place: _Place[S]) -> None:
        following, horizon = self._following(place)
        after: list[_Place[S]] = []
        for index in following:
            state = self._step(place.state, self._required[index].operation)
            if state is None:
                continue
            next_place = self._with(place, index, state)
            if state == place.state:
                self._enter(next_place)
                return
            after.append(next_place)
        for index, each in enumerate(self._optional):
            if each.begin > horizon:
                break
            if not place.used >> index & 1:
                state = self._step(place.state, each.operation)
                if state is not None and state != place.state:
                    after.append(place._replace(used=place.used | 1 << index, state=state))
        for each_place in after:
            self._enter(each_place)

    @staticmethod
    def _with(place: _Place[S], index: int, state: S) -> _Place[S]:
        base, mask = place.base, place.mask | 1 << (index - place.base)
        while mask & 1:
            mask >>= 1
            base += 1
        return _Place(base, mask, place.used, state)

    def _enter(self, place: _Place[S]) -> None:
        before = self._entered.setdefault((place.base, place.mask, place.state), [])
        now_used = place.used
        for used in before:
            if used & now_used == used:
                return
        before.append(now_used)
        self._count += 1
        placed = place.base + place.mask.bit_count()
        heapq.heappush(self._heap, (-placed, now_used.bit_count(), self._count, place))
