"""Encode record batches v2, fast enough for one batch per client command.

It encodes values as a batch, and positions a finished batch in the log. The callers choose values,
headers and positions.

See: KIP-98 (message format v2), docs/reference/batches.md#batch.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from crc32c import crc32c

from quorum.batch_header import (
    BATCH_BYTES_MAX,
    CONTROL_BIT,
    HEADER_BYTES,
    LENGTH_OVERHEAD_BYTES,
    MAGIC,
    BatchHeader,
)
from quorum.errors import QuorumUsageError
from quorum.record_prefix import NULL_KEY, PLAIN_PREFIXES, plain_prefix
from quorum.varint import SMALL_VARINTS, encode_varint

RecordHeader = tuple[str, bytes | None]

_FRONT = struct.Struct(">qiibI")
_BACK = struct.Struct(">hiqqqhii")
_EPOCH = struct.Struct(">i")
_BASE_OFFSET = struct.Struct(">q")
_EPOCH_AT = 12

_ATTRIBUTES_AND_TIMESTAMP = b"\x00\x00"
_EMPTY_HEADERS = b"\x00"
_PREFIX_COUNT = len(PLAIN_PREFIXES)
_SMALL_COUNT = len(SMALL_VARINTS)
_HEADER_NAMES_MAX = 64
_header_names: dict[str, bytes] = {}


def _encode_headers(headers: Sequence[RecordHeader]) -> bytes:
    parts = [encode_varint(len(headers))]
    for name, value in headers:
        front = _header_names.get(name) or _encode_name(name)
        if value is None:
            parts += (front, NULL_KEY)
        else:
            size = len(value)
            length = SMALL_VARINTS[size] if size < _SMALL_COUNT else encode_varint(size)
            parts += (front, length, value)
    return b"".join(parts)


def _encode_name(name: str) -> bytes:
    """Return a header name with its length; the first names are cached, because writers use few."""
    raw = name.encode()
    front = encode_varint(len(raw)) + raw
    if len(_header_names) < _HEADER_NAMES_MAX:
        _header_names[name] = front
    return front


def _encode_record(index: int, key: bytes | None, value: bytes, headers: bytes) -> bytes:
    if key is not None:
        prefix = b"".join(
            (_ATTRIBUTES_AND_TIMESTAMP, encode_varint(index), encode_varint(len(key)), key)
        )
    else:
        prefix = PLAIN_PREFIXES[index] if index < _PREFIX_COUNT else plain_prefix(index)
    size = encode_varint(len(value))
    length = encode_varint(len(prefix) + len(size) + len(value) + len(headers))
    return b"".join((length, prefix, size, value, headers))


def _add_plain_records(parts: list[bytes], values: Sequence[bytes]) -> None:
    """Encode all values but the first, as ``_encode_record`` without key and headers.

    Checkpoints consist almost only of such records, so no bytes are copied twice.
    """
    for index in range(1, len(values)):
        value = values[index]
        prefix = PLAIN_PREFIXES[index] if index < _PREFIX_COUNT else plain_prefix(index)
        size = encode_varint(len(value))
        length = len(prefix) + len(size) + len(value) + len(_EMPTY_HEADERS)
        parts += (encode_varint(length), prefix, size, value, _EMPTY_HEADERS)


def _encode_records(
    values: Sequence[bytes], keys: Sequence[bytes] | None, first_headers: bytes
) -> bytes:
    first = _encode_record(0, None if keys is None else keys[0], values[0], first_headers)
    if len(values) == 1:
        return first
    parts = [first]
    if keys is None:
        _add_plain_records(parts, values)
    else:
        parts += (
            _encode_record(index, keys[index], values[index], _EMPTY_HEADERS)
            for index in range(1, len(values))
        )
    return b"".join(parts)


def encode_batch(
    values: Sequence[bytes],
    *,
    base_offset: int,
    epoch: int,
    timestamp: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    headers: Sequence[RecordHeader] = (),
    control_keys: Sequence[bytes] | None = None,
) -> bytes:
    """Return one batch with ``values`` at consecutive offsets from ``base_offset`` on.

    ``timestamp`` (milliseconds since 1970) applies to the batch and to every record. Only the
    first record has ``headers``. ``control_keys``, one per value, make it a control batch.

    Raises:
        QuorumUsageError: No values, an empty value, a number outside its field, or a batch above
            ``BATCH_BYTES_MAX``.
    """
    batch, _ = encode_with_header(
        values,
        base_offset=base_offset,
        epoch=epoch,
        timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        headers=headers,
        control_keys=control_keys,
    )
    return batch


def encode_with_header(  # noqa: PLR0913 - the fields of a batch, by keyword
    values: Sequence[bytes],
    *,
    base_offset: int,
    epoch: int,
    timestamp: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    headers: Sequence[RecordHeader] = (),
    control_keys: Sequence[bytes] | None = None,
    position: int = 0,
) -> tuple[bytes, BatchHeader]:
    """Return a batch as ``encode_batch`` does, and its header.

    The header is what ``scan_batches`` would find for the batch at ``position`` of some bytes.
    """
    count = len(values)
    first_headers = _encode_headers(headers) if headers else _EMPTY_HEADERS
    attributes = 0
    if control_keys is not None:
        attributes |= CONTROL_BIT
        if len(control_keys) != count:
            raise QuorumUsageError(f"{len(control_keys)} control keys for {count} values")
    if count == 0 or not all(values):
        raise QuorumUsageError(f"a batch of {count} values, each must be non-empty")
    try:
        records = _encode_records(values, control_keys, first_headers)
        back = _BACK.pack(
            attributes,
            count - 1,
            timestamp,
            timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        )
        size = HEADER_BYTES + len(records)
        if size > BATCH_BYTES_MAX:
            raise QuorumUsageError(f"a batch of {size} bytes, maximum {BATCH_BYTES_MAX}")
        crc = crc32c(records, crc32c(back))
        front = _FRONT.pack(base_offset, size - LENGTH_OVERHEAD_BYTES, epoch, MAGIC, crc)
    except (struct.error, ValueError) as error:
        raise QuorumUsageError(f"cannot encode a batch: {error}") from error
    # Create the tuple directly, as ``read_header`` does.
    header: BatchHeader = tuple.__new__(
        BatchHeader,
        (
            position,
            size,
            base_offset,
            base_offset + count,
            epoch,
            crc,
            attributes,
            timestamp,
            timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        ),
    )
    return b"".join((front, back, records)), header


def with_position(batch: bytes, base_offset: int, epoch: int) -> bytes:
    """Return the batch at another position: both fields are outside the checksum.

    Raises:
        QuorumUsageError: Not a batch, or a number outside its field.
    """
    if len(batch) <= HEADER_BYTES:
        raise QuorumUsageError(f"{len(batch)} bytes are not a batch")
    try:
        offset, place = _BASE_OFFSET.pack(base_offset), _EPOCH.pack(epoch)
    except struct.error as error:
        raise QuorumUsageError(f"cannot place a batch: {error}") from error
    if batch.startswith(offset) and batch.startswith(place, _EPOCH_AT):
        return batch
    return b"".join((offset, batch[8:_EPOCH_AT], place, batch[_EPOCH_AT + 4 :]))
