"""Records by Fetch: the question, which is also an acknowledgement, and its three answers.

Each stage is a type of its own. The core that is asked takes the question with its own digest
beside it (``ReceivedFetchRequest``) and decides (``FetchDecision``). Its runtime reads the records
and builds what travels (``FetchResponse``). The core that asked takes that with its records proven
(``ReceivedFetchResponse``). A refusal needs no runtime: the core builds what travels.

See: ADR 54; KIP-595, KIP-630 (field meanings); ``fetch_classification`` for which answer is given.
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
    """What a relay reports of the observers that fetch through it (630.5)."""

    low: int
    """The lowest offset that any of them still has to fetch."""
    members: int
    """How many they are, over all levels."""
    links: tuple[tuple[NodeId, NodeId], ...] = ()
    """Observer and whom it fetches from, nearest first; as many as fit into a report."""
    is_provisional: bool = False
    """Whether ``low`` stands in for observers of which a relay that has started again has not heard
    yet; it rises at the latest when its observer session is over."""


@value
class FetchRequest:
    """Ask for records from ``fetch_offset`` on; from a voter also its acknowledgement below it."""

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
    """Running log digest at ``fetch_offset``; empty means "cannot compare". Set by the sending
    runtime when the message leaves."""
    subtree: Subtree | None = None
    """From a relay: what its observers need; None when nobody fetches through the sender."""
    is_disqualified: bool = False
    """The sender does not vote although its key may be a voter's: count it as an observer."""
    has_lost_records: bool = False
    """The sender knows that its disk lost records and has a vote floor (ADR 7)."""
    supported: tuple[VersionRange, ...] = ()
    """From a voter: what its release can run with; empty when its leader has heard it already."""
    is_unproven: bool = False
    """Nothing but the request says that ``replica`` sent it (ADR 52); does not travel. Set by the
    receiving transport."""


@value
class ReceivedFetchRequest:
    """A question as the core that is asked takes it."""

    request: FetchRequest
    own_digest: bytes = b""
    """The receiver's own digest where the request has one, looked up by its runtime."""


@value
class FetchResponse:
    """An answer as it travels: records, a diverging epoch, the id of a snapshot, or a refusal."""

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
    """How long before this answer a majority certainly followed the leader; -1: not known."""
    path: tuple[ReplicaKey, ...] = ()
    """The relays it came through, nearest first; empty from the leader itself."""
    contact_age_ms: int = 0
    """From a relay: the leader is known to have led this long before the answer, or later."""


@value
class ReceivedFetchResponse:
    """An answer as the core that asked takes it."""

    response: FetchResponse
    records: ReceivedRecords | None = None
    """What the response's records are, proven by the runtime; None where it has none."""


@value
class ServeRecords:
    """Read whole batches of [``offset``, ``end_offset``): one, or as many as ``bytes_max`` holds.

    ``end_offset`` is the log end, for a plain consumer or behind a relay what is committed.
    """

    offset: int
    bytes_max: int
    end_offset: int


@value
class Diverging:
    """The logs part: our largest epoch not above the replica's, and where that epoch ends."""

    point: OffsetAndEpoch


@value
class OfferSnapshot:
    """Our log cannot bring the replica forward; this snapshot does."""

    snapshot_id: SnapshotId


@value
class FetchDecision:
    """What the core decided to answer; its runtime reads the records and sends ``response``."""

    request_id: int
    content: ServeRecords | Diverging | OfferSnapshot | None
    """None: the replica has all that there is for it."""
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
        """Return the answer as it travels, with the records of a ``ServeRecords``."""
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
