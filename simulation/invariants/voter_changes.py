"""Changes of the voter set: one at a time, on a committed base, and with lasting tombstones."""

from __future__ import annotations

from quorum.control_records import LeaderChange, Voters
from quorum.types import ReplicaKey
from simulation.invariants.contents import controls_of
from simulation.invariants.invariant import Invariant
from simulation.invariants.mirror import Batch
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen


class OneChangeAtATime(Invariant):
    """Two successive committed voter sets differ by at most one voter.

    So any majority of one intersects any majority of the other.
    """

    name = "one-change-at-a-time"

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.before: frozenset[ReplicaKey] | None = None

    def on_committed(self, seen: Seen, batches: list[Batch], end_offset: int) -> None:
        for batch in batches:
            for control in controls_of(batch):
                if isinstance(control, Voters):
                    self._check(frozenset(voter.key for voter in control.voters), batch)

    def _check(self, voters: frozenset[ReplicaKey], batch: Batch) -> None:
        before, self.before = self.before, voters
        self.require(
            before is None or len(before ^ voters) <= 1,
            "more than one voter changed at once",
            end_offset=batch.end_offset,
            before=sorted(before or (), key=str),
            after=sorted(voters, key=str),
        )


class Tombstones(Invariant):
    """A removed voter stays removed, in the log and on every node, until readmitted by key."""

    name = "tombstones"

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.voters: frozenset[ReplicaKey] = frozenset()
        self.removed: dict[ReplicaKey, int] = {}
        """By removed voter: the end offset of the record that removed it."""
        self.changed_at = 0

    def on_committed(self, seen: Seen, batches: list[Batch], end_offset: int) -> None:
        for batch in batches:
            for control in controls_of(batch):
                if isinstance(control, Voters):
                    self._follow(control, batch.end_offset)

    def _follow(self, record: Voters, end_offset: int) -> None:
        voters = frozenset(voter.key for voter in record.voters)
        for key in self.voters - voters:
            self.removed.setdefault(key, end_offset)
        for key in record.readmitted:
            self.removed.pop(key, None)
        self.voters, self.changed_at = voters, end_offset
        forgotten = [key for key in self.removed if key not in record.removed]
        self.require(not forgotten, "a tombstone is missing", end_offset=end_offset, who=forgotten)

    def on_opened(self, seen: Seen, before: Seen | None) -> None:
        self._look(seen)

    def on_stepped(self, seen: Seen) -> None:
        if self.removed and seen.high_watermark != seen.replica.node.high_watermark:
            self._look(seen)

    def _look(self, seen: Seen) -> None:
        node = seen.replica.node
        # A later record, not committed yet, may lift a tombstone.
        if not self.removed or not node.high_watermark > node.voters_offset >= self.changed_at - 1:
            return
        forgotten = [key for key in self.removed if key not in node.removed_voters]
        self.require(not forgotten, "a node lacks a tombstone", node=seen.id, who=forgotten)


class ChangeBarrier(Invariant):
    """A leader changes the voter set only above a committed record of its own epoch.

    The last change must be committed as well (the single-server bug of 2015).
    """

    name = "change-barrier"

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.opened: dict[int, int] = {}
        """By epoch: the end of the first batch of its leader."""

    def on_appended(self, seen: Seen, batches: list[Batch]) -> None:
        node = seen.replica.node
        if not node.is_leader:
            return
        for batch in batches:
            controls = controls_of(batch)
            if any(isinstance(each, LeaderChange) for each in controls):
                self.opened[batch.epoch] = batch.end_offset
            elif any(isinstance(each, Voters) for each in controls):
                self._check(seen, batch, node.high_watermark)

    def _check(self, seen: Seen, batch: Batch, high_watermark: int) -> None:
        below = seen.written.boundaries_between(high_watermark, batch.base_offset)
        open_changes = [
            end_offset
            for end_offset, epoch in below
            for each in controls_of(self.run_observer.batches[end_offset, epoch])
            if isinstance(each, Voters)
        ]
        self.require(
            high_watermark >= self.opened.get(batch.epoch, 0) and not open_changes,
            "the voter set is changed above uncommitted records",
            node=seen.id,
            epoch=batch.epoch,
            high_watermark=high_watermark,
            own_epoch_begins=self.opened.get(batch.epoch),
            uncommitted_changes=open_changes,
        )
