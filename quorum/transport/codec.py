"""Convert core messages to and from protobuf messages of ``quorum.v1``, by the table ``PEERS``.

The conversion is total in both directions. Every well-formed protobuf message becomes a core
message or a ``PeerProtocolError``; every core message whose numbers fit their fields becomes
protobuf. Only the shape is checked here: required parts, identities of 16 bytes, bounded lists.
The core evaluates the values.

Two messages are converted by hand, because they do not map to one message: the unary Fetch below,
which shares ``FetchRequest`` with the packed frames (``quorum.transport.packing``), and the
FetchSnapshot of several partitions (``quorum.transport.snapshots``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, cast

from quorum.control_records import Origin
from quorum.core.messages.bootstrap_messages import BootstrapRequest, BootstrapResponse
from quorum.core.messages.chain_messages import (
    CHAIN_OFFSETS_MAX,
    ChainDigestRequest,
    ChainDigestResponse,
)
from quorum.core.messages.epoch_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.read_messages import (
    ReadPositionRequest,
    ReadPositionResponse,
    ReadRound,
)
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.core.messages.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoterChangeResponse,
)
from quorum.errors import ErrorCode, PeerProtocolError
from quorum.protobuf_table import CodecTable, Converter
from quorum.transport.limits import (
    CLUSTER_ID_BYTES_MAX,
    DIGEST_BYTES_MAX,
    ENDPOINTS_MAX,
    HOST_BYTES_MAX,
    NAME_CHARACTERS_MAX,
    RANGES_MAX,
    SUCCESSORS_MAX,
)
from quorum.transport.packing import error_from_number
from quorum.types import (
    NO_NODE,
    ZERO_UUID,
    DigestAt,
    Endpoint,
    OffsetAndEpoch,
    ReplicaKey,
    Uuid,
    VersionRange,
    Voter,
)
from quorum.v1 import common_pb2, raft_pb2

MESSAGE_CHARACTERS_MAX: Final = 1024
"""Bound of a response's text for humans; senders cut it, receivers refuse more."""

ORIGIN_CHARACTERS_MAX: Final = 1024
"""Bound of a principal and of a reason in an ``Origin``: that of a request's."""

_PORT_MAX: Final = 65535


def error_to_pb(code: ErrorCode) -> common_pb2.ErrorCode:
    """Return the code's number, which protobuf's open enums accept as a value."""
    return cast("common_pb2.ErrorCode", int(code))


def uuid_from_pb(value: bytes) -> Uuid:
    """Return 16 bytes, or the zero uuid if absent.

    Raises:
        PeerProtocolError: Any other length.
    """
    if not value:
        return ZERO_UUID
    if len(value) != len(ZERO_UUID):
        raise PeerProtocolError(f"a directory id has 16 bytes, not {len(value)}")
    return value


def cluster_id_from_pb(value: str) -> str:
    """Return the cluster id, whose length is bounded.

    Raises:
        PeerProtocolError: Too long.
    """
    if len(value) > CLUSTER_ID_BYTES_MAX:
        raise PeerProtocolError(f"cluster id of {len(value)} characters")
    return value


def _check_endpoint(endpoint: Endpoint) -> None:
    if endpoint.port > _PORT_MAX:
        raise PeerProtocolError(f"port {endpoint.port} of {endpoint.host!r}")
    if len(endpoint.host) > HOST_BYTES_MAX or len(endpoint.name) > HOST_BYTES_MAX:
        raise PeerProtocolError(f"endpoint name or host above {HOST_BYTES_MAX} characters")


def _check_digest(point: DigestAt) -> None:
    if len(point.value) > DIGEST_BYTES_MAX:
        raise PeerProtocolError(f"digest of {len(point.value)} bytes")


def _check_range(each: VersionRange) -> None:
    if len(each.name) > NAME_CHARACTERS_MAX:
        raise PeerProtocolError(f"a feature's name above {NAME_CHARACTERS_MAX} characters")


def _check_origin(origin: Origin) -> None:
    if max(len(origin.principal), len(origin.reason)) > ORIGIN_CHARACTERS_MAX:
        raise PeerProtocolError(
            f"who and why of a transfer above {ORIGIN_CHARACTERS_MAX} characters"
        )


def _check_text(response: VoterChangeResponse) -> None:
    if len(response.message) > MESSAGE_CHARACTERS_MAX:
        count = len(response.message)
        raise PeerProtocolError(f"VoterChange response: {count} characters of text")


PEERS: Final = CodecTable(
    PeerProtocolError,
    beside=("request_id",),
    local=("own", "tagged"),
    rename={"error": "error_code"},
    groups={"current_leader": {"leader_id": "leader_id", "epoch": "leader_epoch"}},
    converters={
        "cluster_id": Converter(from_pb=cluster_id_from_pb),
        ErrorCode: Converter(int, error_from_number),
    },
)
"""Every message that replicas exchange as protobuf, and its parts.

``PeerProtocolError`` is raised for a missing required part, a list too long, an id of another size,
and by a failed ``check``.
"""

