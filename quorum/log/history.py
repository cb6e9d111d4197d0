"""The epoch history as plain values: which epoch starts where, cut at both ends.

The history always says what the records in [log start, log end) say: its first entry starts
at the log start, and a log without records has no entries.

See: KIP-101, KIP-279, requirement 279.5.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorum.types import EpochStart


def cut_end(epochs: Sequence[EpochStart], end_offset: int) -> tuple[EpochStart, ...]:
    """The history of the records below ``end_offset``."""
    return tuple(entry for entry in epochs if entry.start_offset < end_offset)


def clip_start(
    epochs: Sequence[EpochStart], start_offset: int, *, end_offset: int
) -> tuple[EpochStart, ...]:
    """The history of the records in [start_offset, end_offset).

    The epoch in force at ``start_offset`` begins there now.
    """
    if start_offset >= end_offset:
        return ()
    kept = [entry for entry in epochs if entry.start_offset > start_offset]
    before = [entry for entry in epochs if entry.start_offset <= start_offset]
    first = [EpochStart(before[-1].epoch, start_offset)] if before else []
    return tuple(first + kept)
