"""The decoded content of batches, cached across nodes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from quorum.batch import Record, iterate_records, scan_batches
from quorum.control import decode_control
from simulation.invariants.mirror import Batch
from statemachine.codec import decode_record
from statemachine.records import MetadataRecord


def metadata_of(batch: Batch) -> tuple[MetadataRecord, ...]:
    """Return the metadata records of a batch; none for a control batch."""
    return () if batch.is_control else _metadata(batch.data)


def controls_of(batch: Batch) -> tuple[object, ...]:
    """Return the records of a control batch; none for any other batch."""
    return _controls(batch.data) if batch.is_control else ()


def records_of(batch: Batch) -> Sequence[Record]:
    """Return the records of a batch of either kind.

    Raises:
        CorruptBatchError: The bytes do not match their header.
    """
    return _records(batch.data)


@lru_cache(maxsize=256)
def _records(data: bytes) -> Sequence[Record]:
    (header,) = scan_batches(data)
    return iterate_records(data, header)


@lru_cache(maxsize=256)
def _metadata(data: bytes) -> tuple[MetadataRecord, ...]:
    return tuple([decode_record(record.value or b"") for record in _records(data)])


@lru_cache(maxsize=256)
def _controls(data: bytes) -> tuple[object, ...]:
    return tuple([decode_control(record) for record in _records(data)])
