"""The plan of a read, as plain values that can be sent to an executor.

A plan lists which files hold which offsets, how far they are committed, and where a replay may
begin. ``audit.directory`` makes plans, ``audit.reader`` reads them.

Invariant: a plan never changes. Records appended after planning are not read, and records below
the planned end are committed and cannot change.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

from quorum.types import DigestAt, Epoch, EpochStart, SnapshotId


class Entry(NamedTuple):
    """A place in a segment file where a read may begin: the start of a batch."""

    offset: int
    position: int
    digest: bytes
    """Log digest below ``offset``; empty if not known."""


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A log segment, or the part of one that lies in [start_offset, end_offset)."""

    path: str
    base_offset: int
    """Base offset of the file's first batch."""
    start_offset: int
    end_offset: int
    digest: bytes = b""
    """Log digest at ``base_offset``; empty if not known."""
    epoch: Epoch = 0
    """Epoch of the record before ``base_offset``, as far as known."""
    entries: tuple[Entry, ...] = ()
    """Some places behind its first batch where a read may begin, ascending."""

    def entry(self, offset: int) -> Entry:
        """Return the last place at or below ``offset`` where a read may begin."""
        found = bisect_right(self.entries, offset, key=lambda entry: entry.offset)
        return self.entries[found - 1] if found else Entry(self.base_offset, 0, self.digest)


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """A complete checkpoint."""

    path: str
    snapshot_id: SnapshotId

    @property
    def end_offset(self) -> int:
        """Exclusive end of the offsets it covers. A bootstrap checkpoint covers none; its end is 1
        so that its rows have an offset.
        """
        return max(self.snapshot_id.offset, 1)


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """Everything that can be read from one source, in order.

    ``start_offset`` is the log start. State below it comes only from ``baseline``, the oldest
    checkpoint that reaches it. Rows cover [first_offset, end_offset).
    """

    source: str
    cluster_id: str = ""
    start_offset: int = 0
    end_offset: int = 0
    committed_offset: int = 0
    """Records below are known to be committed; rows above are marked."""
    segments: tuple[SegmentFile, ...] = ()
    checkpoints: tuple[CheckpointFile, ...] = ()
    """The checkpoints that continue into the log, ascending."""
    epochs: tuple[EpochStart, ...] = ()
    log_incarnation: bytes = b""
    """Id of the incarnation that the directory belongs to; empty if not known."""
    marks: tuple[DigestAt, ...] = ()
    """Some ends of batches, ascending, to cut a read at; also the plan's end, if known."""
    problems: tuple[str, ...] = ()
    """Damaged or missing parts of the source, one sentence each."""
    damage: str = ""
    """The damage at which the plan ends; only with ``only_before_damage``."""

    @property
    def baseline(self) -> CheckpointFile | None:
        """The checkpoint that covers the offsets below the log start; None if that is 0."""
        return self.checkpoints[0] if self.start_offset > 0 and self.checkpoints else None

    @property
    def end_digest(self) -> bytes:
        """The log digest at the end of the plan; empty if it is not known."""
        marks = self.marks
        return marks[-1].value if marks and marks[-1].offset == self.end_offset else b""

    @property
    def first_offset(self) -> int:
        """The first offset with rows: 0, unless the beginning is lost without a checkpoint."""
        return 0 if self.baseline is not None else self.start_offset

    def replay_start(self, offset: int) -> CheckpointFile | None:
        """Return the newest checkpoint from which a replay reaches the state at ``offset``.

        None if there is none: then the state is known only if the log begins at 0.
        """
        found = bisect_right(self.checkpoints, offset, key=lambda file: file.end_offset)
        return self.checkpoints[found - 1] if found else None

    def epoch_at(self, offset: int) -> Epoch:
        """Return the epoch of the record at ``offset``; 0 if the log does not contain it."""
        found = bisect_right(self.epochs, offset, key=lambda entry: entry.start_offset)
        return self.epochs[found - 1].epoch if found else 0

    def last_epoch(self, end_offset: int) -> Epoch:
        """Return the epoch of the record before ``end_offset``; 0 if it is not known."""
        for checkpoint in self.checkpoints:
            if checkpoint.end_offset == end_offset:
                return checkpoint.snapshot_id.epoch
        return self.epoch_at(end_offset - 1)
