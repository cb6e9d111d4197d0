"""A model of a log as lists, with which real logs are compared after crashes.

It states the contract of ``ports.LogStore``: every flushed record is there, no record is there that
was not written, and the log was cut only where a cut was requested.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from quorum.types import LOG_BEGINNING, EpochStart, OffsetAndEpoch, SnapshotId

Record: TypeAlias = tuple[int, int, bytes]
"""Offset, epoch, value."""


@dataclass(frozen=True)
class LogModel:
    """The content of a log. ``records`` are those at and above ``start``."""

    start: OffsetAndEpoch = LOG_BEGINNING
    records: tuple[Record, ...] = ()
    boundaries: tuple[int, ...] = (0,)
    """Offsets where a batch ends, and the start; ascending."""
    flushed: int = 0
    """End offset of what is durable."""
    high_watermark: int = 0
    snapshots: tuple[SnapshotId, ...] = ()

    @property
    def end(self) -> OffsetAndEpoch:
        if not self.records:
            return self.start
        offset, epoch, _ = self.records[-1]
        return OffsetAndEpoch(offset + 1, epoch)

    @property
    def epochs(self) -> tuple[EpochStart, ...]:
        found: list[EpochStart] = []
        for offset, epoch, _ in self.records:
            if not found or found[-1].epoch != epoch:
                found.append(EpochStart(epoch, offset))
        return tuple(found)

    def epoch_before(self, offset: int) -> int:
        for at, epoch, _ in reversed(self.records):
            if at < offset:
                return epoch
        return self.start.epoch

    def appended(self, batches: list[tuple[int, list[bytes]]]) -> LogModel:
        """Return the log with ``batches`` of (epoch, values) appended."""
        records, boundaries = list(self.records), list(self.boundaries)
        offset = self.end.offset
        for epoch, values in batches:
            records += [(offset + number, epoch, value) for number, value in enumerate(values)]
            offset += len(values)
            boundaries.append(offset)
        return replace(self, records=tuple(records), boundaries=tuple(boundaries))

    def flush(self) -> LogModel:
        return replace(self, flushed=self.end.offset)

    def truncated(self, end_offset: int) -> LogModel:
        return replace(
            self,
            records=tuple(record for record in self.records if record[0] < end_offset),
            boundaries=tuple(offset for offset in self.boundaries if offset <= end_offset),
            flushed=end_offset,
        )

    def advanced(self, start: OffsetAndEpoch) -> LogModel:
        return replace(
            self,
            start=start,
            records=tuple(record for record in self.records if record[0] >= start.offset),
            boundaries=tuple(offset for offset in self.boundaries if offset >= start.offset),
            flushed=max(self.flushed, start.offset),
        )

    def replaced(self, snapshot_id: SnapshotId) -> LogModel:
        return replace(
            self,
            start=snapshot_id,
            records=(),
            boundaries=(snapshot_id.offset,),
            flushed=snapshot_id.offset,
            high_watermark=snapshot_id.offset,
        )

    def with_snapshot(self, snapshot_id: SnapshotId) -> LogModel:
        return replace(self, snapshots=(*self.snapshots, snapshot_id))

    def allows(self, found: LogModel) -> bool:
        """Return whether ``found`` may be the state of this log after a crash."""
        if found.start == found.end and found.start in self.snapshots:
            newest = max(self.snapshots, key=lambda taken: (taken.epoch, taken.offset))
            if found.start == newest and found.start.offset >= self.flushed:
                return True
        return (
            found.start == self.start
            and found.records == self.records[: len(found.records)]
            and found.end.offset in self.boundaries
            and found.end.offset >= self.flushed
        )
