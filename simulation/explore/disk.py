"""The disk of a node in a model: what survives a crash, as values.

A log entry is its epoch and, for a voters record, the set that it names. Entries of one epoch at
one offset are the same record, because one leader appends each offset once; whether there is one
leader per epoch is checked, not assumed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from quorum.control_records import Voters
from quorum.core.contract.local_events import DurableState
from quorum.core.contract.output import (
    AdvanceLogStart,
    Append,
    Effect,
    ReplaceLogWith,
    SaveElectionState,
    SealDownload,
    Truncate,
)
from quorum.core.messages.received_records import VotersAt
from quorum.types import (
    LOG_BEGINNING,
    ElectionState,
    EpochStart,
    OffsetAndEpoch,
    ReplicaKey,
    SnapshotId,
    Voter,
)

Entry: TypeAlias = tuple[int, tuple[tuple[Voter, ...], tuple[ReplicaKey, ...]] | None]
"""Epoch, and the voters and tombstones of a voters record."""
Log: TypeAlias = tuple[Entry, ...]
"""From offset 0 on; what was trimmed is in a checkpoint and stands here as well."""


@dataclass(frozen=True, slots=True)
class Disk:
    """What one node has on disk, or has handed to it."""

    election: ElectionState
    first_voters: tuple[Voter, ...]
    log: Log = ()
    start: OffsetAndEpoch = LOG_BEGINNING
    snapshots: tuple[SnapshotId, ...] = ()

    def durable_state(self, high_watermark: int) -> DurableState:
        """What a process finds that opens this disk."""
        voters = [VotersAt(-1, self.first_voters), *voters_in(self.log, 0)]
        return DurableState(
            self.election,
            self.start,
            end_of(self.log),
            epochs_of(self.log, self.start.offset),
            self.snapshots,
            tuple(voters),
            max(high_watermark, self.start.offset),
            dict.fromkeys(self.snapshots, 1),
        )

    def after(self, effect: Effect, checkpoints: dict[SnapshotId, Log]) -> Disk:
        """This disk once ``effect`` is done."""
        match effect:
            case SaveElectionState():
                return replace(self, election=effect.state)
            case Append():
                return replace(self, log=self.log[: effect.base_offset] + entries_of(effect))
            case Truncate():
                return replace(self, log=self.log[: effect.end_offset])
            case ReplaceLogWith():
                prefix = checkpoints[effect.snapshot_id]
                return replace(self, log=prefix, start=effect.snapshot_id)
            case AdvanceLogStart():
                kept = tuple(each for each in self.snapshots if each not in effect.delete)
                return replace(self, start=effect.start, snapshots=kept)
            case SealDownload():
                known = {*self.snapshots, effect.snapshot_id}
                ids = sorted(known, key=lambda each: (each.offset, each.epoch))
                return replace(self, snapshots=tuple(ids))
            case _:
                return self


def entries_of(effect: Append) -> Log:
    """The records that an append writes.

    In a model the payload of copied records is their entries; a leader's own have none.
    """
    payload: object = effect.payload
    if isinstance(payload, tuple):
        return payload
    entries: list[Entry] = []
    for index in range(effect.end_offset - effect.base_offset):
        control = effect.controls[index] if index < len(effect.controls) else None
        voters = (control.voters, control.removed) if isinstance(control, Voters) else None
        entries.append((effect.epoch, voters))
    return tuple(entries)


def end_of(log: Log) -> OffsetAndEpoch:
    """Where a log ends."""
    return OffsetAndEpoch(len(log), log[-1][0] if log else 0)


def epochs_of(log: Log, start: int) -> tuple[EpochStart, ...]:
    """The epochs that begin in ``log`` from offset ``start`` on."""
    found: list[EpochStart] = []
    for offset in range(start, len(log)):
        if not found or found[-1].epoch != log[offset][0]:
            found.append(EpochStart(log[offset][0], offset))
    return tuple(found)


def voters_in(log: Log, start: int) -> tuple[VotersAt, ...]:
    """The voters records of ``log`` from offset ``start`` on."""
    return tuple(
        VotersAt(offset, entry[1][0], entry[1][1])
        for offset, entry in enumerate(log)
        if entry[1] is not None and offset >= start
    )
