"""What replicas say to each other: one request and one response type per RPC.

Plain values, no bytes on the wire (``quorum.transport.codec``) and no rules (the
conversations). Sentinels follow Kafka: -1 for an unknown id, offset or epoch. Every request
carries the ``request_id`` its sender chose and every response repeats it, so that a response
to a request never sent is recognised and dropped.

See: KIP-595, KIP-630, KIP-853 (field meanings), docs/protocol.md.
"""

from __future__ import annotations

from typing import TypeAlias

from quorum.core.founding_messages import FoundingRequest, FoundingResponse
from quorum.core.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoterChangeResponse,
)
from quorum.errors import ErrorCode
from quorum.types import (
    NO_NODE,
    DigestAt,
    Endpoint,
    Epoch,
    EpochStart,
    NodeId,
    OffsetAndEpoch,
    ReplicaKey,
    SnapshotId,
    Uuid,
    VersionRange,
    Voter,
)
from quorum.values import value


@value
class VotersAt:
    """A voters control record found in received records, with its offset."""

    offset: int
    voters: tuple[Voter, ...]
    removed: tuple[ReplicaKey, ...] = ()
    """The tombstones it carries."""


@value
class ReceivedRecords:
    """Whole, checksum-verified batches of a Fetch answer, described for the core.

    Made by the receiving runtime; the core never looks into ``payload``.

    Invariants:
        1. ``base_offset < end_offset``; the batches are contiguous.
        2. ``epochs`` holds every epoch that starts inside, ascending; the first entry's
           ``start_offset`` equals ``base_offset``.
    """

    base_offset: int
    end_offset: int
    epochs: tuple[EpochStart, ...]
    voters: tuple[VotersAt, ...]
    payload: bytes


@value
class ReadRound:
    """A leadership confirmation round: counted within one epoch (ADR 9)."""

    epoch: Epoch = 0
    number: int = 0


NO_ROUND = ReadRound()
"""Carried while nothing has been echoed: epoch 0 has no leader, so it never counts."""


@value
class Subtree:
    """What a relay reports of the observers that fetch through it (630.5)."""

    low: int
    """The lowest offset that any of them still has to fetch."""
    members: int
    """How many they are, over all levels."""
    links: tuple[tuple[NodeId, NodeId], ...] = ()
    """Observer and whom it fetches from, nearest first; as many as fit into a report."""


@value
class VoteRequest:
    """Ask for a vote, or with ``pre_vote`` whether one would be given.

    ``epoch`` is already raised for a vote and not raised for a pre-vote. ``last`` is the
    sender's newest position: the newer of log end and latest snapshot (630.13).
    """

    request_id: int
    cluster_id: str
    candidate: ReplicaKey
    voter: ReplicaKey
    """The receiver as the sender knows it; id ``NO_NODE`` skips the check."""
    epoch: Epoch
    last: OffsetAndEpoch
    pre_vote: bool


@value
class VoteResponse:
    """Answer to ``VoteRequest``. ``granted`` is a promise and leaves only when durable."""

    request_id: int
    error: ErrorCode
    leader_id: NodeId
    epoch: Epoch
    granted: bool
    leader_endpoints: tuple[Endpoint, ...] = ()


@value
class BeginQuorumEpochRequest:
    """The leader of ``epoch`` announces itself to a voter."""

    request_id: int
    cluster_id: str
    voter: ReplicaKey
    leader: ReplicaKey
    epoch: Epoch
    leader_endpoints: tuple[Endpoint, ...] = ()


@value
class BeginQuorumEpochResponse:
    """Answer to ``BeginQuorumEpochRequest``; without an error it says what its author supports."""

    request_id: int
    error: ErrorCode
    leader_id: NodeId
    epoch: Epoch
    leader_endpoints: tuple[Endpoint, ...] = ()
    supported: tuple[VersionRange, ...] = ()


@value
class EndQuorumEpochRequest:
    """A leader gives up its epoch and says who should follow, best first."""

    request_id: int
    cluster_id: str
    leader: ReplicaKey
    epoch: Epoch
    preferred_successors: tuple[ReplicaKey, ...] = ()
    leader_endpoints: tuple[Endpoint, ...] = ()
    stand_now: bool = False
    """To the first successor only: stand without a pre-vote; the sender leads until deposed."""


@value
class EndQuorumEpochResponse:
    """Answer to ``EndQuorumEpochRequest``."""

    request_id: int
    error: ErrorCode
    leader_id: NodeId
    epoch: Epoch
    leader_endpoints: tuple[Endpoint, ...] = ()


@value
class FetchRequest:
    """Ask for records from ``fetch_offset`` on; from a voter also its acknowledgement below it."""

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
    own_digest: bytes = b""
    """The receiver's digest there, put in by its runtime; does not travel."""
    subtree: Subtree | None = None
    """From a relay: what its observers need; None when nobody fetches through the sender."""
    is_barred: bool = False
    """The sender does not vote although its key may be a voter's: count it as an observer."""
    has_lost_records: bool = False
    """The sender knows that its disk lost records and has a vote floor (ADR 7)."""


