"""Changes of the voter set: one at a time, on firm ground, and nobody removed is forgotten."""

from __future__ import annotations

from quorum.control_records import LeaderChange, Voters
from quorum.types import ReplicaKey
from simulation.invariants.contents import controls_of
from simulation.invariants.invariant import Invariant
from simulation.invariants.mirror import Batch
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen


class OneChangeAtATime(Invariant):
    """Two committed voter sets that follow one another differ by one voter at most.

    So any majority of the one meets any majority of the other.
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
            "two voters changed at once",
            end_offset=batch.end_offset,
            before=sorted(before or (), key=str),
            after=sorted(voters, key=str),
        )


class Tombstones(Invariant):
    """Who was removed stays removed, in the log and on every node, until readmitted by name."""

    name = "tombstones"

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.voters: frozenset[ReplicaKey] = frozenset()
        self.removed: dict[ReplicaKey, int] = {}
        """Who was removed, to the end of the record that did it."""
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
        self.require(
            not forgotten, "a removed voter is forgotten", end_offset=end_offset, who=forgotten
        )

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
        self.require(
            not forgotten, "a node has forgotten a removed voter", node=seen.id, who=forgotten
        )


class ChangeBarrier(Invariant):
    """A leader changes the voters only above a committed record of its own epoch, and above the
    last change, committed as well (the single-server bug of 2015).
    """

    name = "change-barrier"

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.opened: dict[int, int] = {}
        """Epoch, to the end of the batch that its leader begins with."""

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
            "the voters are changed on ground that may give way",
            node=seen.id,
            epoch=batch.epoch,
            high_watermark=high_watermark,
            own_epoch_begins=self.opened.get(batch.epoch),
            uncommitted_changes=open_changes,
        )
