"""Running state at the end of a segment, and its extension by further batches.

This module checks each batch against the one before it, computes the digest chain, and chooses the
batches with an index entry. It is pure. Append path and recovery scan share it, so written and
recovered data obey the same rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from quorum.batch import BatchHeader
from quorum.digest import fold
from quorum.log.index import IndexEntry
from quorum.types import Epoch, EpochStart, OffsetAndEpoch


class SegmentTail(NamedTuple):
    """End of a segment. Replaced as a whole, so that readers see one consistent end."""

    end_offset: int
    epoch: Epoch
    """Epoch of the last record; in an empty segment, of the record before it."""
    position: int
    """Bytes of whole batches in the segment."""
    digest: bytes
    """Log digest at ``end_offset``; empty if unknown."""
    unindexed_bytes: int = 0
    """Log bytes since the last index entry."""

    @property
    def end(self) -> OffsetAndEpoch:
        """The log end."""
        return OffsetAndEpoch(self.end_offset, self.epoch)


class Extension(NamedTuple):
    """Change of a ``SegmentTail`` by a run of batches."""

    tail: SegmentTail
    entries: list[IndexEntry]
    epochs: list[EpochStart]
    """Epochs that start inside the run, ascending."""


def join_problem(header: BatchHeader, end_offset: int, epoch: Epoch) -> str:
    """Return why this batch cannot follow a log end; empty if it can."""
    if header.base_offset != end_offset:
        return f"base offset {header.base_offset} where {end_offset} follows"
    if header.epoch < epoch:
        return f"leader epoch {header.epoch} after epoch {epoch}"
    return ""


def extend(
    tail: SegmentTail,
    data: memoryview,
    headers: Sequence[BatchHeader],
    *,
    index_interval: int,
    boundaries: dict[int, bytes] | None = None,
) -> Extension:
    """Extend ``tail`` by the batches of ``headers``, found in ``data`` and known to join it.

    ``data`` may begin before the first of them. As in Kafka, a batch gets an index entry if more
    than ``index_interval`` bytes of log lie between it and the previous entry.
    If given, ``boundaries`` receives the digest behind every batch, by offset.
    """
    if not headers:
        return Extension(tail, [], [])
    end_offset, epoch, end_position, digest, unindexed = tail
    base = end_position - headers[0].position
    position = size = 0
    entries: list[IndexEntry] = []
    epochs: list[EpochStart] = []
    for header in headers:
        position = header.position
        size = header.size
        end_offset = header.end_offset
        if unindexed > index_interval:
            entries.append(IndexEntry(end_offset - 1, base + position, digest))
            unindexed = 0
        unindexed += size
        if digest:
            digest = fold(digest, data[position : position + size])
            if boundaries is not None:
                boundaries[end_offset] = digest
        if header.epoch != epoch:
            epoch = header.epoch
            epochs.append(EpochStart(epoch, header.base_offset))
    end_position = base + position + size
    return Extension(
        SegmentTail(end_offset, epoch, end_position, digest, unindexed), entries, epochs
    )
