"""Local facts and operator requests that the runtime tells the core by ``notice``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from quorum.core.messages import VotersAt
from quorum.types import ElectionState, Endpoint, EpochStart, NodeId, OffsetAndEpoch, SnapshotId


@dataclass(frozen=True, slots=True)
class DurableState:
    """What was found on disk at start, after recovery.

    ``voters`` holds every voters record still in the log or the newest checkpoint, ascending;
    offset -1 for one that came from the bootstrap checkpoint. ``high_watermark`` is the lazy
    lower bound (at least the newest checkpoint's end offset).
    """

    election: ElectionState
    log_start: OffsetAndEpoch
    log_end: OffsetAndEpoch
    epochs: tuple[EpochStart, ...]
    snapshots: tuple[SnapshotId, ...]
    voters: tuple[VotersAt, ...]
    high_watermark: int = 0
    snapshot_sizes: Mapping[SnapshotId, int] = field(default_factory=dict)
    """Bytes of each checkpoint file; one that is missing here counts as of unknown size."""


@dataclass(frozen=True, slots=True)
class ConnectionRefused:
    """An immediate reconnect to ``peer`` was refused: its process is gone (decision 10)."""

    peer: NodeId


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """A request to ``peer`` got no answer and will get none (deadline, connection lost)."""

    peer: NodeId
    request_id: int


@dataclass(frozen=True, slots=True)
class SnapshotCreated:
    """This replica finished a checkpoint of its own image; it is frozen on disk."""

    snapshot_id: SnapshotId
    size: int = 0
    """Bytes of the file; 0 when not known."""


@dataclass(frozen=True, slots=True)
class SnapshotFrozen:
    """A downloaded checkpoint was verified and has its final name.

    ``voters`` are those it carries, at an offset below its end; empty leaves them as they are.
    """

    snapshot_id: SnapshotId
    voters: tuple[VotersAt, ...]
    size: int = 0
    """Bytes of the file; 0 when not known."""


@dataclass(frozen=True, slots=True)
class SnapshotRejected:
    """A downloaded checkpoint failed verification and was quarantined."""

    snapshot_id: SnapshotId
    reason: str


@dataclass(frozen=True, slots=True)
class SnapshotRemoved:
    """A checkpoint is no longer on disk (deleted, or found corrupt and quarantined)."""

    snapshot_id: SnapshotId


@dataclass(frozen=True, slots=True)
class ShutDown:
    """Stop standing for election; a leader hands over and resigns."""


@dataclass(frozen=True, slots=True)
class Resign:
    """Give up leadership now (operator, or a failing disk)."""

    reason: str


@dataclass(frozen=True, slots=True)
class ListenerEndpoints:
    """Where this node can be reached, for answers that name the leader."""

    endpoints: tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True)
class LeaseChanged:
    """Which snapshots transfers are reading now; those are not deleted (630.6)."""

    leased: tuple[SnapshotId, ...]


Notice: TypeAlias = (
    ConnectionRefused
    | RequestFailed
    | SnapshotCreated
    | SnapshotFrozen
    | SnapshotRejected
    | SnapshotRemoved
    | ShutDown
    | Resign
    | ListenerEndpoints
    | LeaseChanged
)
