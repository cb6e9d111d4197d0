"""Frames of the peer stream: one message each, encoded and decoded.

``encode_frame`` and ``decode_frame`` are the only entry points. The four replication messages are
packed by hand (``quorum.transport.packing``), the others are protobuf behind the same 12-byte
header. A stream opens with a hello in each direction (``quorum.transport.hello``). A goodbye
announces that the server closes on purpose, so that the end does not count as its death. A probe
from the server asks whether the process at the other end still runs; "alive" answers it. On TCP the
server ends a stream with a status, which gRPC sends in its own form.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import error as StructError  # noqa: N812 - an exception class named in lower case
from typing import Any, Final, TypeAlias, TypeGuard

from google.protobuf.message import DecodeError

from quorum.core.messages.bootstrap_messages import BootstrapRequest, BootstrapResponse
from quorum.core.messages.chain_messages import ChainDigestRequest, ChainDigestResponse
from quorum.core.messages.epoch_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.message_types import Message, Request, Response
from quorum.core.messages.read_messages import ReadPositionRequest, ReadPositionResponse
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.core.messages.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoterChangeResponse,
)
from quorum.errors import PeerProtocolError, QuorumUsageError
from quorum.transport import packing
from quorum.transport.codec import PEERS
from quorum.transport.packing import HEADER
from quorum.types import ReplicaKey

HELLO: Final = 0x01
GOODBYE: Final = 0x02
PROBE: Final = 0x03
ALIVE: Final = 0x04
STATUS: Final = 0x05
VOTE_REQUEST: Final = 0x20
VOTE_RESPONSE: Final = 0x21
BEGIN_REQUEST: Final = 0x22
BEGIN_RESPONSE: Final = 0x23
END_REQUEST: Final = 0x24
END_RESPONSE: Final = 0x25
READ_POSITION_REQUEST: Final = 0x34
READ_POSITION_RESPONSE: Final = 0x35
CHAIN_DIGEST_REQUEST: Final = 0x26
CHAIN_DIGEST_RESPONSE: Final = 0x27
UPDATE_VOTER_REQUEST: Final = 0x40
ADD_VOTER_REQUEST: Final = 0x41
REMOVE_VOTER_REQUEST: Final = 0x42
VOTER_CHANGE_RESPONSE: Final = 0x43
BOOTSTRAP_REQUEST: Final = 0x28
BOOTSTRAP_RESPONSE: Final = 0x29

GOODBYE_FRAME: Final = HEADER.pack(GOODBYE, 0, HEADER.size, 0)
PROBE_FRAME: Final = HEADER.pack(PROBE, 0, HEADER.size, 0)
ALIVE_FRAME: Final = HEADER.pack(ALIVE, 0, HEADER.size, 0)

_Encoder: TypeAlias = Callable[[Any], bytes]
_Decoder: TypeAlias = Callable[[bytes], Message]

_PROTOBUF: Final[dict[int, type[Message]]] = {
    VOTE_REQUEST: VoteRequest,
    VOTE_RESPONSE: VoteResponse,
    BEGIN_REQUEST: BeginQuorumEpochRequest,
    BEGIN_RESPONSE: BeginQuorumEpochResponse,
    END_REQUEST: EndQuorumEpochRequest,
    END_RESPONSE: EndQuorumEpochResponse,
    READ_POSITION_REQUEST: ReadPositionRequest,
    READ_POSITION_RESPONSE: ReadPositionResponse,
    CHAIN_DIGEST_REQUEST: ChainDigestRequest,
    CHAIN_DIGEST_RESPONSE: ChainDigestResponse,
    UPDATE_VOTER_REQUEST: UpdateVoterRequest,
    ADD_VOTER_REQUEST: AddVoterRequest,
    REMOVE_VOTER_REQUEST: RemoveVoterRequest,
    VOTER_CHANGE_RESPONSE: VoterChangeResponse,
    BOOTSTRAP_REQUEST: BootstrapRequest,
    BOOTSTRAP_RESPONSE: BootstrapResponse,
}


def _protobuf_encoder(kind: int, message: type[Message]) -> _Encoder:
    to_pb = PEERS[message].to_pb

    def encode(message: Any) -> bytes:
        head = HEADER.pack(kind, 0, HEADER.size, message.request_id)
        return head + bytes(to_pb(message).SerializeToString())

    return encode


def _protobuf_decoder(message: type[Message]) -> _Decoder:
    codec = PEERS[message]

    def decode(data: bytes) -> Message:
        try:
            _, _, tail, request_id = HEADER.unpack_from(data)
            value = codec.message.FromString(data[tail:])
        except (StructError, DecodeError) as error:
            raise PeerProtocolError(
                f"malformed {codec.message.DESCRIPTOR.name} frame of {len(data)} bytes: {error}"
            ) from error
        return codec.from_pb(value, request_id)

    return decode


_ENCODERS: Final[dict[type[Message], _Encoder]] = {
    FetchRequest: packing.pack_fetch_request,
    FetchResponse: packing.pack_fetch_response,
    FetchSnapshotRequest: packing.pack_snapshot_request,
    FetchSnapshotResponse: packing.pack_snapshot_response,
    **{message: _protobuf_encoder(kind, message) for kind, message in _PROTOBUF.items()},
}
_DECODERS: Final[dict[int, _Decoder]] = {
    packing.FETCH_REQUEST: packing.unpack_fetch_request,
    packing.FETCH_RESPONSE: packing.unpack_fetch_response,
    packing.FETCH_SNAPSHOT_REQUEST: packing.unpack_snapshot_request,
    packing.FETCH_SNAPSHOT_RESPONSE: packing.unpack_snapshot_response,
    **{kind: _protobuf_decoder(message) for kind, message in _PROTOBUF.items()},
}
_RESPONSE_OF: Final[dict[type[Request], type[Response]]] = {
    VoteRequest: VoteResponse,
    BeginQuorumEpochRequest: BeginQuorumEpochResponse,
    EndQuorumEpochRequest: EndQuorumEpochResponse,
    BootstrapRequest: BootstrapResponse,
    FetchRequest: FetchResponse,
    FetchSnapshotRequest: FetchSnapshotResponse,
    ReadPositionRequest: ReadPositionResponse,
    ChainDigestRequest: ChainDigestResponse,
    UpdateVoterRequest: VoterChangeResponse,
    AddVoterRequest: VoterChangeResponse,
    RemoveVoterRequest: VoterChangeResponse,
}


def encode_frame(message: Message) -> bytes:
    """Return the bytes of a message.

    Raises:
        QuorumUsageError: A number or name of ours does not fit the width of its field.
    """
    try:
        return _ENCODERS[type(message)](message)
    except (StructError, ValueError) as error:
        raise QuorumUsageError(
            f"{type(message).__name__} {message.request_id} cannot be encoded: {error}"
        ) from error


def decode_frame(data: bytes) -> Message:
    """Return the message in a frame.

    Raises:
        PeerProtocolError: Anything but a frame of a known kind. No other exception for any bytes.
    """
    decode = _DECODERS.get(data[0]) if data else None
    if decode is None:
        raise PeerProtocolError(f"frame of unknown kind {data[:1].hex() or '(empty)'}")
    return decode(data)


def is_request(message: Message) -> TypeGuard[Request]:
    """Whether the message is a request."""
    return type(message) in _RESPONSE_OF


def is_answer(message: Message, request: type[Request]) -> TypeGuard[Response]:
    """Whether the message has the type of a response to such a request."""
    return type(message) is _RESPONSE_OF[request]


def sender_key(request: Request) -> ReplicaKey:
    """Return the replica key that the request claims as its author."""
    match request:
        case (
            FetchRequest()
            | FetchSnapshotRequest()
            | ReadPositionRequest()
            | ChainDigestRequest()
            | RemoveVoterRequest()
        ):
            return request.replica
        case UpdateVoterRequest() | AddVoterRequest():
            return request.voter.key
        case VoteRequest():
            return request.candidate
        case BeginQuorumEpochRequest() | EndQuorumEpochRequest():
            return request.leader
        case BootstrapRequest():
            return request.sender
