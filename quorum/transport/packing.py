"""Hand-packed layouts of Fetch and FetchSnapshot on the peer stream.

These four messages carry the whole replication traffic. Packing by ``struct`` costs a few
microseconds, and records and chunks are appended raw: a protobuf ``bytes`` field of 1 MiB takes
a millisecond to serialise (measured). All other messages of the stream are protobuf
(``quorum.transport.codec``); kinds and dispatch are in ``quorum.transport.framing``.

A frame is ``kind, flags, tail position, request id``, fixed fields, then a tail. The tail
position counts from the frame's first byte, so that a later version may append fixed fields that
this one skips. Integers are big-endian and signed except lengths and the CRC.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError  # noqa: N812 - an exception class named in lower case
from typing import Final

from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.read_messages import ReadRound
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.errors import ErrorCode, PeerProtocolError
from quorum.transport.extensions import (
    pack_route,
    pack_subtree,
    pack_supported,
    unpack_route,
    unpack_subtree,
    unpack_supported,
)
from quorum.transport.limits import DIGEST_BYTES_MAX, ENDPOINTS_MAX
from quorum.types import Endpoint, OffsetAndEpoch, ReplicaKey

HEADER: Final = Struct(">BBHq")
"""Kind, flags, tail position, request id."""
DISQUALIFIED: Final = 0x01
"""Flag of Fetch and FetchSnapshot: the sender is disqualified, so it does not vote."""
LOST_RECORDS: Final = 0x02
"""Flag of Fetch: the sender's disk has lost records."""

FETCH_REQUEST: Final = 0x30
FETCH_RESPONSE: Final = 0x31
FETCH_SNAPSHOT_REQUEST: Final = 0x32
FETCH_SNAPSHOT_RESPONSE: Final = 0x33

# Replica id and directory, epoch, offset, last epoch, high watermark, wait, bytes, read round;
# lengths of cluster id and digest, which are the tail.
_FETCH_REQUEST: Final = Struct(">BBHq i16si qiqii iq BB")
# Error, leader, epoch, high watermark, log start, diverging, snapshot id, read round; length of
# the endpoints, which with the records are the tail; age of the leader in ms.
_FETCH_RESPONSE: Final = Struct(">BBHq hii qq qi qi iq H q")
# Replica id and directory, epoch, snapshot id, position, bytes, read round; length of the
# cluster id, which is the tail.
_SNAPSHOT_REQUEST: Final = Struct(">BBHq i16si qi qi iq B")
# Error, leader, epoch, snapshot id, size, position, CRC, read round; lengths of file digest and
# endpoints, which with the chunk are the tail.
_SNAPSHOT_RESPONSE: Final = Struct(">BBHq hii qi qq I iq BH")

_ENDPOINT: Final = Struct(">BBH")
_ABSENT: Final = OffsetAndEpoch(-1, -1)
_NO_ROUND: Final = ReadRound()
_ERRORS: Final[dict[int, ErrorCode]] = {int(code): code for code in ErrorCode}


def error_from_number(number: int) -> ErrorCode:
    """Return the code of that number; UNKNOWN_SERVER_ERROR for an unknown one."""
    return _ERRORS.get(number, ErrorCode.UNKNOWN_SERVER_ERROR)


def pack_fetch_request(message: FetchRequest) -> bytes:
    """Return the frame of a Fetch request.

    Raises:
        StructError, ValueError: A field does not fit its width.
    """
    cluster_id = message.cluster_id.encode()
    replica = message.replica
    read_round = message.read_round
    digest = message.digest
    extra = b"" if message.subtree is None else pack_subtree(message.subtree)
    if message.supported:
        extra += pack_supported(message.supported)
    flags = DISQUALIFIED * message.is_disqualified | LOST_RECORDS * message.has_lost_records
    return (
        _FETCH_REQUEST.pack(
            FETCH_REQUEST, flags, _FETCH_REQUEST.size + len(extra), message.request_id,
            replica.id, replica.directory_id, message.epoch,
            message.fetch_offset, message.last_fetched_epoch, message.high_watermark,
            message.max_wait_ms, message.max_bytes,
            read_round.epoch, read_round.number, len(cluster_id), len(digest),
        )
        + extra
        + cluster_id
        + digest
    )  # fmt: skip


