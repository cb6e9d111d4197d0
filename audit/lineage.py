"""The epochs that a log reader has read, and the offset at which they diverge from the log's.

See: KIP-279 (279.2), requirements 320.3, 320.4 and 320.9.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quorum.types import Epoch, EpochStart

EPOCHS_MAX = 128
"""Most epochs kept with a position. Below the oldest, a divergence offset is only a bound."""


class Divergence(NamedTuple):
    """The divergence of the records read from the log; ``offset`` is the first that differs.

    If not ``is_exact``, the true offset may be lower, because older epochs were not kept.
    """

    offset: int
    is_exact: bool


def epochs_below(
    known: Iterable[EpochStart], log: Iterable[EpochStart], end_offset: int
) -> tuple[EpochStart, ...]:
    """Return the newest ``EPOCHS_MAX`` epochs of the records below ``end_offset``, ascending.

    ``log`` are the log's current epochs. ``known`` are the epochs kept with the previous position:
    a log whose start has moved no longer knows where its oldest epochs began.
    """
    starts: dict[Epoch, int] = {}
    for entry in (*known, *log):
        if entry.start_offset < end_offset:
            starts.setdefault(entry.epoch, entry.start_offset)
    return tuple(EpochStart(*entry) for entry in sorted(starts.items())[-EPOCHS_MAX:])


def find_divergence(
    read: Sequence[EpochStart], read_end: int, log: Sequence[EpochStart], log_end: int
) -> Divergence:
    """Return where two diverged histories part, given the epochs of both.

    Both are equal up to the lower end of the newest epoch they share, because an epoch has one
    leader and a leader only appends.
    """
    ends = _ends(log, log_end)
    read_ends = _ends(read, read_end)
    shared = max(ends.keys() & read_ends.keys(), default=None)
    if shared is not None:
        return Divergence(min(ends[shared], read_ends[shared]), is_exact=True)
    first = read[0] if read else EpochStart(0, read_end)
    below = [ends[entry.epoch] for entry in log if entry.epoch < first.epoch]
    offset = min([first.start_offset, *below[-1:]])
    return Divergence(offset, is_exact=offset == 0)


def _ends(epochs: Sequence[EpochStart], end_offset: int) -> dict[Epoch, int]:
    """Return the end offset of each epoch, exclusive."""
    starts = [entry.start_offset for entry in epochs[1:]]
    return {entry.epoch: min(end, end_offset) for entry, end in zip(epochs, [*starts, end_offset])}
