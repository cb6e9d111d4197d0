"""Encode and decode the incarnation of a log as a tagged field of the voters record.

See: ADR 65, docs/reference/batches.md#control-records.
"""

from __future__ import annotations

import struct

from quorum.incarnation import FIRST_INCARNATION, LogIncarnation
from quorum.types import ZERO_UUID, OffsetAndEpoch
from quorum.varint import encode_tagged_fields, read_tagged_fields

LOG_INCARNATION_TAG = 20_006
"""Voters record: the incarnation of the log."""
INCARNATION_REPORT_TAG = 20_007
"""Leader change record that begins an incarnation: why it began, as JSON in UTF-8."""
REPORT_DIGEST_BYTES = 32
NUMBER_MAX = (1 << 31) - 1
_FIELDS = struct.Struct(">i16s16sqi32s")


def encode_incarnation(incarnation: LogIncarnation) -> bytes:
    """Return the tagged field; empty for the first incarnation, which no record names.

    Raises:
        ValueError: A value outside its field.
    """
    if incarnation == FIRST_INCARNATION:
        return b""
    problem = _problem(incarnation)
    if problem:
        raise ValueError(problem)
    fields = _FIELDS.pack(
        incarnation.number,
        incarnation.id,
        incarnation.previous_id,
        incarnation.kept.offset,
        incarnation.kept.epoch,
        incarnation.report_digest,
    )
    return fields + encode_tagged_fields()


def decode_incarnation(data: bytes) -> LogIncarnation:
    """Inverse of ``encode_incarnation``; further tagged fields are skipped.

    Raises:
        ValueError: Malformed.
    """
    if not data:
        return FIRST_INCARNATION
    if len(data) <= _FIELDS.size:
        raise ValueError(f"a log incarnation of {len(data)} bytes")
    number, own, previous, offset, epoch, digest = _FIELDS.unpack_from(data)
    read_tagged_fields(data, _FIELDS.size, len(data))
    found = LogIncarnation(number, own, previous, OffsetAndEpoch(offset, epoch), digest)
    problem = _problem(found)
    if problem:
        raise ValueError(problem)
    return found


def _problem(incarnation: LogIncarnation) -> str:
    if not 1 <= incarnation.number <= NUMBER_MAX:
        return f"log incarnation number {incarnation.number}"
    if len(incarnation.id) != 16 or len(incarnation.previous_id) != 16:
        return "a log incarnation id that is not 16 bytes"
    if incarnation.id in (ZERO_UUID, incarnation.previous_id):
        return "a log incarnation without an id of its own"
    if incarnation.kept.offset < 0 or incarnation.kept.epoch < 0:
        return f"a log incarnation that begins at {incarnation.kept}"
    if len(incarnation.report_digest) != REPORT_DIGEST_BYTES:
        return f"a report digest of {len(incarnation.report_digest)} bytes"
    return ""
