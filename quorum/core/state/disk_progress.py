"""Progress of the disk with the work that the core submitted.

All effects share one rising sequence of tickets. A message that promises something waits for one.

Invariants:
    1. ``durable_ticket`` <= ``last_ticket``; both only rise.
    2. ``election_ticket`` <= ``last_ticket``.
    3. ``watch`` runs exactly while a ticket is outstanding.

See: DESIGN.md, "Order of durability".
"""

from __future__ import annotations

from dataclasses import dataclass

from quorum.core.state.disk_watch import DiskWatch
from quorum.core.state.held_fetches import NEVER_MS


@dataclass(slots=True)
class DiskProgress:
    """The tickets handed out and completed, and when the disk has to act next."""

    watch: DiskWatch
    last_ticket: int = 0
    """The newest ticket handed out."""
    durable_ticket: int = 0
    """Everything handed out up to this ticket is durable."""
    election_ticket: int = 0
    """The ticket of the newest ``SaveElectionState``."""
    watermark_store_due_ms: int = NEVER_MS
    """When to store the high watermark; ``NEVER_MS`` if the stored one is up to date."""

    def next_ticket(self, now_ms: int) -> int:
        """Hand out the next ticket; start the watch if the disk was idle."""
        if self.last_ticket == self.durable_ticket:
            self.watch.begin(now_ms)
        self.last_ticket += 1
        return self.last_ticket

    def restart_watch(self, now_ms: int) -> None:
        """Measure from ``now_ms`` on, or stop the watch if nothing is outstanding."""
        if self.durable_ticket < self.last_ticket:
            self.watch.begin(now_ms)
        else:
            self.watch.end()

    def store_watermark_at(self, due_ms: int) -> None:
        """Store the high watermark at ``due_ms``, unless that is planned already."""
        if self.watermark_store_due_ms == NEVER_MS:
            self.watermark_store_due_ms = due_ms

    def store_watermark_now(self, now_ms: int) -> None:
        """Do not wait any longer with a store that is planned."""
        if self.watermark_store_due_ms != NEVER_MS:
            self.watermark_store_due_ms = now_ms
