"""A batch of a client's watch, as replay takes it: its header, its records, their headers."""

from __future__ import annotations

from typing import NamedTuple

from quorate.client.results.metadata import ChangeBatch
from statemachine.codec import decode_record
from statemachine.open_image import BatchPosition
from statemachine.records_schema import MetadataRecord


class _Header(NamedTuple):
    """Implements ``BatchPosition``."""

    base_offset: int
    end_offset: int
    epoch: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int


def header_of(batch: ChangeBatch) -> BatchPosition:
    """Return the fields of the batch's header that replay needs."""
    return _Header(
        batch.base_offset,
        batch.end_offset,
        batch.epoch,
        batch.timestamp_ms,
        batch.producer_id,
        batch.producer_epoch,
        batch.sequence,
    )


def records_of(batch: ChangeBatch) -> list[MetadataRecord]:
    """Return the batch's records, decoded.

    Raises:
        RecordCodecError, UnknownRecordError: A record is newer than this release.
    """
    return [decode_record(value) for value in batch.records]


def record_headers_of(batch: ChangeBatch) -> list[tuple[str, bytes | None]]:
    """Return the headers of the batch's first record: who asked for it, and why."""
    return [(each.name, each.value) for each in batch.headers]
