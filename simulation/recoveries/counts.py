"""Counters of runs with recoveries. A run in which nothing happened proves nothing."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(slots=True)
class RecoveryCounts:
    """What happened, over all runs."""

    recoveries: int = 0
    lossy_recoveries: int = 0
    """Recoveries after which a record that a reader had read is gone."""
    batches_read: int = 0
    truncations: int = 0
    """Reported to consumers, each at the true offset."""
    batches_watched: int = 0
    """Handed out by the watch."""
    watch_truncations: int = 0
    """Reported to the watch, each at the true offset."""
    deposed_asked: int = 0
    """Calls of consumers that a cut-off node answered, mostly a deposed leader."""
    former_voters: int = 0
    """Nodes that came back with the directory of an earlier incarnation."""
    former_refusals: int = 0
    """Reads that a former voter refused, because the reader had met a newer incarnation."""
    processed: int = 0
    """Inputs whose output and position were acknowledged."""
    reprocessed: int = 0
    """Inputs processed again, because their output was lost."""
    repeats: int = 0
    """Commands that were sent again under their number."""
    zombies: int = 0
    """Writes of former processes that were refused by the producer epoch."""
    stale_positions: int = 0
    """Writes refused with LOG_INCARNATION_MISMATCH."""

    def add(self, other: RecoveryCounts) -> None:
        """Sum up."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def missing(self) -> list[str]:
        """Return the counters that are 0: that situation did not occur."""
        return [each.name for each in fields(self) if not getattr(self, each.name)]
