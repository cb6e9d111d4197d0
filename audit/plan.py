"""What shall be read from a directory, as plain values that travel to an executor.

Belongs here: which files hold which offsets, how far they are committed, and where a replay may
begin. Looking at a directory is ``audit.directory``'s work, reading ``audit.reader``'s.

Invariant: a plan never changes. What the log gains after planning is not seen (the end is
frozen), and nothing below the planned end can change, as it is committed.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

from quorum.types import Epoch, EpochStart, SnapshotId


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A log segment, or the part of one that lies in [start_offset, end_offset)."""

    path: str
    base_offset: int
    """Of the file's first batch."""
    start_offset: int
    end_offset: int
    digest: bytes = b""
    """Log digest at ``base_offset``; empty when not known."""
    epoch: Epoch = 0
    """Epoch of the record before ``base_offset``, as far as known."""


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """A complete checkpoint."""

    path: str
    snapshot_id: SnapshotId

    @property
    def end_offset(self) -> int:
        """Offset behind everything it stands for; 1 for a bootstrap checkpoint, which stands
        for no offset, so that its rows have a place.
        """
        return max(self.snapshot_id.offset, 1)


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """Everything that can be read from one source, in order.

    ``start_offset`` is the log start: what lies below is known from ``baseline`` alone, the
    oldest checkpoint that reaches it. Rows cover [first_offset, end_offset).
    """

    source: str
    cluster_id: str = ""
    start_offset: int = 0
    end_offset: int = 0
    committed_offset: int = 0
    """Everything below is known to be committed; rows above are marked."""
    segments: tuple[SegmentFile, ...] = ()
    checkpoints: tuple[CheckpointFile, ...] = ()
    """Those that continue into the log, ascending."""
    epochs: tuple[EpochStart, ...] = ()
    problems: tuple[str, ...] = ()
    """What is wrong or missing in the source, one sentence each."""
    damage: str = ""
    """What ends the plan before the log ends; only where that was asked for."""

    @property
    def baseline(self) -> CheckpointFile | None:
        """What stands for the offsets below the log start; None when the log has them all."""
        return self.checkpoints[0] if self.start_offset > 0 and self.checkpoints else None

    @property
    def first_offset(self) -> int:
        """Where rows begin: 0, unless the beginning is lost without a checkpoint."""
        return 0 if self.baseline is not None else self.start_offset

    def replay_start(self, offset: int) -> CheckpointFile | None:
        """The newest checkpoint to replay from so as to know the state at ``offset``.

        None where there is none: then the state is known only if the log begins at 0.
        """
        found = bisect_right(self.checkpoints, offset, key=lambda file: file.end_offset)
        return self.checkpoints[found - 1] if found else None

    def ranges(self, start_offset: int, end_offset: int) -> list[tuple[int, int]]:
        """[start_offset, end_offset) cut where a file ends; never empty ranges."""
        cuts = {segment.end_offset for segment in self.segments}
        if self.baseline is not None:
            cuts.add(self.baseline.end_offset)
        inner = sorted(cut for cut in cuts if start_offset < cut < end_offset)
        edges = [start_offset, *inner, end_offset]
        return [pair for pair in pairwise(edges) if pair[0] < pair[1]]

    def epoch_at(self, offset: int) -> Epoch:
        """Epoch of the record at ``offset``; 0 where the log does not say."""
        found = bisect_right(self.epochs, offset, key=lambda entry: entry.start_offset)
        return self.epochs[found - 1].epoch if found else 0

    def last_epoch(self, end_offset: int) -> Epoch:
        """Epoch of the record before ``end_offset``; 0 where neither log nor checkpoint says."""
        for checkpoint in self.checkpoints:
            if checkpoint.end_offset == end_offset:
                return checkpoint.snapshot_id.epoch
        return self.epoch_at(end_offset - 1)
