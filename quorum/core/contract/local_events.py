"""Local facts and operator requests that the runtime tells the core by ``on_local_event``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Final, TypeAlias

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

    The runtime has verified the first ``size`` bytes, whole batches: checksums, order, and the
    position in the header. They may still be of another file than the leader's.
    """

    snapshot_id: SnapshotId
    size: int


@value
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
    snapshot_ages_ms: Mapping[SnapshotId, int] = field(default_factory=dict)
    """How long each checkpoint has been on this disk, as far as known: holding goes on (630.5)."""
    bootstrap_without: tuple[NodeId, ...] = ()
    """Bootstrap voters that this node does not wait for before epoch 1: the operator's risk."""
    download: PartialDownload | None = None
    """The download that was under way when the process ended, as far as it could be verified."""


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
    """Why one of the two does not want to talk to the other; empty when it is only silent."""


@value
class SnapshotCreated:
    """This replica finished a checkpoint of its own image; it is frozen on disk."""

    snapshot_id: SnapshotId
    size: int = 0
    """Bytes of the file; 0 when not known."""


@value
class SnapshotSealed:
    """A downloaded checkpoint was verified and has its final name.

    ``voters`` are those it carries, at an offset below its end; empty leaves them as they are.
    """

    snapshot_id: SnapshotId
    voters: tuple[VotersAt, ...]
    size: int = 0
    """Bytes of the file; 0 when not known."""


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
    """Stop standing for election; a leader hands over and resigns."""


@value
class Resign:
    """Give up leadership now (operator, or a failing disk)."""

    reason: str


@value
class TransferLeadership:
    """Hand leadership to ``target``, ``NO_NODE`` for the voter that is furthest (see ``transfer``).

    ``RequestSettled`` with ``token`` (above 0) says how it ended.
    """

    refusals: ClassVar[Codes] = TO_OPERATORS | {
        ErrorCode.VOTER_NOT_FOUND,
        ErrorCode.INELIGIBLE_REPLICA,
        ErrorCode.INVALID_VOTER_KEY,
    }
    token: int
    target: NodeId = NO_NODE


@value
class ListenerEndpoints:
    """Where this node can be reached, for answers that name the leader."""

    endpoints: tuple[Endpoint, ...]


@value
class FeatureLevels:
    """What this release's state machine can run with, and which levels are in force."""

    supported: tuple[VersionRange, ...]
    in_force: Mapping[str, int]


@value
class ReplayStopped:
    """The state machine cannot apply a committed record, or can again: then ``reason`` is empty.

    Such a replica keeps its log and its vote, but must not lead: it would answer no write.
    """

    reason: str


@value
class LeaseChanged:
    """Which snapshots transfers are reading now; those are not deleted (630.6)."""

    leased: tuple[SnapshotId, ...]


NO_TOKEN: Final = 0
"""Of an operator's request, before the driver draws the token that its answer will carry."""


@value
class AddVoter:
    """Let ``voter`` vote from now on (853). Exactly one ``RequestSettled`` will come.

    ``timeout_ms`` above 0 shortens the wait, which ends after ``request_timeout_ms`` at most.
    Without ``ack_when_committed`` the answer comes with the append.
    """

    refusals: ClassVar[Codes] = OF_OPERATORS | ADDING
    token: int
    voter: Voter
    ack_when_committed: bool = True
    timeout_ms: int = 0
    readmit: bool = False
    """Let a removed replica back in; without it a tombstone refuses it."""


@value
class RemoveVoter:
    """Let ``key`` vote no longer, and remember it as removed. Answered like ``AddVoter``."""

    refusals: ClassVar[Codes] = OF_OPERATORS | REMOVING
    token: int
    key: ReplicaKey
    timeout_ms: int = 0


@value
class UpdateVoter:
    """Give a voter new endpoints and versions; answered when the record is appended."""

    refusals: ClassVar[Codes] = OF_OPERATORS | UPDATING
    token: int
    voter: Voter
    timeout_ms: int = 0


OPERATOR_REQUESTS: Final = (TransferLeadership, AddVoter, RemoveVoter, UpdateVoter)
"""What an operator may ask of a node; each names in ``refusals`` how it may be refused."""


@value
class DamageFound:
    """This replica's own files, read in the background, are not what they should be."""

    cause: str


@value
class LogVerified:
    """This replica's own files were read again, as ``VerifyLog`` asked.

    ``cuts`` repeats that request's; ``damaged_offset`` is -1 when nothing is wrong.
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
