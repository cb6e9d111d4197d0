"""A log start is 0, or some local checkpoint ends at or above it (630.14)."""

from __future__ import annotations

from quorum.core.contract.output import AdvanceLogStart, Effect, ReplaceLogWith
from simulation.invariants.invariant import Invariant
from simulation.invariants.seen import Seen


class LogStartCovered(Invariant):
    """Checked on disk, after every change of the log start or checkpoints, and at every start."""

    name = "log-start-covered"

    def on_persisted(self, seen: Seen, effect: Effect) -> None:
        if type(effect) in (AdvanceLogStart, ReplaceLogWith):
            self._check(seen)

    def on_opened(self, seen: Seen, before: Seen | None) -> None:
        self._check(seen)

    def _check(self, seen: Seen) -> None:
        stores = seen.replica.stores
        start = stores.log.start.offset
        newest = stores.snapshots.latest()
        if start and (newest is None or newest.offset < start):
            self.fail(
                "no checkpoint covers the log start",
                node=seen.id,
                log_start=start,
                snapshots=[str(each) for each in stores.snapshots.list()],
            )
