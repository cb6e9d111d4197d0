"""Encode and decode parts of control values: numbers, arrays, voters and their endpoints.

For malformed bytes, readers raise ``ValueError`` and nothing else; ``quorum.control`` adds file and
offset.

See: KIP-853 (VotersRecord), KIP-482 (compact arrays).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TypeVar

from quorum.types import Endpoint, ReplicaKey, Voter
from quorum.varint import (
    encode_compact_string,
    encode_tagged_fields,
    encode_uvarint,
    read_bytes,
    read_compact_string,
    read_tagged_fields,
    read_uvarint,
)

T = TypeVar("T")


def read_number(value: bytes, position: int, size: int) -> tuple[int, int]:
    """Return a signed big-endian number of ``size`` bytes and the position behind it."""
    after = position + size
    if after > len(value):
        raise ValueError(f"{size} bytes wanted where {len(value) - position} are left")
    return int.from_bytes(value[position:after], "big", signed=True), after


def write_array(items: Sequence[T], write: Callable[[T], bytes]) -> bytes:
    """Return a compact array: count plus one, then each item."""
    return encode_uvarint(len(items) + 1) + b"".join(map(write, items))


def read_array(
    value: bytes, position: int, read: Callable[[bytes, int], tuple[T, int]]
) -> tuple[tuple[T, ...], int]:
    """Return a non-null compact array and the position behind it."""
    length, position = read_uvarint(value, position, len(value))
    # Every item takes at least one byte, so a higher count is damage: do not start reading.
    if not 0 < length <= len(value) - position + 1:
        raise ValueError(f"array of {length - 1} items in {len(value) - position} bytes")
    items = []
    for _ in range(length - 1):
        item, position = read(value, position)
        items.append(item)
    return tuple(items), position


def _write_endpoint(endpoint: Endpoint) -> bytes:
    return b"".join(
        (
            encode_compact_string(endpoint.name),
            encode_compact_string(endpoint.host),
            struct.pack(">H", endpoint.port),
            encode_tagged_fields(),
        )
    )


def _read_endpoint(value: bytes, position: int) -> tuple[Endpoint, int]:
    name, position = read_compact_string(value, position, len(value))
    host, position = read_compact_string(value, position, len(value))
    port, position = read_bytes(value, position, len(value), 2)
    _, position = read_tagged_fields(value, position, len(value))
    return Endpoint(name, host, int.from_bytes(port, "big")), position


def write_key(key: ReplicaKey) -> bytes:
    """Return a replica key as an entry of our own tagged fields.

    Raises:
        ValueError: A directory id that is not 16 bytes.
    """
    if len(key.directory_id) != 16:
        raise ValueError(f"directory id of {len(key.directory_id)} bytes")
    return struct.pack(">i", key.id) + key.directory_id + encode_tagged_fields()


def read_key(value: bytes, position: int) -> tuple[ReplicaKey, int]:
    """Inverse of ``write_key``, and the position behind it."""
    node_id, position = read_number(value, position, 4)
    directory_id, position = read_bytes(value, position, len(value), 16)
    _, position = read_tagged_fields(value, position, len(value))
    return ReplicaKey(node_id, directory_id), position


def write_voter(voter: Voter) -> bytes:
    """Return one entry of the voters record.

    Raises:
        ValueError: A directory id that is not 16 bytes.
    """
    if len(voter.key.directory_id) != 16:
        raise ValueError(f"directory id of {len(voter.key.directory_id)} bytes")
    return b"".join(
        (
            struct.pack(">i", voter.key.id),
            voter.key.directory_id,
            write_array(voter.endpoints, _write_endpoint),
            struct.pack(">hh", voter.min_supported_version, voter.max_supported_version),
            encode_tagged_fields(),
            encode_tagged_fields(voter.tagged),
        )
    )


def read_voter(value: bytes, position: int) -> tuple[Voter, int]:
    """Return one entry of the voters record and the position behind it."""
    node_id, position = read_number(value, position, 4)
    directory_id, position = read_bytes(value, position, len(value), 16)
    endpoints, position = read_array(value, position, _read_endpoint)
    lowest, position = read_number(value, position, 2)
    highest, position = read_number(value, position, 2)
    _, position = read_tagged_fields(value, position, len(value))
    tagged, position = read_tagged_fields(value, position, len(value))
    return Voter(ReplicaKey(node_id, directory_id), endpoints, lowest, highest, tagged), position