def unpack_fetch_request(data: bytes) -> FetchRequest:
    """Inverse of ``pack_fetch_request``.

    Raises:
        PeerProtocolError: Malformed.
    """
    try:
        (_, flags, tail, request_id, replica_id, directory_id, epoch, fetch_offset,
         last_fetched_epoch, high_watermark, max_wait_ms, max_bytes, round_epoch, round_number,
         cluster_size, digest_size) = _FETCH_REQUEST.unpack_from(data)  # fmt: skip
        middle = tail + cluster_size
        if (
            tail < _FETCH_REQUEST.size
            or middle + digest_size != len(data)
            or digest_size > DIGEST_BYTES_MAX
        ):
            raise PeerProtocolError(f"Fetch of {len(data)} bytes contradicts its own lengths")
        cluster_id = data[tail:middle].decode()
    except (StructError, UnicodeDecodeError) as error:
        raise PeerProtocolError(f"malformed Fetch of {len(data)} bytes: {error}") from error
    extra = data[_FETCH_REQUEST.size : tail]
    return FetchRequest(
        request_id=request_id,
        cluster_id=cluster_id,
        replica=ReplicaKey(replica_id, directory_id),
        epoch=epoch,
        fetch_offset=fetch_offset,
        last_fetched_epoch=last_fetched_epoch,
        high_watermark=high_watermark,
        max_wait_ms=max_wait_ms,
        max_bytes=max_bytes,
        read_round=_read_round(round_epoch, round_number),
        digest=data[middle:],
        subtree=unpack_subtree(extra) if extra else None,
        is_disqualified=bool(flags & DISQUALIFIED),
        has_lost_records=bool(flags & LOST_RECORDS),
        supported=unpack_supported(extra) if extra else (),
    )


def pack_fetch_response(message: FetchResponse) -> bytes:
    """Return the frame of a Fetch response; ``records`` is copied once, into the frame.

    Raises:
        StructError, ValueError: A field does not fit its width.
    """
    diverging = message.diverging or _ABSENT
    snapshot_id = message.snapshot_id or _ABSENT
    read_round = message.read_round
    endpoints = pack_endpoints(message.leader_endpoints) if message.leader_endpoints else b""
    extra = pack_route(message.path, message.contact_age_ms) if message.path else b""
    head = _FETCH_RESPONSE.pack(
        FETCH_RESPONSE, 0, _FETCH_RESPONSE.size + len(extra), message.request_id,
        message.error, message.leader_id, message.epoch,
        message.high_watermark, message.log_start_offset,
        diverging.offset, diverging.epoch, snapshot_id.offset, snapshot_id.epoch,
        read_round.epoch, read_round.number, len(endpoints), message.leader_age_ms,
    )  # fmt: skip
    return b"".join((head, extra, endpoints, message.records))


def unpack_fetch_response(data: bytes) -> FetchResponse:
    """Inverse of ``pack_fetch_response``.

    Raises:
        PeerProtocolError: Malformed.
    """
    try:
        (_, _, tail, request_id, error, leader_id, epoch, high_watermark, log_start_offset,
         diverging_offset, diverging_epoch, snapshot_offset, snapshot_epoch,
         round_epoch, round_number, endpoints_size, leader_age_ms,
         ) = _FETCH_RESPONSE.unpack_from(data)  # fmt: skip
    except StructError as cause:
        raise PeerProtocolError(f"malformed Fetch response: {cause}") from cause
    records = tail + endpoints_size
    if tail < _FETCH_RESPONSE.size or records > len(data):
        raise PeerProtocolError(f"Fetch response of {len(data)} bytes contradicts its own lengths")
    path: tuple[ReplicaKey, ...] = ()
    age_ms = 0
    if tail > _FETCH_RESPONSE.size:
        path, age_ms = unpack_route(data[_FETCH_RESPONSE.size : tail])
    return FetchResponse(
        request_id=request_id,
        error=error_from_number(error),
        leader_id=leader_id,
        epoch=epoch,
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        diverging=(
            None
            if diverging_offset == diverging_epoch == _ABSENT.offset
            else OffsetAndEpoch(diverging_offset, diverging_epoch)
        ),
        snapshot_id=(
            None
            if snapshot_offset == snapshot_epoch == _ABSENT.offset
            else OffsetAndEpoch(snapshot_offset, snapshot_epoch)
        ),
        records=data[records:],
        read_round=_read_round(round_epoch, round_number),
        leader_endpoints=unpack_endpoints(data[tail:records]) if endpoints_size else (),
        leader_age_ms=leader_age_ms,
        path=path,
        contact_age_ms=age_ms,
    )


def pack_snapshot_request(message: FetchSnapshotRequest) -> bytes:
    """Return the frame of a FetchSnapshot request.

    Raises:
        StructError, ValueError: A field does not fit its width.
    """
    cluster_id = message.cluster_id.encode()
    flags = DISQUALIFIED * message.is_disqualified
    return (
        _SNAPSHOT_REQUEST.pack(
            FETCH_SNAPSHOT_REQUEST, flags, _SNAPSHOT_REQUEST.size, message.request_id,
            message.replica.id, message.replica.directory_id, message.epoch,
            message.snapshot_id.offset, message.snapshot_id.epoch,
            message.position, message.max_bytes,
            message.read_round.epoch, message.read_round.number, len(cluster_id),
        )
        + cluster_id
    )  # fmt: skip