@value
class FetchResponse:
    """One of three answers: records, a diverging epoch, or the id of a snapshot to fetch.

    The core fills ``serve_bytes_max`` (> 0: read this much from the request's offset); the
    runtime replaces it by ``records`` before the message leaves. On the receiving side the
    runtime turns ``records`` into ``received`` before the core sees the message.
    """

    request_id: int
    error: ErrorCode
    leader_id: NodeId
    epoch: Epoch
    high_watermark: int = -1
    log_start_offset: int = 0
    diverging: OffsetAndEpoch | None = None
    snapshot_id: SnapshotId | None = None
    serve_offset: int = -1
    serve_bytes_max: int = 0
    serve_end_offset: int = -1
    """Serve only records below this offset: the log end, for plain consumers what is committed."""
    records: bytes = b""
    received: ReceivedRecords | None = None
    read_round: ReadRound = NO_ROUND
    leader_endpoints: tuple[Endpoint, ...] = ()
    leader_age_ms: int = -1
    """How long before this answer a majority certainly followed the leader; -1: not known."""
    path: tuple[ReplicaKey, ...] = ()
    """The relays it came through, nearest first; empty from the leader itself."""
    contact_age_ms: int = 0
    """From a relay: the leader is known to have led this long before the answer, or later."""


@value
class FetchSnapshotRequest:
    """Ask for up to ``max_bytes`` of a checkpoint file from byte ``position`` on."""

    request_id: int
    cluster_id: str
    replica: ReplicaKey
    epoch: Epoch
    snapshot_id: SnapshotId
    position: int
    max_bytes: int
    read_round: ReadRound = NO_ROUND
    is_barred: bool = False
    """As in ``FetchRequest``."""


@value
class FetchSnapshotResponse:
    """A slice of a checkpoint. ``size`` is the whole file's; ``chunk`` may cut a batch.

    The core fills ``serve_bytes_max``; the runtime reads the file and sets ``chunk`` and
    ``chunk_crc`` (CRC-32C). ``file_digest`` identifies the whole file, so that a download can
    resume from another leader only when it offers the same bytes.
    """

    request_id: int
    error: ErrorCode
    leader_id: NodeId
    epoch: Epoch
    snapshot_id: SnapshotId
    size: int = 0
    position: int = 0
    serve_bytes_max: int = 0
    chunk: bytes = b""
    chunk_crc: int = 0
    file_digest: bytes = b""
    read_round: ReadRound = NO_ROUND
    leader_endpoints: tuple[Endpoint, ...] = ()


@value
class ReadPositionRequest:
    """Ask the leader for an offset that linearizable reads may be answered at.

    Speaks for every read that waits at the sender when it leaves. See: ADR 9.
    """

    request_id: int
    cluster_id: str
    replica: ReplicaKey
    epoch: Epoch


@value
class ReadPositionResponse:
    """Answer to ``ReadPositionRequest``, once a read round begun after it was confirmed.

    An image that holds everything below ``read_offset`` holds every write acknowledged before
    the request was sent.
    """

    request_id: int
    error: ErrorCode
    leader_id: NodeId
    epoch: Epoch
    read_offset: int = -1
    leader_endpoints: tuple[Endpoint, ...] = ()


CHAIN_OFFSETS_MAX = 32
"""Digests asked for at a time."""


@value
class ChainDigestRequest:
    """Ask any replica, whatever its role, for its log digests.

    For each of ``offsets`` the digest at the last batch boundary at or below it.
    """

    request_id: int
    cluster_id: str
    replica: ReplicaKey
    epoch: Epoch
    offsets: tuple[int, ...]


@value
class ChainDigestResponse:
    """Answer to ``ChainDigestRequest``: one of ``points`` for each of ``offsets``.

    Offset -1 with an empty digest: not known. The answering runtime fills ``points``, the
    asking one puts its own beside them, in ``own``, which does not travel.
    """

    request_id: int
    error: ErrorCode
    leader_id: NodeId
    epoch: Epoch
    offsets: tuple[int, ...] = ()
    points: tuple[DigestAt, ...] = ()
    own: tuple[DigestAt, ...] = ()
    leader_endpoints: tuple[Endpoint, ...] = ()
    replica: ReplicaKey | None = None
    """Whose log this is; None with an error."""


Request: TypeAlias = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | FoundingRequest
    | FetchRequest
    | FetchSnapshotRequest
    | ReadPositionRequest
    | ChainDigestRequest
    | UpdateVoterRequest
    | AddVoterRequest
    | RemoveVoterRequest
)
Response: TypeAlias = (
    VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | FoundingResponse
    | FetchResponse
    | FetchSnapshotResponse
    | ReadPositionResponse
    | ChainDigestResponse
    | VoterChangeResponse
)
Message: TypeAlias = Request | Response

__all__ = [
    "CHAIN_OFFSETS_MAX",
    "NO_NODE",
    "AddVoterRequest",
    "BeginQuorumEpochRequest",
    "BeginQuorumEpochResponse",
    "ChainDigestRequest",
    "ChainDigestResponse",
    "EndQuorumEpochRequest",
    "EndQuorumEpochResponse",
    "FetchRequest",
    "FetchResponse",
    "FetchSnapshotRequest",
    "FetchSnapshotResponse",
    "FoundingRequest",
    "FoundingResponse",
    "Message",
    "ReadPositionRequest",
    "ReadPositionResponse",
    "ReadRound",
    "ReceivedRecords",
    "RemoveVoterRequest",
    "Request",
    "Response",
    "Subtree",
    "UpdateVoterRequest",
    "Uuid",
    "VoteRequest",
    "VoteResponse",
    "VoterChangeResponse",
    "VotersAt",
]
