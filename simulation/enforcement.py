"""Which minima apply to a lane, and the reason where they do not.

The table of minima is for a hundred seeds of the usual shape and length. It is scaled by seeds, and
by events for counters that grow with them.
"""

from __future__ import annotations

from simulation.minima import MINIMA
from simulation.options import FAULT_PHASE_EVENTS, Options

MINIMA_FROM_SEEDS = 50
"""With fewer seeds than this, some events may not occur at all."""
MINIMA_FROM_EVENTS = 1_000
"""In shorter fault phases, slow consequences are missing rather than rarer in proportion."""
NOT_ENFORCED = "not enforced"
_MINIMA_SEEDS = 100


def why_not_enforced(options: Options, seeds: int) -> str:
    """Return why the minima do not apply to a lane of so many seeds; empty if they do."""
    reasons = []
    if options.voters or options.observers:
        reasons.append("only in clusters of the usual shape everything may happen")
    if seeds < MINIMA_FROM_SEEDS:
        reasons.append(f"{seeds} seeds are fewer than {MINIMA_FROM_SEEDS}")
    if options.events < MINIMA_FROM_EVENTS:
        reasons.append(
            f"fault phases of {options.events} events are shorter than {MINIMA_FROM_EVENTS}"
        )
    return "; ".join(reasons)


def enforced(options: Options, seeds: int) -> dict[str, int]:
    """Return the required minima of a lane of so many seeds, by name.

    The length of fault phases is always required; all others only where ``why_not_enforced`` is
    empty.
    """
    least = {"events": options.events * seeds}
    if not why_not_enforced(options, seeds):
        usual = _MINIMA_SEEDS * FAULT_PHASE_EVENTS
        for name, count in MINIMA[options.profile].items():
            least[name] = count * seeds * options.events // usual
    return least
