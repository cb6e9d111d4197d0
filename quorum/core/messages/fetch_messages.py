"""Fetch: the request, which is also an acknowledgement, and its three answers.

Each stage is a type of its own. The receiving core gets the request with its own digest
(``ReceivedFetchRequest``) and decides (``FetchDecision``). Its runtime reads the records and builds
the message (``FetchResponse``). The requesting core gets that with verified records
(``ReceivedFetchResponse``). A refusal needs no runtime: the core builds the message.

See: ADR 54; KIP-595, KIP-630 (field meanings); ``fetch_classification`` for the choice of answer.
"""

from __future__ import annotations

from typing import ClassVar

from quorum.core.messages.read_messages import NO_ROUND, ReadRound
from quorum.core.messages.received_records import ReceivedRecords
from quorum.core.messages.refusals import OF_RELAYS, TO_LEADER, Codes
from quorum.errors import ErrorCode
from quorum.types import (
    Endpoint,
    Epoch,
    NodeId,
    OffsetAndEpoch,
    ReplicaKey,
    SnapshotId,
    VersionRange,
)
from quorum.values import value


@value
class Subtree:
    """A relay's report of the observers that fetch through it (630.5)."""

    low: int
    """The lowest offset that any of them still has to fetch."""
    members: int
    """Number of observers, over all levels."""
    links: tuple[tuple[NodeId, NodeId], ...] = ()
    """Each observer and its upstream, nearest first; as many as fit into a report."""
    is_provisional: bool = False
    """Whether ``low`` is a lower bound for observers that have not yet fetched from a restarted
    relay; it rises at the latest when the relay's observer session is over."""


@value
class FetchRequest:
    """Request records from ``fetch_offset`` on; a voter also acknowledges its log below it."""

    refusals: ClassVar[Codes] = TO_LEADER | {
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.SNAPSHOT_NOT_FOUND,
        ErrorCode.DIGEST_MISMATCH,
        ErrorCode.REPLICA_REGRESSED,
    }
    relay_refusals: ClassVar[Codes] = OF_RELAYS | {
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.DIGEST_MISMATCH,
    }
    request_id: int
    cluster_id: str
    replica: ReplicaKey
    epoch: Epoch
    fetch_offset: int
    last_fetched_epoch: Epoch
    high_watermark: int = -1
    max_wait_ms: int = 0
    max_bytes: int = 1 << 20
    read_round: ReadRound = NO_ROUND
    digest: bytes = b""
    """Running log digest at ``fetch_offset``; empty means "cannot compare". The sending runtime
    sets it when the message leaves."""
    subtree: Subtree | None = None
    """From a relay: its observers' needs; None if no observer fetches through the sender."""
    is_disqualified: bool = False
    """The sender does not vote although its key may be a voter's: count it as an observer."""
    has_lost_records: bool = False
    """The sender's disk has lost records, and it has a vote floor (ADR 7)."""
    supported: tuple[VersionRange, ...] = ()
    """From a voter: supported versions of its release; empty if its leader has them already."""


@value
class ReceivedFetchRequest:
    """A request as the receiving core gets it."""

    request: FetchRequest
    is_proven: bool
    """As in ``ReceivedRequest``."""
    own_digest: bytes = b""
    """The receiver's own digest, if the request has one, looked up by its runtime."""


@value
class FetchResponse:
    """An answer as sent: records, a diverging epoch, a snapshot id, or a refusal."""

    request_id: int
    error: ErrorCode
    leader_id: NodeId
    epoch: Epoch
    high_watermark: int = -1
    log_start_offset: int = 0
    diverging: OffsetAndEpoch | None = None
    snapshot_id: SnapshotId | None = None
    records: bytes = b""
    read_round: ReadRound = NO_ROUND
    leader_endpoints: tuple[Endpoint, ...] = ()
    leader_age_ms: int = -1
    """How long before this answer a majority certainly followed the leader; -1: unknown."""
    path: tuple[ReplicaKey, ...] = ()
    """The relays on its route, nearest first; empty from the leader itself."""
    contact_age_ms: int = 0
    """From a relay: the leader is known to have led at most this long before the answer."""


@value
class ReceivedFetchResponse:
    """An answer as the requesting core gets it."""

    response: FetchResponse
    records: ReceivedRecords | None = None
    """Description of the response's records, verified by the runtime; None without records."""


@value
class ServeRecords:
    """Read whole batches of [``offset``, ``end_offset``): one, or as many as ``bytes_max`` holds.

    ``end_offset`` is the log end; for a plain consumer or on a relay, the high watermark.
    """

    offset: int
    bytes_max: int
    end_offset: int


@value
class Diverging:
    """The logs diverge: our largest epoch not above the replica's, and that epoch's end."""

    point: OffsetAndEpoch


@value
class OfferSnapshot:
    """Our log cannot bring the replica forward; this snapshot does."""

    snapshot_id: SnapshotId


@value
class FetchDecision:
    """The core's decision; its runtime reads the records and sends ``response``."""

    request_id: int
    content: ServeRecords | Diverging | OfferSnapshot | None
    """None: there are no records beyond the replica's."""
    leader_id: NodeId
    epoch: Epoch
    high_watermark: int
    log_start_offset: int
    read_round: ReadRound = NO_ROUND
    leader_endpoints: tuple[Endpoint, ...] = ()
    leader_age_ms: int = -1
    path: tuple[ReplicaKey, ...] = ()
    contact_age_ms: int = 0

    def response(self, records: bytes = b"") -> FetchResponse:
        """Return the answer to send, with the records of a ``ServeRecords``."""
        content = self.content
        return FetchResponse(
            self.request_id,
            ErrorCode.NONE,
            self.leader_id,
            self.epoch,
            self.high_watermark,
            self.log_start_offset,
            content.point if type(content) is Diverging else None,
            content.snapshot_id if type(content) is OfferSnapshot else None,
            records,
            self.read_round,
            self.leader_endpoints,
            self.leader_age_ms,
            self.path,
            self.contact_age_ms,
        )
