"""How long the death of a leader may keep writers waiting, and whether a run kept to it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

P50_MAX_MS = 225.0
LONGEST_MAX_MS = 600.0


def exceeded(
    times_ms: Sequence[float], *, p50_max_ms: float | None, longest_max_ms: float | None
) -> list[str]:
    """One sentence for each bound that these times break; None is no bound.

    p50 is the median: of an even number of times the mean of the middle two. No times at all
    break whatever bound there is.
    """
    bounds = [bound for bound in (p50_max_ms, longest_max_ms) if bound is not None]
    if bounds and not times_ms:
        return ["fail-over: no leader was killed, so that no bound was kept"]
    found = []
    for name, measure, bound in (
        ("p50", statistics.median, p50_max_ms),
        ("the longest", max, longest_max_ms),
    ):
        if bound is not None and (seen := measure(times_ms)) > bound:
            found.append(
                f"fail-over: {name} of {len(times_ms)} kills is {seen:.0f} ms, "
                f"above the bound of {bound:g} ms"
            )
    return found
