"""The output of the core: one ``Output`` per entry point, with five parts for the runtime.

The order of duties, on which the safety of the whole system depends:

1. ``persist``: pass the effects to the single writer in this order, as one group under
   ``ticket``. When all are as durable as each effect requires, call ``persisted(ticket)``.
2. ``after_persist``: messages that promise something. Each leaves only when its ticket
   was reported durable.
3. ``immediate``: messages that promise nothing. Send now.
4. ``progress``: notify the state machine and waiting callers.
5. ``events``: logs, metrics, transcripts.

See: Raft section 5 ("respond after updating stable storage"), quorum/core/DESIGN.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from quorum.control_records import ControlRecord
from quorum.core.contract.events import Event
from quorum.core.messages.message_types import Outgoing
from quorum.errors import ErrorCode
from quorum.types import (
    ElectionState,
    Endpoint,
    EpochStart,
    NodeId,
    OffsetAndEpoch,
    ReplicaKey,
    SnapshotId,
    Voter,
)
from quorum.values import value

if TYPE_CHECKING:
    from quorum.batch import BatchHeader


@value
class SaveElectionState:
    """Write ``quorum-state`` and make it durable."""

    state: ElectionState


@value
class Append:
    """Append whole batches covering [base_offset, end_offset) and make them durable.

    ``payload`` came in with ``propose`` or a Fetch answer. For batches that the core itself
    writes it is None, and ``controls`` has the records to encode as one control batch in ``epoch``.
    """

    base_offset: int
    end_offset: int
    epoch: int
    """Epoch of the last record."""
    payload: bytes | None = None
    controls: tuple[ControlRecord, ...] = ()
    epochs: tuple[EpochStart, ...] = ()
    """Every epoch that starts inside the range, ascending."""
    headers: Sequence[BatchHeader] = ()
    """The batch headers in ``payload``, if this process verified or encoded the batches; the core
    has no use for them."""


@value
class Truncate:
    """Truncate the log so that it ends at ``end_offset``."""

    end_offset: int


@value
class AdvanceLogStart:
    """Raise the log start to ``start`` and delete what lies below it (630.5, 630.6).

    Snapshots in ``delete`` are removed unless a transfer has a lease on them.
    """

    start: OffsetAndEpoch
    delete: tuple[SnapshotId, ...] = ()


@value
class BeginDownload:
    """Create (or empty) the ``.part`` file of a snapshot."""

    snapshot_id: SnapshotId


@value
class WriteChunk:
    """Append ``chunk`` to the ``.part`` file at ``position``. Needs no fsync."""

    snapshot_id: SnapshotId
    position: int
    chunk: bytes


@value
class SealDownload:
    """Verify the whole ``.part`` file, make it durable and give it its final name.

    A non-empty ``file_digest`` must match; it is empty if the sender gave none. The
    runtime reports ``SnapshotSealed`` or ``SnapshotRejected`` by ``on_local_event``.
    """

    snapshot_id: SnapshotId
    file_digest: bytes = b""


@value
class AbandonDownload:
    """Remove the ``.part`` file."""

    snapshot_id: SnapshotId


@value
class ReplaceLogWith:
    """Make the log empty with start = end = the snapshot's end offset (630.9)."""

    snapshot_id: SnapshotId


@value
class StoreHighWatermark:
    """Store the high watermark, a lower bound that is never fsynced for its own sake."""

    high_watermark: int


@value
class QuarantineLog:
    """This log is wrong; the node stops once this and the vote floor are durable.

    With ``is_history`` its files are intact, but the part at and above ``first_offset`` must still
    be set aside at the next start; 0 means everything, checkpoints included.
    """

    first_offset: int
    cause: str
    is_history: bool


Effect: TypeAlias = (
    SaveElectionState
    | Append
    | Truncate
    | AdvanceLogStart
    | BeginDownload
    | WriteChunk
    | SealDownload
    | AbandonDownload
    | ReplaceLogWith
    | StoreHighWatermark
    | QuarantineLog
)


@value
class Send:
    """A message for ``to``: a node id, or a bootstrap server's negative id."""

    to: NodeId
    message: Outgoing


@value
class Promise:
    """A message that may leave only when persistence ``ticket`` is durable."""

    ticket: int
    to: NodeId
    message: Outgoing


@value
class HighWatermarkAdvanced:
    """All records below ``high_watermark`` are committed."""

    high_watermark: int


@value
class SnapshotInstalled:
    """The log now starts at this downloaded snapshot: load it and drop the old image."""

    snapshot_id: SnapshotId


@value
class LeadershipChanged:
    """The known leader has changed.

    ``can_write`` is true only on the leader itself, once its own epoch's first record is
    committed. Every uncommitted proposal of an earlier leadership term has failed.
    """

    leader_id: NodeId
    epoch: int
    is_leader: bool
    can_write: bool


@value
class LogTruncated:
    """Records at and above ``end_offset`` were removed from this log."""

    end_offset: int


@value
class ReadConfirmed:
    """The read may be answered from any image at or above ``read_offset``."""

    token: int
    read_offset: int


@value
class ReadFailed:
    """The read was not confirmed; another replica may confirm it."""

    token: int


@value
class RequestSettled:
    """An operator's request, identified by its event's token, has ended.

    ``error`` is ``NONE`` if it succeeded; ``message`` describes the result in one sentence. For a
    change of the voter set, ``offset`` is that of its record in the log. With an error and an
    offset the *outcome is unknown*: the record may still be committed, or be truncated by another
    leader. With an error and -1 nothing has happened.
    """

    token: int
    error: ErrorCode
    message: str
    offset: int = -1

    @property
    def is_outcome_unknown(self) -> bool:
        """Whether a change failed to commit in time but may still do so."""
        return self.error != ErrorCode.NONE and self.offset >= 0


@value
class VotersChanged:
    """The voter set in force, for connection management. Possibly not yet committed."""

    voters: tuple[Voter, ...]


@value
class LeaderEndpoints:
    """The addresses at which the current leader can be reached, the peers' first."""

    leader: ReplicaKey
    addresses: tuple[str, ...]
    is_for_clients: bool = True
    """Whether clients may be sent there; not on the word of an unproven caller."""


@value
class PeerEndpoints:
    """Endpoints of a replica that is not a voter yet, or that moves."""

    peer: NodeId
    endpoints: tuple[Endpoint, ...]


@value
class VerifyLog:
    """Verify this replica's own files outside the core; ``LogVerified`` reports the result."""

    end_offset: int
    cuts: int


Progress: TypeAlias = (
    HighWatermarkAdvanced
    | SnapshotInstalled
    | LeadershipChanged
    | LogTruncated
    | ReadConfirmed
    | ReadFailed
    | RequestSettled
    | VotersChanged
    | LeaderEndpoints
    | PeerEndpoints
    | VerifyLog
)


@dataclass(slots=True, init=False)
class Output:
    """Everything that one entry point of the core requests. Lists are in order."""

    ticket: int
    """Ticket of ``persist``; 0 if it is empty."""
    persist: list[Effect]
    after_persist: list[Promise]
    immediate: list[Send]
    progress: list[Progress]
    events: list[Event]
    next_deadline_ms: int | None
    """Call ``tick`` no later than this; None: nothing is due."""

    def __init__(self) -> None:
        # Created for every call of the core, so without the five factories of a generated one.
        self.ticket = 0
        self.persist = []
        self.after_persist = []
        self.immediate = []
        self.progress = []
        self.events = []
        self.next_deadline_ms = None