def unpack_snapshot_request(data: bytes) -> FetchSnapshotRequest:
    """Inverse of ``pack_snapshot_request``.

    Raises:
        PeerProtocolError: Malformed.
    """
    try:
        (_, flags, tail, request_id, replica_id, directory_id, epoch, end_offset, snapshot_epoch,
         position, max_bytes, round_epoch, round_number,
         cluster_size) = _SNAPSHOT_REQUEST.unpack_from(data)  # fmt: skip
        if tail < _SNAPSHOT_REQUEST.size or tail + cluster_size != len(data):
            raise PeerProtocolError(
                f"FetchSnapshot of {len(data)} bytes contradicts its own lengths"
            )
        cluster_id = data[tail:].decode()
    except (StructError, UnicodeDecodeError) as error:
        raise PeerProtocolError(f"malformed FetchSnapshot: {error}") from error
    return FetchSnapshotRequest(
        request_id=request_id,
        cluster_id=cluster_id,
        replica=ReplicaKey(replica_id, directory_id),
        epoch=epoch,
        snapshot_id=OffsetAndEpoch(end_offset, snapshot_epoch),
        position=position,
        max_bytes=max_bytes,
        read_round=_read_round(round_epoch, round_number),
        is_disqualified=bool(flags & DISQUALIFIED),
    )


def pack_snapshot_response(message: FetchSnapshotResponse) -> bytes:
    """Return the frame of a FetchSnapshot response; ``chunk`` is copied once, into the frame.

    Raises:
        StructError, ValueError: A field does not fit its width.
    """
    endpoints = pack_endpoints(message.leader_endpoints) if message.leader_endpoints else b""
    head = _SNAPSHOT_RESPONSE.pack(
        FETCH_SNAPSHOT_RESPONSE, 0, _SNAPSHOT_RESPONSE.size, message.request_id,
        message.error, message.leader_id, message.epoch,
        message.snapshot_id.offset, message.snapshot_id.epoch, message.size, message.position,
        message.chunk_crc, message.read_round.epoch, message.read_round.number,
        len(message.file_digest), len(endpoints),
    )  # fmt: skip
    return b"".join((head, message.file_digest, endpoints, message.chunk))


def unpack_snapshot_response(data: bytes) -> FetchSnapshotResponse:
    """Inverse of ``pack_snapshot_response``.

    Raises:
        PeerProtocolError: Malformed.
    """
    try:
        (_, _, tail, request_id, error, leader_id, epoch, end_offset, snapshot_epoch, size,
         position, chunk_crc, round_epoch, round_number, digest_size,
         endpoints_size) = _SNAPSHOT_RESPONSE.unpack_from(data)  # fmt: skip
    except StructError as cause:
        raise PeerProtocolError(f"malformed FetchSnapshot response: {cause}") from cause
    endpoints = tail + digest_size
    chunk = endpoints + endpoints_size
    if tail < _SNAPSHOT_RESPONSE.size or chunk > len(data) or digest_size > DIGEST_BYTES_MAX:
        raise PeerProtocolError(
            f"FetchSnapshot response of {len(data)} bytes contradicts its own lengths"
        )
    return FetchSnapshotResponse(
        request_id=request_id,
        error=error_from_number(error),
        leader_id=leader_id,
        epoch=epoch,
        snapshot_id=OffsetAndEpoch(end_offset, snapshot_epoch),
        size=size,
        position=position,
        chunk=data[chunk:],
        chunk_crc=chunk_crc,
        file_digest=data[tail:endpoints],
        read_round=_read_round(round_epoch, round_number),
        leader_endpoints=unpack_endpoints(data[endpoints:chunk]) if endpoints_size else (),
    )


def pack_endpoints(endpoints: tuple[Endpoint, ...]) -> bytes:
    """Return each endpoint as lengths of name and host, port, name, host.

    Raises:
        StructError, ValueError: A name, host or port does not fit.
    """
    parts: list[bytes] = []
    for endpoint in endpoints:
        name, host = endpoint.name.encode(), endpoint.host.encode()
        parts += (_ENDPOINT.pack(len(name), len(host), endpoint.port), name, host)
    return b"".join(parts)


def unpack_endpoints(data: bytes) -> tuple[Endpoint, ...]:
    """Inverse of ``pack_endpoints``.

    Raises:
        PeerProtocolError: Malformed, or more than ``ENDPOINTS_MAX``.
    """
    endpoints: list[Endpoint] = []
    position = 0
    try:
        while position < len(data):
            name_size, host_size, port = _ENDPOINT.unpack_from(data, position)
            middle = position + _ENDPOINT.size + name_size
            end = middle + host_size
            if end > len(data) or len(endpoints) == ENDPOINTS_MAX:
                raise PeerProtocolError(f"more or longer endpoints than fit {len(data)} bytes")
            name = data[position + _ENDPOINT.size : middle].decode()
            endpoints.append(Endpoint(name, data[middle:end].decode(), port))
            position = end
    except (StructError, UnicodeDecodeError) as error:
        raise PeerProtocolError(f"malformed endpoints: {error}") from error
    return tuple(endpoints)


def _read_round(epoch: int, number: int) -> ReadRound:
    return ReadRound(epoch, number) if epoch or number else _NO_ROUND
