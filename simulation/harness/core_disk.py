"""The disk of a core without a driver: its durable content, as values.

A log entry is its epoch and, for a voters record, the set that it names. Entries of one epoch at
one offset are the same record, because one leader appends each offset once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from quorum.control_records import Voters
from quorum.core.contract.local_events import DurableState, PartialDownload
from quorum.core.contract.output import (
    AbandonDownload,
    AdvanceLogStart,
    Append,
    BeginDownload,
    Effect,
    ReplaceLogWith,
    SaveElectionState,
    SealDownload,
    StoreHighWatermark,
    Truncate,
    WriteChunk,
)
from quorum.core.messages.received_records import ReceivedRecords, VotersAt
from quorum.incarnation import LogIncarnation
from quorum.types import (
    LOG_BEGINNING,
    BootstrapState,
    ElectionState,
    EpochStart,
    OffsetAndEpoch,
    ReplicaKey,
    SnapshotId,
    Voter,
)

Entry: TypeAlias = tuple[
    int, tuple[tuple[Voter, ...], tuple[ReplicaKey, ...], LogIncarnation] | None
]
"""Epoch, and the voters, tombstones and log incarnation of a voters record."""
Log: TypeAlias = tuple[Entry, ...]
"""From offset 0 on; trimmed entries, which are in a checkpoint, are included."""

Value = TypeVar("Value")

BOOTSTRAPPED = ElectionState(bootstrap_state=BootstrapState(b"\1" * 16, is_complete=True))
"""The state of a bootstrap voter's disk when epoch 1 may begin."""


@dataclass(frozen=True, slots=True)
class Disk:
    """The durable or submitted content of one node's disk."""

    election: ElectionState = BOOTSTRAPPED
    first_voters: tuple[Voter, ...] = ()
    log: Log = ()
    start: OffsetAndEpoch = LOG_BEGINNING
    snapshots: Mapping[SnapshotId, int] = field(default_factory=dict)
    """Sizes, by ascending id."""
    ages_ms: Mapping[SnapshotId, int] = field(default_factory=dict)
    """Age of each snapshot, as the next start reads it."""
    high_watermark: int = 0
    chunks: Mapping[SnapshotId, bytes] = field(default_factory=dict)
    """The downloaded part of each unfinished snapshot."""

    @property
    def end(self) -> OffsetAndEpoch:
        """Return the end of the log."""
        return end_of(self.log)

    @property
    def epochs(self) -> tuple[EpochStart, ...]:
        """Return the epochs that begin at or above the log start."""
        return epochs_of(self.log, self.start.offset)

    def durable_state(self) -> DurableState:
        """Return what a process that opens this disk finds."""
        voters = [VotersAt(-1, self.first_voters)] if self.first_voters else []
        parts = [PartialDownload(each, len(chunk)) for each, chunk in self.chunks.items() if chunk]
        return DurableState(
            self.election,
            self.start,
            self.end,
            self.epochs,
            tuple(self.snapshots),
            (*voters, *voters_in(self.log, 0)),
            self.high_watermark,
            dict(self.snapshots),
            self.ages_ms,
            download=parts[-1] if parts else None,
        )

    def read(self, offset: int, end_offset: int) -> ReceivedRecords:
        """Return records of [offset, end_offset); their entries take the place of bytes."""
        log = self.log[:end_offset]
        entries: Any = log[offset:]
        return ReceivedRecords(
            offset, len(log), epochs_of(log, offset), voters_in(log, offset), entries
        )

    def after(self, effect: Effect, checkpoints: Mapping[SnapshotId, Log]) -> Disk:
        """Return this disk after ``effect``; ``checkpoints`` has the contents of some snapshots."""
        match effect:
            case SaveElectionState():
                return replace(self, election=effect.state)
            case Append():
                return replace(self, log=self.log[: effect.base_offset] + entries_of(effect))
            case Truncate():
                return replace(self, log=self.log[: effect.end_offset])
            case ReplaceLogWith():
                start = effect.snapshot_id
                return replace(self, log=checkpoints.get(start, plain_log(start)), start=start)
            case AdvanceLogStart():
                kept = _without(self.snapshots, *effect.delete)
                return replace(self, start=effect.start, snapshots=kept)
            case StoreHighWatermark():
                return replace(self, high_watermark=effect.high_watermark)
            case BeginDownload():
                return replace(self, chunks={**self.chunks, effect.snapshot_id: b""})
            case WriteChunk():
                before = self.chunks[effect.snapshot_id]
                chunk = before[: effect.position] + effect.chunk
                return replace(self, chunks={**self.chunks, effect.snapshot_id: chunk})
            case SealDownload():
                size = len(self.chunks.get(effect.snapshot_id, b"c"))
                disk = self.with_snapshot(effect.snapshot_id, size)
                return replace(disk, chunks=_without(self.chunks, effect.snapshot_id))
            case AbandonDownload():
                return replace(self, chunks=_without(self.chunks, effect.snapshot_id))
            case _:
                return self

    def with_snapshot(self, snapshot_id: SnapshotId, size: int) -> Disk:
        """Return this disk with one more snapshot."""
        known = {**self.snapshots, snapshot_id: size}
        ids = sorted(known, key=lambda each: (each.offset, each.epoch))
        return replace(self, snapshots={each: known[each] for each in ids})


def _without(
    of_snapshots: Mapping[SnapshotId, Value], *gone: SnapshotId
) -> dict[SnapshotId, Value]:
    return {each: value for each, value in of_snapshots.items() if each not in gone}


def plain_log(end: OffsetAndEpoch) -> Log:
    """Return a log with that end, of one epoch."""
    return ((end.epoch, None),) * end.offset


def entries_of(effect: Append) -> Log:
    """Return the records that an append writes.

    The payload of copied records is their entries; those of a leader or of a test have none.
    """
    payload: object = effect.payload
    if isinstance(payload, tuple):
        return payload
    entries: list[Entry] = []
    for index in range(effect.end_offset - effect.base_offset):
        control = effect.controls[index] if index < len(effect.controls) else None
        voters = (
            (control.voters, control.removed, control.incarnation)
            if isinstance(control, Voters)
            else None
        )
        begun = [each for each in effect.epochs if each.start_offset <= effect.base_offset + index]
        entries.append((begun[-1].epoch if begun else effect.epoch, voters))
    return tuple(entries)


def end_of(log: Log) -> OffsetAndEpoch:
    """Return the end of a log."""
    return OffsetAndEpoch(len(log), log[-1][0] if log else 0)


def epochs_of(log: Log, start: int) -> tuple[EpochStart, ...]:
    """Return the epochs that begin in ``log`` from offset ``start`` on."""
    found: list[EpochStart] = []
    for offset in range(start, len(log)):
        if not found or found[-1].epoch != log[offset][0]:
            found.append(EpochStart(log[offset][0], offset))
    return tuple(found)


def voters_in(log: Log, start: int) -> tuple[VotersAt, ...]:
    """Return the voters records of ``log`` from offset ``start`` on."""
    found: list[VotersAt] = []
    for offset in range(start, len(log)):
        voters = log[offset][1]
        if voters is not None:
            found.append(VotersAt(offset, *voters))
    return tuple(found)
