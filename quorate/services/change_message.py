"""Committed batches as one message to watchers. A pure function of their bytes."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.services.log_redaction import redacted_batches
from quorate.services.typed_records import add_encoded
from quorum.batch import BatchHeader, iterate_records, scan_batches
from quorum.control import decode_control
from quorum.control_origin import origin_headers
from quorum.v1 import metadata_pb2
from statemachine.codec import batch_headers

CHANGE_BYTES_MAX = 256 << 10
"""Maximum record bytes converted into one message; the first batch is always included."""


@dataclass(frozen=True, slots=True)
class ChangeMessage:
    """One serialized ``WatchResponse`` with the changes [``base_offset``, ``end_offset``).

    Both are -1 if the log has no batch at the requested offset.
    """

    data: bytes
    base_offset: int
    end_offset: int
    epoch: int


def message_of(
    data: bytes, log_digest: bytes = b"", *, is_typed: bool = False, with_secrets: bool = False
) -> ChangeMessage:
    """Return a message with whole, contiguous batches, as the log contains them.

    ``log_digest`` is that of the log behind them; empty if not known. ``is_typed``: with messages
    of record types. ``with_secrets``: as they are in the log.

    Raises:
        CorruptBatchError: The bytes do not match their headers.
    """
    if not with_secrets:
        data, _ = redacted_batches(data)
    response = metadata_pb2.WatchResponse()
    headers = scan_batches(data)
    for header in headers:
        response.changes.batches.append(change_batch(data, header, is_typed=is_typed))
    response.changes.log_digest = log_digest
    if not headers:
        return ChangeMessage(b"", -1, -1, -1)
    last = headers[-1]
    return ChangeMessage(
        response.SerializeToString(), headers[0].base_offset, last.end_offset, last.epoch
    )


def change_batch(
    data: bytes, header: BatchHeader, *, is_typed: bool = False
) -> metadata_pb2.ChangeBatch:
    """Return one batch as watchers see it: positions, principal, reason and record values.

    With ``is_typed``, the records are messages of their types.

    Raises:
        CorruptBatchError: The records do not match the header.
    """
    batch = metadata_pb2.ChangeBatch(
        base_offset=header.base_offset,
        end_offset=header.end_offset,
        epoch=header.epoch,
        timestamp_ms=header.max_timestamp,
        is_control=header.is_control,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        sequence=header.base_sequence,
    )
    records = iterate_records(data, header)
    if header.is_control:
        for record in records:
            for name, value in origin_headers(decode_control(record)):
                batch.headers.add(name=name, value=value or b"")
        return batch
    if is_typed:
        for record in records:
            add_encoded(batch.typed_records.add(), record.value or b"")
    else:
        batch.records.extend(record.value or b"" for record in records)
    for name, value in batch_headers(records[0].headers, records[0].value):
        batch.headers.add(name=name, value=value or b"")
    return batch
