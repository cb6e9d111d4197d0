"""Encode and decode varints, compact strings and tagged fields: the smallest units on disk.

``batch_*``, ``control`` and the record codecs give the units their meaning. Encoders trust their
caller's types; decoders trust nothing.

Every decoder takes a buffer and a position and returns the value with the position behind it.
``end`` (exclusive) bounds what may be read. For malformed bytes, all of them raise ``ValueError``
and nothing else; the caller knows the file and converts it to its own error.

See: Kafka message format, "varint" (zig-zag LEB128) and KIP-482 (flexible versions).
"""

from __future__ import annotations

from typing import TypeAlias

from quorum.types import TaggedFields

Buffer: TypeAlias = bytes | bytearray | memoryview

UVARINT_BYTES_MAX = 5
VARLONG_BYTES_MAX = 10
TAGGED_FIELDS_MAX = 1024
"""A struct with more tagged fields counts as damaged."""

_TABLE_SIZE = 4096


def _leb128(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


# Lengths and offset deltas are nearly always small non-negative numbers, so one list lookup
# replaces the loop on the leader's write path.
_UVARINTS: tuple[bytes, ...] = tuple(_leb128(n) for n in range(_TABLE_SIZE))
SMALL_VARINTS: tuple[bytes, ...] = tuple(_leb128(n << 1) for n in range(_TABLE_SIZE))
"""``encode_varint`` of the numbers from 0 on, for encoders that save the call."""


def encode_uvarint(value: int) -> bytes:
    """Encode an unsigned 32-bit value as LEB128, 1 to 5 bytes.

    Raises:
        ValueError: If the value is outside [0, 2**32).
    """
    if 0 <= value < _TABLE_SIZE:
        return _UVARINTS[value]
    if not 0 <= value < 1 << 32:
        raise ValueError(f"{value} does not fit an unsigned varint")
    return _leb128(value)


def encode_varint(value: int) -> bytes:
    """Encode a signed 32-bit value as zig-zag LEB128, 1 to 5 bytes.

    Raises:
        ValueError: If the value is outside [-2**31, 2**31).
    """
    if 0 <= value < _TABLE_SIZE:
        return SMALL_VARINTS[value]
    if not -(1 << 31) <= value < 1 << 31:
        raise ValueError(f"{value} does not fit a varint")
    return _leb128((value << 1) ^ (value >> 31))


def _read_leb128(data: Buffer, position: int, end: int, bytes_max: int) -> tuple[int, int]:
    value = 0
    for index in range(bytes_max):
        at = position + index
        if at >= end:
            raise ValueError("varint cut off")
        byte = data[at]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, at + 1
    raise ValueError(f"varint longer than {bytes_max} bytes")


def read_uvarint(data: Buffer, position: int, end: int) -> tuple[int, int]:
    """Return the unsigned 32-bit value at ``position`` and the position behind it."""
    if position < end and (byte := data[position]) < 0x80:
        return byte, position + 1
    value, position = _read_leb128(data, position, end, UVARINT_BYTES_MAX)
    if value >= 1 << 32:
        raise ValueError("varint exceeds 32 bits")
    return value, position


def read_varint(data: Buffer, position: int, end: int) -> tuple[int, int]:
    """Return the zig-zag 32-bit value at ``position`` and the position behind it."""
    if position < end and (byte := data[position]) < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    value, position = read_uvarint(data, position, end)
    return (value >> 1) ^ -(value & 1), position


def read_varlong(data: Buffer, position: int, end: int) -> tuple[int, int]:
    """Return the zig-zag 64-bit value at ``position`` and the position behind it."""
    if position < end and (byte := data[position]) < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    value, position = _read_leb128(data, position, end, VARLONG_BYTES_MAX)
    if value >= 1 << 64:
        raise ValueError("varlong exceeds 64 bits")
    return (value >> 1) ^ -(value & 1), position


def read_bytes(data: Buffer, position: int, end: int, size: int) -> tuple[bytes, int]:
    """Return exactly ``size`` bytes and the position behind them."""
    after = position + size
    if size < 0 or after > end:
        raise ValueError(f"{size} bytes wanted where {end - position} are left")
    return bytes(data[position:after]), after


def encode_compact_string(text: str) -> bytes:
    """Encode UTF-8 text behind its length plus one."""
    raw = text.encode()
    return encode_uvarint(len(raw) + 1) + raw


def read_compact_string(data: Buffer, position: int, end: int) -> tuple[str, int]:
    """Return a non-null compact string and the position behind it."""
    length, position = read_uvarint(data, position, end)
    if length == 0:
        raise ValueError("null where a string is required")
    raw, position = read_bytes(data, position, end, length - 1)
    return raw.decode(), position  # UnicodeDecodeError is a ValueError


def encode_tagged_fields(fields: TaggedFields = ()) -> bytes:
    """Encode a struct's tagged section, ``00`` if there are none.

    Raises:
        ValueError: If the tags are not strictly ascending.
    """
    if not fields:
        return b"\x00"
    parts = [encode_uvarint(len(fields))]
    previous = -1
    for tag, payload in fields:
        if tag <= previous:
            raise ValueError(f"tag {tag} after tag {previous}")
        previous = tag
        parts += (encode_uvarint(tag), encode_uvarint(len(payload)), payload)
    return b"".join(parts)


def read_tagged_fields(data: Buffer, position: int, end: int) -> tuple[TaggedFields, int]:
    """Return a struct's tagged section, unknown tags included, and the position behind it."""
    count, position = read_uvarint(data, position, end)
    if count == 0:
        return (), position
    if count > TAGGED_FIELDS_MAX:
        raise ValueError(f"{count} tagged fields in one struct")
    fields = []
    previous = -1
    for _ in range(count):
        tag, position = read_uvarint(data, position, end)
        if tag <= previous:
            raise ValueError(f"tag {tag} after tag {previous}")
        previous = tag
        size, position = read_uvarint(data, position, end)
        payload, position = read_bytes(data, position, end, size)
        fields.append((tag, payload))
    return tuple(fields), position
