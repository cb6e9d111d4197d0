"""The disk of a core under test: what its effects would leave, as plain lists.

Also the names that the harness gives to replicas, and logs written as ``epoch:count`` texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from quorum.control_records import Voters
from quorum.core.contract.local_events import DurableState, PartialDownload
from quorum.core.contract.output import (
    AbandonDownload,
    AdvanceLogStart,
    Append,
    BeginDownload,
    ReplaceLogWith,
    SaveElectionState,
    SealDownload,
    StoreHighWatermark,
    Truncate,
    WriteChunk,
)
from quorum.core.messages.received_records import VotersAt
from quorum.types import (
    LOG_BEGINNING,
    BootstrapState,
    ElectionState,
    Endpoint,
    EpochStart,
    NodeId,
    OffsetAndEpoch,
    ReplicaKey,
    SnapshotId,
    Voter,
)

VOTERS_IN: dict[bytes, tuple[VotersAt, ...]] = {}
"""What the payloads of Fetch answers hold, so that a follower's disk remembers it too."""


def payload_with(voters: tuple[VotersAt, ...]) -> bytes:
    """A payload that stands for records with these voter sets among them."""
    payload = repr(voters).encode() if voters else b""
    VOTERS_IN[payload] = voters
    return payload


def key(node_id: NodeId) -> ReplicaKey:
    """The replica key the harness gives a node."""
    return ReplicaKey(node_id, bytes(15) + bytes([node_id % 256]))


def voter(node_id: NodeId) -> Voter:
    return Voter(key(node_id), (Endpoint("CONTROLLER", f"node{node_id}", 9000),))


def log_of(text: str, *, start: OffsetAndEpoch = LOG_BEGINNING) -> list[tuple[int, int]]:
    """``"1:a 1:b 2:c"`` (epoch:value) as (offset, epoch) pairs from ``start`` on."""
    epochs = [int(item.split(":")[0]) for item in text.split()]
    return [(start.offset + index, epoch) for index, epoch in enumerate(epochs)]


@dataclass
class Disk:
    """What one node has written and what of it would survive a crash."""

    start: OffsetAndEpoch = LOG_BEGINNING
    records: list[tuple[int, int]] = field(default_factory=list)
    """(offset, epoch) of every record kept."""
    voters: dict[int, VotersAt] = field(default_factory=dict)
    election: ElectionState = field(default_factory=ElectionState)
    high_watermark: int = 0
    snapshots: dict[SnapshotId, int] = field(default_factory=dict)
    ages_ms: dict[SnapshotId, int] = field(default_factory=dict)
    """What the next start is told of how long they have been there."""
    chunks: dict[SnapshotId, bytes] = field(default_factory=dict)
    is_fresh: bool = False
    """Whether the quorum has yet to be bootstrapped; without a word it is."""

    @property
    def end(self) -> OffsetAndEpoch:
        if not self.records:
            return self.start
        offset, epoch = self.records[-1]
        return OffsetAndEpoch(offset + 1, epoch)

    @property
    def epochs(self) -> tuple[EpochStart, ...]:
        found: list[EpochStart] = []
        for offset, epoch in self.records:
            if not found or found[-1].epoch != epoch:
                found.append(EpochStart(epoch, offset))
        return tuple(found)

    def durable_state(self, first_voters: Sequence[Voter]) -> DurableState:
        voters = [VotersAt(-1, tuple(first_voters))] if first_voters else []
        voters += [self.voters[offset] for offset in sorted(self.voters)]
        election = self.election
        if election.epoch == 0 and election.bootstrap_state is None and not self.is_fresh:
            election = replace(
                election, bootstrap_state=BootstrapState(b"\1" * 16, is_complete=True)
            )
        return DurableState(
            election,
            self.start,
            self.end,
            self.epochs,
            tuple(sorted(self.snapshots, key=lambda each: each.offset)),
            tuple(voters),
            self.high_watermark,
            dict(self.snapshots),
            self.ages_ms,
            download=self._download(),
        )

    def _download(self) -> PartialDownload | None:
        left = [each for each in self.chunks if self.chunks[each] and each not in self.snapshots]
        if not left:
            return None
        newest = max(left, key=lambda each: (each.offset, each.epoch))
        self.chunks = {newest: self.chunks[newest]}
        return PartialDownload(newest, len(self.chunks[newest]))

    def apply(self, effect: object) -> None:
        match effect:
            case SaveElectionState():
                self.election = effect.state
            case Append():
                assert effect.base_offset == self.end.offset
                for offset in range(effect.base_offset, effect.end_offset):
                    starts = [each for each in effect.epochs if each.start_offset <= offset]
                    epoch = starts[-1].epoch if starts else effect.epoch
                    self.records.append((offset, epoch))
                for at in VOTERS_IN.get(effect.payload or b"", ()):
                    self.voters[at.offset] = at
                for index, control in enumerate(effect.controls):
                    if isinstance(control, Voters):
                        offset = effect.base_offset + index
                        self.voters[offset] = VotersAt(offset, control.voters, control.removed)
            case Truncate():
                self.records = [each for each in self.records if each[0] < effect.end_offset]
                self.voters = {k: v for k, v in self.voters.items() if k < effect.end_offset}
            case ReplaceLogWith():
                self.records, self.start = [], effect.snapshot_id
            case AdvanceLogStart():
                self.start = effect.start
                self.records = [e for e in self.records if e[0] >= effect.start.offset]
                for each in effect.delete:
                    del self.snapshots[each]
            case StoreHighWatermark():
                self.high_watermark = effect.high_watermark
            case BeginDownload():
                self.chunks[effect.snapshot_id] = b""
            case WriteChunk():
                before = self.chunks.get(effect.snapshot_id, b"")
                assert len(before) == effect.position
                self.chunks[effect.snapshot_id] = before + effect.chunk
            case SealDownload():
                self.snapshots[effect.snapshot_id] = len(self.chunks.pop(effect.snapshot_id))
            case AbandonDownload():
                self.chunks.pop(effect.snapshot_id, None)


def disk_with(
    log: str = "",
    *,
    start: OffsetAndEpoch = LOG_BEGINNING,
    epoch: int = 0,
    leader: NodeId = -1,
    voted: NodeId | None = None,
    vote_floor: OffsetAndEpoch | None = None,
    snapshots: dict[SnapshotId, int] | None = None,
    high_watermark: int = 0,
) -> Disk:
    """A disk whose log holds ``log`` (``"1:a 2:b"``, epoch:value) from ``start`` on.

    The epoch on file is ``epoch``, or that of the last record if that is higher.
    """
    records = log_of(log, start=start)
    last_epoch = records[-1][1] if records else start.epoch
    return Disk(
        start=start,
        records=records,
        election=ElectionState(
            max(epoch, last_epoch),
            leader,
            key(voted) if voted is not None else None,
            vote_floor,
        ),
        snapshots=dict(snapshots or {}),
        high_watermark=high_watermark,
    )


def copy_of(disk: Disk) -> Disk:
    return replace(
        disk,
        records=list(disk.records),
        voters=dict(disk.voters),
        snapshots=dict(disk.snapshots),
        chunks=dict(disk.chunks),
    )
