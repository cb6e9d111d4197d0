"""Encode and decode who asked for a change of the quorum, and why, as a tagged field.

The voters record and the leader change record have it. Kafka's readers skip the field; they refuse
records with headers, which therefore are no place for it.

See: ADR 76, docs/reference/batches.md#control-records.
"""

from __future__ import annotations

from typing import TypeAlias

from quorum.control_records import LeaderChange, Origin, Voters
from quorum.varint import (
    encode_compact_string,
    encode_tagged_fields,
    read_compact_string,
    read_tagged_fields,
)

ORIGIN_TAG = 20_008
"""Voters record and leader change record: who asked for the change, and why."""

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]


def encode_origin(origin: Origin | None) -> bytes:
    """Return the tagged field; empty for an unknown origin."""
    if origin is None:
        return b""
    return (
        encode_compact_string(origin.principal)
        + encode_compact_string(origin.reason)
        + encode_tagged_fields()
    )


def decode_origin(data: bytes) -> Origin | None:
    """Inverse of ``encode_origin``; further tagged fields are skipped.

    Raises:
        ValueError: Malformed.
    """
    if not data:
        return None
    principal, position = read_compact_string(data, 0, len(data))
    reason, position = read_compact_string(data, position, len(data))
    read_tagged_fields(data, position, len(data))
    return Origin(principal, reason)


def origin_headers(control: object) -> Headers:
    """Return a control record's origin under the names that record headers have in data batches.

    Text that the record lacks is left out.
    """
    if not isinstance(control, LeaderChange | Voters) or control.origin is None:
        return ()
    found = (("principal", control.origin.principal), ("reason", control.origin.reason))
    return tuple((name, text.encode()) for name, text in found if text)
