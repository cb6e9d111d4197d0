"""Decode a data batch into records for replay.

A batch is decoded whole before replay starts, so that an unknown record stops replay in front of
its batch, with the state untouched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from quorum.batch import BatchHeader, values_and_headers
from quorum.errors import RecordCodecError, UnknownRecordError
from statemachine.codec import DecodeRecord, batch_headers, decode_record
from statemachine.derivation import check_derivable
from statemachine.partition_runs import PARTITION_KEY, RunReader, Step
from statemachine.records import OWN_API_KEY_MIN, BeginTransactionRecord, MetadataRecord


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
    steps, headers = decode_steps(data, header, decode=decode)
    return DecodedBatch(cast("list[MetadataRecord]", steps), headers)


def decode_steps(
    data: bytes,
    header: BatchHeader,
    *,
    decode: DecodeRecord = decode_record,
    runs: RunReader | None = None,
    path: object = None,
    base_position: int = 0,
) -> tuple[list[Step], Sequence[tuple[str, bytes | None]]]:
    """Decode a data batch as ``decode_batch`` does; return the steps of its replay, and headers.

    With ``runs``, partitions that follow one another are one step. ``path`` and ``base_position``
    (file position of ``data[0]``) are for errors only.

    Raises:
        UnknownRecordError, RecordCodecError, CorruptBatchError: As ``decode_batch``.
    """
    headers: Sequence[tuple[str, bytes | None]]
    found, headers = values_and_headers(data, header, path=path, base_position=base_position)
    values = [value or b"" for value in found]
    steps: list[Step] = []
    at = 0
    try:
        if values and not headers:
            headers = batch_headers((), values[0])
        while at < len(values):
            value = values[at]
            if runs is not None and value[1:2] == PARTITION_KEY:
                run = runs.read(values, at)
                if run is not None:
                    steps.append(run)
                    at += len(run.states)
                    continue
            record = decode(value)
            if record.API_KEY >= OWN_API_KEY_MIN:
                check_derivable(record)
            steps.append(record)
            at += 1
    except UnknownRecordError as unknown:
        raise UnknownRecordError(
            f"offset {header.base_offset + at}: {unknown}",
            api_key=unknown.api_key,
            version=unknown.version,
        ) from unknown
    except RecordCodecError as error:
        raise RecordCodecError(f"offset {header.base_offset + at}: {error}") from error
    return steps, headers


def opens_transaction(records: Sequence[Step]) -> bool:
    """Whether a metadata transaction begins in these records."""
    return BeginTransactionRecord in map(type, records)
