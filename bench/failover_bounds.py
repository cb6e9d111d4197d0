"""Check fail-over times against bounds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

P50_MAX_MS = 225.0
LONGEST_MAX_MS = 600.0


def exceeded(
    times_ms: Sequence[float], *, p50_max_ms: float | None, longest_max_ms: float | None
) -> list[str]:
    """Return one sentence for each bound that the times exceed; None means no bound.

    p50 is the median: for an even number of times the mean of the middle two. Without times every
    bound counts as exceeded.
    """
    bounds = [bound for bound in (p50_max_ms, longest_max_ms) if bound is not None]
    if bounds and not times_ms:
        return ["fail-over: no leader was killed, so the bounds were not checked"]
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
