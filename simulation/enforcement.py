"""Which minima a lane is held to, and why not to all of them.

The table of minima is of a hundred seeds of the usual shape and length. It is scaled by seeds and
by events, as far as what happens grows with them.
"""

from __future__ import annotations

from simulation.minima import MINIMA
from simulation.options import FAULT_PHASE_EVENTS, Options

MINIMA_FROM_SEEDS = 50
"""Fewer seeds than this are too few to ask that everything has happened."""
MINIMA_FROM_EVENTS = 1_000
"""In shorter storms what follows only after a while is not rarer in proportion: it is missing."""
NOT_ENFORCED = "not enforced"
_MINIMA_SEEDS = 100


def why_not_enforced(options: Options, seeds: int) -> str:
    """Why a lane of so many seeds is not held to the minima; empty if it is."""
    reasons = []
    if options.voters or options.observers:
        reasons.append("only in clusters of the usual shape everything may happen")
    if seeds < MINIMA_FROM_SEEDS:
        reasons.append(f"{seeds} seeds are fewer than {MINIMA_FROM_SEEDS}")
    if options.events < MINIMA_FROM_EVENTS:
        reasons.append(f"storms of {options.events} events are shorter than {MINIMA_FROM_EVENTS}")
    return "; ".join(reasons)


def enforced(options: Options, seeds: int) -> dict[str, int]:
    """The least that must have happened in so many seeds, by name.

    Every storm has its length, whatever the shape; the rest is there only where
    ``why_not_enforced`` has nothing to say.
    """
    least = {"events": options.events * seeds}
    if not why_not_enforced(options, seeds):
        usual = _MINIMA_SEEDS * FAULT_PHASE_EVENTS
        for name, count in MINIMA[options.profile].items():
            least[name] = count * seeds * options.events // usual
    return least
