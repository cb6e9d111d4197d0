"""What is in a batch, decoded once however many nodes hold it."""

from __future__ import annotations

from functools import lru_cache

from quorate.sim.invariants.mirror import Batch
from quorum.batch import iterate_records, scan_batches
from quorum.control import decode_control
from statemachine.codec import decode_record
from statemachine.records import MetadataRecord


def metadata_of(batch: Batch) -> tuple[MetadataRecord, ...]:
    """The records of a batch that is no control batch."""
    return () if batch.is_control else _metadata(batch.data)


def controls_of(batch: Batch) -> tuple[object, ...]:
    """The records of a control batch."""
    return _controls(batch.data) if batch.is_control else ()


@lru_cache(maxsize=256)
def _metadata(data: bytes) -> tuple[MetadataRecord, ...]:
    return tuple(
        decode_record(record.value or b"")
        for header in scan_batches(data, verify_crc=False)
        for record in iterate_records(data, header)
    )


@lru_cache(maxsize=256)
def _controls(data: bytes) -> tuple[object, ...]:
    return tuple(
        decode_control(record)
        for header in scan_batches(data, verify_crc=False)
        for record in iterate_records(data, header)
    )
