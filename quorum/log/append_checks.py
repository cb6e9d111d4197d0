"""Checks of an append before the log changes: whole batches that join its end, as announced."""

from __future__ import annotations

from collections.abc import Sequence

from quorum.batch import BatchHeader, scan_batches
from quorum.errors import CorruptBatchError, QuorumUsageError
from quorum.log.config import SEGMENT_BYTES_MAX
from quorum.log.segment_tail import SegmentTail, join_problem
from quorum.types import Epoch, EpochStart


def checked_headers(
    tail: SegmentTail,
    data: bytes,
    headers: Sequence[BatchHeader],
    base_offset: int,
    end_offset: int,
) -> Sequence[BatchHeader]:
    """Return the batch headers in ``data``, which is to cover [base_offset, end_offset).

    ``headers`` are those of an earlier ``scan_batches``; without any, ``data`` is scanned.

    Raises:
        QuorumUsageError: Not at the log's end, empty, or a range that contradicts the batches.
        CorruptBatchError: ``data`` is not whole, joining batches.
    """
    if base_offset != tail.end_offset:
        raise QuorumUsageError(
            f"append at offset {base_offset}, but the log ends at {tail.end_offset}"
        )
    if not data or len(data) > SEGMENT_BYTES_MAX:
        raise QuorumUsageError(f"append of {len(data)} bytes; 1 to {SEGMENT_BYTES_MAX} fit")
    headers = headers or scan_batches(data, path="append")
    problem = join_problem(headers[0], tail.end_offset, tail.epoch)
    if problem:
        raise CorruptBatchError(problem, path="append")
    last = headers[-1]
    if last.end_offset != end_offset or last.position + last.size != len(data):
        raise QuorumUsageError(
            f"append of {len(data)} bytes up to offset {end_offset}, but the batches end at "
            f"{last.end_offset} after {last.end_position} bytes"
        )
    return headers


def check_epochs(
    announced: Sequence[EpochStart], found: Sequence[EpochStart], *, known: Epoch
) -> None:
    """Compare the epochs above ``known`` that a caller announced with those in its batches.

    Raises:
        QuorumUsageError: They differ. Nothing announced is nothing to compare.
    """
    if announced and [entry for entry in announced if entry.epoch > known] != list(found):
        raise QuorumUsageError(f"append announces epochs {announced}, its batches hold {found}")
