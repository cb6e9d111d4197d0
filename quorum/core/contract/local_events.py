"""Local events and operator requests, which the runtime passes to ``on_local_event``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Final, TypeAlias

from quorum.control_records import Origin
from quorum.core.messages.received_records import VotersAt
from quorum.core.messages.refusals import (
    ADDING,
    OF_OPERATORS,
    REMOVING,
    TO_OPERATORS,
    UPDATING,
    Codes,
)
from quorum.errors import ErrorCode
from quorum.types import (
    NO_NODE,
    ElectionState,
    Endpoint,
    EpochStart,
    NodeId,
    OffsetAndEpoch,
    ReplicaKey,
    SnapshotId,
    VersionRange,
    Voter,
)
from quorum.values import value


@value
class PartialDownload:
    """The beginning of a checkpoint file that an earlier process run downloaded.

    The runtime has verified the first ``size`` bytes, which are whole batches: checksums, order,
    and the position in the header. They may still belong to another file than the leader's.
    """

    snapshot_id: SnapshotId
    size: int


@value
class DurableState:
    """The state on disk at start, after recovery.

    ``voters`` has every voters record that is still in the log or the newest checkpoint,
    ascending; offset -1 for one from the bootstrap checkpoint. ``high_watermark`` is the lazily
    stored lower bound (at least the newest checkpoint's end offset).
    """

    election: ElectionState
    log_start: OffsetAndEpoch
    log_end: OffsetAndEpoch
    epochs: tuple[EpochStart, ...]
    snapshots: tuple[SnapshotId, ...]
    voters: tuple[VotersAt, ...]
    high_watermark: int = 0
    snapshot_sizes: Mapping[SnapshotId, int] = field(default_factory=dict)
    """Bytes of each checkpoint file; the size of a missing one is unknown."""
    snapshot_ages_ms: Mapping[SnapshotId, int] = field(default_factory=dict)
    """Known age of each checkpoint on this disk; its holding time continues (630.5)."""
    bootstrap_without: tuple[NodeId, ...] = ()
    """Bootstrap voters that this node does not wait for before epoch 1: the operator's risk."""
    download: PartialDownload | None = None
    """The verified part of the download that was under way when the process ended."""


@value
class ConnectionRefused:
    """An immediate reconnect to ``peer`` was refused: its process is gone (ADR 8)."""

    peer: NodeId


@value
class RequestFailed:
    """A request to ``peer`` got no answer and will get none (deadline, connection lost)."""

    peer: NodeId
    request_id: int
    refusal: str = ""
    """Why one side refuses to talk to the other; empty if the peer was only silent."""
    code: ErrorCode = ErrorCode.NONE
    """Error code of the refusal, if it has one."""


@value
class SnapshotCreated:
    """This replica finished a checkpoint of its own image; it is sealed on disk."""

    snapshot_id: SnapshotId
    size: int = 0
    """Bytes of the file; 0 if unknown."""


@value
class SnapshotSealed:
    """A downloaded checkpoint was verified and has its final name.

    ``voters`` are those in the checkpoint, at an offset below its end; empty changes nothing.
    """

    snapshot_id: SnapshotId
    voters: tuple[VotersAt, ...]
    size: int = 0
    """Bytes of the file; 0 if unknown."""


@value
class SnapshotRejected:
    """A downloaded checkpoint failed verification and was quarantined."""

    snapshot_id: SnapshotId
    reason: str


@value
class SnapshotRemoved:
    """A checkpoint is no longer on disk (deleted, or found corrupt and quarantined)."""

    snapshot_id: SnapshotId


@value
class ShutDown:
    """Stop campaigning; a leader transfers its leadership or resigns."""


@value
class Resign:
    """Resign from leadership now, because the state machine cannot apply committed records."""


@value
class TransferLeadership:
    """Transfer leadership to ``target``, or for ``NO_NODE`` to the voter with the highest end.

    ``RequestSettled`` with ``token`` (above 0) reports the outcome.
    """

    refusals: ClassVar[Codes] = TO_OPERATORS | {
        ErrorCode.VOTER_NOT_FOUND,
        ErrorCode.INELIGIBLE_REPLICA,
        ErrorCode.INVALID_VOTER_KEY,
    }
    token: int
    target: NodeId = NO_NODE
    origin: Origin | None = None
    """Who asked and why; written by the target when it leads, if it leads because of this."""


@value
class ListenerEndpoints:
    """This node's endpoints, for answers that name the leader."""

    endpoints: tuple[Endpoint, ...]


@value
class FeatureLevels:
    """Levels that this release's state machine supports, and the levels in force."""

    supported: tuple[VersionRange, ...]
    in_force: Mapping[str, int]


@value
class ReplayStopped:
    """The state machine stopped at a committed record; an empty ``reason``: it applies again.

    Such a replica keeps its log and its vote, but must not lead, since it could answer no write.
    """

    reason: str


@value
class LeaseChanged:
    """Snapshots that transfers are reading now; those are not deleted (630.6)."""

    leased: tuple[SnapshotId, ...]


NO_TOKEN: Final = 0
"""Token of an operator's request before the driver draws the one for its answer."""


@value
class AddVoter:
    """Add ``voter`` to the voter set (853). Exactly one ``RequestSettled`` follows.

    ``timeout_ms`` above 0 shortens the wait, which is at most ``request_timeout_ms``.
    Without ``ack_when_committed`` the answer comes with the append.
    """

    refusals: ClassVar[Codes] = OF_OPERATORS | ADDING
    token: int
    voter: Voter
    ack_when_committed: bool = True
    timeout_ms: int = 0
    readmit: bool = False
    """Allow a removed replica again; otherwise its tombstone refuses it."""
    origin: Origin | None = None
    """Who asked and why; written into the voters record."""


@value
class RemoveVoter:
    """Remove ``key`` from the voters and add its tombstone. Answered like ``AddVoter``."""

    refusals: ClassVar[Codes] = OF_OPERATORS | REMOVING
    token: int
    key: ReplicaKey
    timeout_ms: int = 0
    origin: Origin | None = None


@value
class UpdateVoter:
    """Set new endpoints and versions of a voter; answered when the record is appended."""

    refusals: ClassVar[Codes] = OF_OPERATORS | UPDATING
    token: int
    voter: Voter
    timeout_ms: int = 0
    origin: Origin | None = None


OPERATOR_REQUESTS: Final = (TransferLeadership, AddVoter, RemoveVoter, UpdateVoter)
"""Requests of operators; each declares in ``refusals`` its possible refusals."""


@value
class DamageFound:
    """The background check found damage in this replica's own files."""

    cause: str


@value
class LogVerified:
    """Result of verifying this replica's own files, as ``VerifyLog`` requested.

    ``cuts`` repeats that request's; ``damaged_offset`` is -1 if there is no damage.
    """

    cuts: int
    damaged_offset: int = -1
    cause: str = ""


LocalEvent: TypeAlias = (
    ConnectionRefused
    | RequestFailed
    | SnapshotCreated
    | SnapshotSealed
    | SnapshotRejected
    | SnapshotRemoved
    | ShutDown
    | Resign
    | TransferLeadership
    | ListenerEndpoints
    | FeatureLevels
    | ReplayStopped
    | LeaseChanged
    | AddVoter
    | RemoveVoter
    | UpdateVoter
    | LogVerified
    | DamageFound
)
