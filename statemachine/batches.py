"""Decode a data batch into records for replay.

A batch is decoded whole before replay starts, so that an unknown record stops replay in front of
its batch, with the state untouched.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from quorum.batch import CODEC_MASK, BatchHeader, first_headers, iterate_records, record_values
from quorum.errors import RecordCodecError, UnknownRecordError
from statemachine.codec import DecodeRecord, batch_headers, decode_record
from statemachine.derivation import check_derivable
from statemachine.records import OWN_API_KEY_MIN, BeginTransactionRecord, MetadataRecord

_value = attrgetter("value")


class DecodedBatch(NamedTuple):
    """The records of a data batch and the record headers of its first record."""

    records: list[MetadataRecord]
    headers: Sequence[tuple[str, bytes | None]]


def decode_batch(
    data: bytes,
    header: BatchHeader,
    *,
    decode: DecodeRecord = decode_record,
) -> DecodedBatch:
    """Decode a data batch that ``scan_batches`` found in ``data``.

    Only the record headers of the first record are read; replay needs no others. ``decode``
    defines the known record types, by default those of this release.

    Raises:
        UnknownRecordError: A type, version or derivation this release does not know; names
            the offset.
        RecordCodecError: A value that is no metadata record; names the offset.
        CorruptBatchError: The batch's inside is malformed.
    """
    headers: Sequence[tuple[str, bytes | None]] = ()
    if header.producer_id >= 0 or header.attributes & CODEC_MASK:
        found = iterate_records(data, header)
        headers = found[0].headers if found else ()
        values: list[bytes | None] = list(map(_value, found))
    else:
        values = [*record_values(data, header)]
        headers = first_headers(data, header)
    records: list[MetadataRecord] = []
    try:
        if values and not headers:
            headers = batch_headers((), values[0])
        for value in values:
            record = decode(value or b"")
            if record.API_KEY >= OWN_API_KEY_MIN:
                check_derivable(record)
            records.append(record)
    except UnknownRecordError as error:
        raise UnknownRecordError(
            f"offset {header.base_offset + len(records)}: {error}",
            api_key=error.api_key,
            version=error.version,
        ) from error
    except RecordCodecError as error:
        raise RecordCodecError(f"offset {header.base_offset + len(records)}: {error}") from error
    return DecodedBatch(records, headers)


def opens_transaction(records: Sequence[MetadataRecord]) -> bool:
    """Whether a metadata transaction begins in these records."""
    return BeginTransactionRecord in map(type, records)
