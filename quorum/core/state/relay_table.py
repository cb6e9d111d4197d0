"""What a relay keeps of the observers that fetch from it. A container with the arithmetic.

Only what a relay needs: positions for the report upstream, and held Fetches. Nothing here is ever
counted towards a commit, a read or check quorum.

See: KIP-630 (630.5: the log is trimmed only below what live replicas still need).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from quorum.core.messages.fetch_messages import Subtree
from quorum.core.state.held_fetches import HeldFetches
from quorum.core.state.replica_progress import ReplicaProgress
from quorum.types import Epoch, NodeId, ReplicaKey

LINKS_MAX = 256
"""Observers whose route a report names; all of them are counted. Each takes 8 bytes."""
LINKS_REPEAT_MS = 10_000
"""How often unchanged routes are reported again, because a report may get lost."""


@dataclass(slots=True)
class Relay:
    """The subtree of one relay. Bounded by the caller through ``len(downstream)``."""

    me: NodeId
    downstream: dict[ReplicaKey, ReplicaProgress] = field(default_factory=dict)
    held: HeldFetches = field(default_factory=HeldFetches)
    subtree: Subtree | None = None
    """What is reported upstream. Its low is never above the truth: positions only rise between
    two ``refresh`` calls, and one that is lower is taken in by ``note``."""
    silent_until_ms: int = 0
    """Until then, observers may return that fetched from an earlier process run of this relay. This
    relay knows nothing of them."""
    upkeep_due_ms: int = 0
    last_report: tuple[Epoch, tuple[tuple[NodeId, NodeId], ...]] = (-1, ())
    """The leadership term and the routes last reported in it."""
    report_again_ms: int = 0
    answered_to: int = 0
    """The high watermark with which held Fetches were last looked through."""

    def note(self, progress: ReplicaProgress) -> None:
        """Refresh the subtree if a replica's reported position lowers its minimum."""
        low = needed_from(progress)
        known = self.subtree
        if known is None or low < known.low:
            self.refresh()

    def refresh(self) -> None:
        """Count the subtree anew: O(downstream)."""
        if not self.downstream:
            self.subtree = None
            return
        every = sorted(self.downstream.values(), key=lambda each: each.key.id)
        links = [(each.key.id, self.me) for each in every]
        for each in every:
            links += each.subtree.links if each.subtree else ()
        self.subtree = Subtree(
            low=min(needed_from(each) for each in every),
            members=sum(1 + (each.subtree.members if each.subtree else 0) for each in every),
            links=tuple(links[:LINKS_MAX]),
            is_provisional=any(each.subtree.is_provisional for each in every if each.subtree),
        )

    def reported(self, now_ms: int, log_start: int) -> Subtree | None:
        """Return the subtree below this relay as reported upstream; None without observers.

        An observer that has not fetched since a restart counts as needing this relay's whole log.
        """
        subtree = self.subtree
        if now_ms < self.silent_until_ms:
            known = subtree or Subtree(low=log_start, members=0)
            return replace(known, low=min(known.low, log_start), is_provisional=True)
        return subtree

    def report(self, now_ms: int, epoch: Epoch, log_start: int) -> Subtree | None:
        """Return the report for the next Fetch, with routes only if new, to keep Fetches small."""
        subtree = self.reported(now_ms, log_start)
        if subtree is None or not subtree.links:
            return subtree
        if self.last_report == (epoch, subtree.links) and now_ms < self.report_again_ms:
            return replace(subtree, links=())
        self.last_report = (epoch, subtree.links)
        self.report_again_ms = now_ms + LINKS_REPEAT_MS
        return subtree

    def forget_silent(self, limit_ms: int) -> bool:
        """Drop observers silent since ``limit_ms``; return whether there were any."""
        silent = [key for key, each in self.downstream.items() if each.live_since_ms < limit_ms]
        for key in silent:
            del self.downstream[key]
        return bool(silent)


def needed_from(progress: ReplicaProgress) -> int:
    """The lowest offset that a replica or anybody below it still has to fetch; at least 0."""
    return max(0, progress.trim_position)
