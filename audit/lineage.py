"""Which epochs a reader of the log has read, and where its history left the log's.

See: KIP-279 (279.2), requirements 320.3, 320.4 and 320.9.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quorum.types import Epoch, EpochStart

EPOCHS_MAX = 128
"""Most epochs kept with a position. Behind the oldest of them a point of divergence is a bound."""


class Divergence(NamedTuple):
    """Where what was read leaves the log; ``offset`` is the first one that differs.

    If not ``is_exact``, the true one may be lower: too little is known of what was read.
    """

    offset: int
    is_exact: bool


def epochs_below(
    known: Iterable[EpochStart], log: Iterable[EpochStart], end_offset: int
) -> tuple[EpochStart, ...]:
    """The epochs of everything below ``end_offset``, ascending, the newest ``EPOCHS_MAX`` of them.

    ``log`` are those of the log now, which contains what was read before under ``known``: a log
    whose start has moved no longer knows where its oldest epochs began.
    """
    starts: dict[Epoch, int] = {}
    for entry in (*known, *log):
        if entry.start_offset < end_offset:
            starts.setdefault(entry.epoch, entry.start_offset)
    return tuple(EpochStart(*entry) for entry in sorted(starts.items())[-EPOCHS_MAX:])


def find_divergence(
    read: Sequence[EpochStart], read_end: int, log: Sequence[EpochStart], log_end: int
) -> Divergence:
    """Where two histories part, given the epochs of both and that they do.

    Up to the lower end of the newest epoch that is in both they are equal, as an epoch has one
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
    """Where each epoch ends, exclusive."""
    starts = [entry.start_offset for entry in epochs[1:]]
    return {entry.epoch: min(end, end_offset) for entry, end in zip(epochs, [*starts, end_offset])}
