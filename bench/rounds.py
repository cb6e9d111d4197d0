"""Rounds that load several systems one after the other, and the choice of rounds that count.

A single write is a chain of short turns on processors that sleep in between. Steal time slows the
systems unequally: those with more turns more. So a round in which any system lost more than
``STOLEN_MAX`` is repeated, and does not count if there are undisturbed rounds. The choice depends
on steal time only, never on the figures.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

STOLEN_MAX = 0.01
REPEATS_MAX = 3
"""Rounds measured at most, per round wanted."""

_LOST = ("watch_restarts", "events_missed")

Row: TypeAlias = dict[str, Any]
Round: TypeAlias = Mapping[str, Row]
"""Figures by the system's name; ``stolen`` is the steal share meanwhile, None if unknown."""


def is_quiet(each: Round) -> bool:
    """Return whether the steal share was low for all systems of the round."""
    return all((row["stolen"] or 0.0) <= STOLEN_MAX for row in each.values())


def measure_rounds(measure: Callable[[], Round], wanted: int) -> list[Round]:
    """Measure until ``wanted`` rounds were quiet, at most ``REPEATS_MAX`` times as many."""
    rounds: list[Round] = []
    while sum(map(is_quiet, rounds)) < wanted and len(rounds) < wanted * REPEATS_MAX:
        rounds.append(measure())
    return rounds


def summarise(rounds: Sequence[Round], ours: str) -> dict[str, Row]:
    """Return one row per system: its run of the median rate, and the comparison round by round.

    Only quiet rounds count if there is one; otherwise all count. Besides the system's figures, a
    row has ``rates`` of the rounds that count, ``stolen`` (their largest share), ``rounds`` (how
    many count) and ``disturbed`` (how many were not quiet). What watchers lost is the sum of all.
    A peer's row has ``rate_ratio`` and ``p50_ratio``, medians of ours by the peer's of the same
    round, and ``rate_ratios`` and ``p50_ratios``, all of them.

    Args:
        rounds: At least one; a peer that failed may be missing in the later ones.
        ours: The system that the others are compared with; it is in every round.
    """
    quiet = [each for each in rounds if is_quiet(each)]
    counted = quiet or list(rounds)
    names = dict.fromkeys(name for each in counted for name in each)
    found = {name: _summary([each[name] for each in counted if name in each]) for name in names}
    for name, row in found.items():
        row["disturbed"] = len(rounds) - len(quiet)
        if name != ours:
            for key, figure in (("rate", "rate"), ("p50", "p50_ms")):
                ratios = [
                    round(each[ours][figure] / each[name][figure], 3)
                    for each in counted
                    if name in each
                ]
                row[f"{key}_ratio"] = statistics.median(ratios)
                row[f"{key}_ratios"] = ratios
    return found


def _summary(rows: Sequence[Row]) -> Row:
    ordered = sorted(rows, key=lambda row: float(row["rate"]))
    shares = [row["stolen"] for row in rows if row["stolen"] is not None]
    lost = {name: sum(row[name] for row in rows) for name in _LOST if name in rows[0]}
    return {
        **ordered[len(ordered) // 2],
        **lost,
        "rates": [round(float(row["rate"])) for row in ordered],
        "stolen": max(shares, default=None),
        "rounds": len(rows),
    }
