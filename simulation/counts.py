"""Counters of a simulated run."""

from __future__ import annotations

from dataclasses import dataclass, field, fields


@dataclass(slots=True)
class Counts:
    """Counters of a run. A run in which nothing happened proves nothing."""

    events: int = 0
    leaders: int = 0
    truncations: int = 0
    installs: int = 0
    checkpoints: int = 0
    crashes: int = 0
    lossy_crashes: int = 0
    duplicates: int = 0
    acknowledged: int = 0
    reads: int = 0
    lost: int = 0
    duplicated: int = 0
    cut: int = 0
    refused: int = 0
    quarantines: int = 0
    straggled: int = 0
    cut_from_clients: int = 0
    stalls: int = 0
    refused_starts: int = 0
    regressions: int = 0
    voter_changes: int = 0
    disqualified: int = 0
    rollbacks_detected: int = 0
    id_blocks: int = 0
    strangers: int = 0
    strangers_served: int = 0
    producers_left: int = 0
    watch_states: int = 0
    watch_changes: int = 0
    watch_resumes: int = 0
    watch_restarts: int = 0
    watch_cut_off: int = 0
    log_batches: int = 0
    log_lookups: int = 0
    log_resets: int = 0
    checkpoint_states: int = 0
    processed: int = 0
    processes_fenced: int = 0
    relay_answers: int = 0
    relay_chains: int = 0
    relay_refusals: int = 0
    relay_reports: int = 0
    upstream_changes: int = 0
    copies_refused: int = 0
    leadership_transfers: int = 0
    downloads_resumed: int = 0
    resumed_installs: int = 0
    downloads_damaged: int = 0
    acts: dict[str, int] = field(default_factory=dict)
    """Counts of faults that took effect, by name."""

    def numbers(self) -> dict[str, int]:
        """Return all counters by name, faults included."""
        plain = {name: getattr(self, name) for name in _COUNTED}
        return {**plain, **{name: self.acts[name] for name in sorted(self.acts)}}

    def add(self, other: Counts) -> None:
        """Sum up."""
        for name in _COUNTED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name, count in other.acts.items():
            self.acts[name] = self.acts.get(name, 0) + count

    def __str__(self) -> str:
        return " ".join(f"{name}={count}" for name, count in self.numbers().items())


_COUNTED = tuple(each.name for each in fields(Counts) if each.name != "acts")
