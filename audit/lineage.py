"""The epochs that a log reader has read, and the offset at which they diverge from the log's.

See: KIP-279 (279.2), requirements 320.3, 320.4 and 320.9; ``quorum.log_position``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quorum.log_position import Divergence, EpochEntry, Lineage
from quorum.types import Epoch, EpochStart

EPOCHS_MAX = 128
"""Most epochs kept with a stream's position. Spark stores it for every micro-batch."""


def epochs_below(
    known: Iterable[EpochEntry], log: Iterable[EpochStart], end_offset: int
) -> tuple[EpochEntry, ...]:
    """Return the newest ``EPOCHS_MAX`` epochs of the records below ``end_offset``, ascending.

    ``log`` are the log's current epochs. ``known`` are the epochs kept with the previous position:
    a log whose start has moved no longer knows where its oldest epochs began.
    """
    starts: dict[Epoch, EpochEntry] = {}
    for entry in (*known, *(EpochEntry(each.epoch, each.start_offset) for each in log)):
        if entry.start_offset < end_offset:
            starts.setdefault(entry.epoch, entry)
    return tuple(sorted(starts.values())[-EPOCHS_MAX:])


def find_divergence(
    read: Sequence[EpochEntry], read_end: int, log: Sequence[EpochStart], log_end: int
) -> Divergence:
    """Return where two diverged histories part, given the epochs of both."""
    starts = [entry.start_offset for entry in log[1:]]
    ends = {entry.epoch: min(end, log_end) for entry, end in zip(log, [*starts, log_end])}

    def answer(epoch: Epoch) -> tuple[Epoch, int]:
        found = max((each for each in ends if each <= epoch), default=None)
        return (-1, log[0].start_offset if log else 0) if found is None else (found, ends[found])

    lineage = Lineage(read)
    walk = lineage.walk(read_end, *answer(lineage.epochs[-1].epoch))
    try:
        epoch = next(walk)
        while True:
            epoch = walk.send(answer(epoch))
    except StopIteration as located:
        found: Divergence = located.value
        return found
