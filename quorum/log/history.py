"""The epoch history as plain values: the start offset of each epoch, cut at both ends.

The history describes exactly the records in [log start, log end): its first entry starts
at the log start, and a log without records has no entries.

See: KIP-101, KIP-279, requirement 279.5.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorum.types import EpochStart, OffsetAndEpoch


def cut_end(epochs: Sequence[EpochStart], end_offset: int) -> tuple[EpochStart, ...]:
    """Return the history of the records below ``end_offset``."""
    return tuple(entry for entry in epochs if entry.start_offset < end_offset)


def clip_start(
    epochs: Sequence[EpochStart], start: OffsetAndEpoch, *, end_offset: int
) -> tuple[EpochStart, ...]:
    """Return the history of the records in [start.offset, end_offset).

    The first entry starts at ``start.offset``. Its epoch is that of the last entry that starts at
    or below it, or else that of the record before the start.
    """
    if start.offset >= end_offset:
        return ()
    before = [entry.epoch for entry in epochs if entry.start_offset <= start.offset]
    first = EpochStart(before[-1] if before else start.epoch, start.offset)
    return (first, *(entry for entry in epochs if entry.start_offset > start.offset))