_key = PEERS.describe(ReplicaKey, common_pb2.ReplicaKey, sequence_max=SUCCESSORS_MAX)
_position = PEERS.describe(OffsetAndEpoch, common_pb2.OffsetAndEpoch)
_endpoint = PEERS.describe(
    Endpoint, common_pb2.Endpoint, sequence_max=ENDPOINTS_MAX, check=_check_endpoint
)
_round = PEERS.describe(ReadRound, raft_pb2.ReadRound)
PEERS.describe(
    DigestAt, raft_pb2.DigestAt, rename={"value": "digest"},
    sequence_max=CHAIN_OFFSETS_MAX, check=_check_digest,
)  # fmt: skip
PEERS.describe(VersionRange, raft_pb2.VersionRange, sequence_max=RANGES_MAX, check=_check_range)
PEERS.describe(
    Voter, raft_pb2.VoterEntry,
    rename={
        "min_supported_version": "kraft_version_min", "max_supported_version": "kraft_version_max",
    },
)  # fmt: skip

_RECEIVER: Final = {"voter": ReplicaKey(NO_NODE)}
"""An absent receiver is not checked."""

PEERS.describe(VoteRequest, raft_pb2.VoteRequest, absent=_RECEIVER)
PEERS.describe(VoteResponse, raft_pb2.VoteResponse)
PEERS.describe(BeginQuorumEpochRequest, raft_pb2.BeginQuorumEpochRequest, absent=_RECEIVER)
PEERS.describe(BeginQuorumEpochResponse, raft_pb2.BeginQuorumEpochResponse)
PEERS.describe(Origin, raft_pb2.ChangeOrigin, check=_check_origin)
PEERS.describe(EndQuorumEpochRequest, raft_pb2.EndQuorumEpochRequest)
PEERS.describe(EndQuorumEpochResponse, raft_pb2.EndQuorumEpochResponse)
PEERS.describe(ReadPositionRequest, raft_pb2.ReadPositionRequest)
PEERS.describe(ReadPositionResponse, raft_pb2.ReadPositionResponse)
PEERS.describe(
    ChainDigestRequest, raft_pb2.ChainDigestRequest,
    # A tool's request names no replica.
    absent={"replica": ReplicaKey(NO_NODE)}, at_most={"offsets": CHAIN_OFFSETS_MAX},
)  # fmt: skip
PEERS.describe(
    ChainDigestResponse, raft_pb2.ChainDigestResponse, at_most={"offsets": CHAIN_OFFSETS_MAX}
)
PEERS.describe(UpdateVoterRequest, raft_pb2.UpdateOwnVoterRequest)
PEERS.describe(AddVoterRequest, raft_pb2.AddOwnVoterRequest)
PEERS.describe(RemoveVoterRequest, raft_pb2.RemoveOwnVoterRequest)
PEERS.describe(
    VoterChangeResponse, raft_pb2.OwnVoterResponse,
    convert={"message": Converter(to_pb=lambda text: text[:MESSAGE_CHARACTERS_MAX])},
    check=_check_text,
)  # fmt: skip
PEERS.describe(
    BootstrapRequest, raft_pb2.BootstrapRequest,
    absent=_RECEIVER, at_most={"voter_list": SUCCESSORS_MAX},
)  # fmt: skip
PEERS.describe(
    BootstrapResponse, raft_pb2.BootstrapResponse, at_most={"voter_list": SUCCESSORS_MAX}
)

key_from_pb: Final = _key.from_pb
position_to_pb: Final = _position.to_pb
position_from_pb: Final = _position.from_pb
round_to_pb: Final = _round.to_pb
round_from_pb: Final = _round.from_pb


def leader_to_pb(leader_id: int, epoch: int) -> common_pb2.LeaderAndEpoch:
    """Return leader (-1: unknown) and epoch."""
    return common_pb2.LeaderAndEpoch(leader_id=leader_id, leader_epoch=epoch)


def endpoints_to_pb(endpoints: Iterable[Endpoint]) -> list[common_pb2.Endpoint]:
    """Return the endpoints in the given order."""
    return [_endpoint.to_pb(each) for each in endpoints]


def fetch_request_from_pb(value: raft_pb2.FetchRequest, request_id: int) -> FetchRequest:
    """Return a probe's or a foreign client's Fetch; without ``replica`` it is a plain consumer's.

    Raises:
        PeerProtocolError: A field of impossible size.
    """
    if len(value.digest) > DIGEST_BYTES_MAX:
        raise PeerProtocolError(f"digest of {len(value.digest)} bytes")
    return FetchRequest(
        request_id=request_id,
        cluster_id=cluster_id_from_pb(value.cluster_id),
        replica=key_from_pb(value.replica) if value.HasField("replica") else ReplicaKey(NO_NODE),
        epoch=value.current_leader_epoch,
        fetch_offset=value.fetch_offset,
        last_fetched_epoch=value.last_fetched_epoch,
        high_watermark=value.high_watermark if value.HasField("high_watermark") else -1,
        max_wait_ms=value.max_wait_ms,
        max_bytes=value.max_bytes,
        read_round=round_from_pb(value.read_round),
        digest=value.digest,
    )


def fetch_response_to_pb(message: FetchResponse) -> raft_pb2.FetchResponse:
    """Return the answer to a unary Fetch."""
    return raft_pb2.FetchResponse(
        error_code=error_to_pb(message.error),
        current_leader=leader_to_pb(message.leader_id, message.epoch),
        high_watermark=message.high_watermark if message.high_watermark >= 0 else None,
        log_start_offset=message.log_start_offset,
        diverging=position_to_pb(message.diverging) if message.diverging else None,
        snapshot_id=position_to_pb(message.snapshot_id) if message.snapshot_id else None,
        records=message.records,
        read_round=round_to_pb(message.read_round),
        leader_endpoints=endpoints_to_pb(message.leader_endpoints),
        leader_age_ms=message.leader_age_ms if message.leader_age_ms >= 0 else None,
    )
