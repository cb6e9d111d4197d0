"""The epochs that a reader has read, and the offset from which its history differs from the log.

One lookup is not enough: the epoch that the leader answers may reach further in its log than it
did in what the reader has. So the reader goes back through its own epochs, one question for each
epoch that the leader does not know, until both name the same one. Up to the end that they share of
it, both histories are equal, as an epoch has one leader and a leader only appends.

See: KIP-279 (279.2), KIP-320, requirements 320.3 and 320.4.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

EPOCHS_MAX = 1024
"""Most epochs remembered. Behind the oldest of them the point of divergence is a bound."""

AskEpochEnd = Callable[[int], Awaitable[tuple[int, int]]]
"""Ask the leader for its largest epoch at or below one and where that ends; -1 and the log start if
all that the log has is newer.
"""


class Divergence(NamedTuple):
    """The point where the records read begin to differ from the log.

    ``offset`` is the first one that differs and ``epoch`` that of the record before it, which
    both have; -1 where that is not known. The true offset may be lower if not ``is_exact``: the
    reader does not know its own epochs far enough back, or the log begins above it.
    """

    offset: int
    epoch: int
    is_exact: bool

    def __str__(self) -> str:
        """The place, as the end of a sentence."""
        bound = "from offset" if self.is_exact else "at the latest from offset"
        behind = f" (behind epoch {self.epoch})" if self.epoch >= 0 else ""
        return f"{bound} {self.offset} on{behind}"


class Lineage:
    """Where each epoch that was read began. Epochs and offsets rise strictly."""

    def __init__(self, epochs: Iterable[tuple[int, int]] = ()) -> None:
        """Begin with pairs of epoch and start offset."""
        self._epochs: list[int] = []
        self._starts: list[int] = []
        for epoch, start_offset in epochs:
            self.add(epoch, start_offset)

    @property
    def epochs(self) -> tuple[tuple[int, int], ...]:
        """Pairs of epoch and start offset, ascending."""
        return tuple(zip(self._epochs, self._starts))

    def add(self, epoch: int, start_offset: int) -> None:
        """Remember that ``epoch`` begins at ``start_offset``, if it is newer than all others."""
        if self._epochs and (epoch <= self._epochs[-1] or start_offset <= self._starts[-1]):
            return
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        del self._epochs[:-EPOCHS_MAX], self._starts[:-EPOCHS_MAX]

    def truncate_to(self, end_offset: int) -> None:
        """Forget the epochs that begin at or above ``end_offset``."""
        keep = bisect_left(self._starts, end_offset)
        del self._epochs[keep:], self._starts[keep:]

    def end_of(self, epoch: int, end_offset: int) -> tuple[int, int] | None:
        """The largest epoch at or below ``epoch`` and where it ends, in what was read below
        ``end_offset``; None if no epoch is low enough.
        """
        above = bisect_right(self._epochs, epoch)
        if above == 0:
            return None
        end = self._starts[above] if above < len(self._starts) else end_offset
        return self._epochs[above - 1], min(end, end_offset)

    async def find_divergence(
        self, position: int, epoch: int, end_offset: int, ask: AskEpochEnd
    ) -> Divergence:
        """Find where the records read below ``position`` begin to differ from the log.

        ``epoch`` and ``end_offset`` are the leader's answer for the newest epoch read. Every
        further question goes through ``ask``, at most one for each epoch that was read.
        """
        while True:
            if epoch < 0:
                return Divergence(min(end_offset, position), -1, is_exact=end_offset == 0)
            own = self.end_of(epoch, position)
            if own is None:
                # The log has none of the remembered epochs: they differ from the first one on.
                first = min(self._starts[0] if self._starts else position, position)
                is_whole = end_offset <= first
                offset = min(end_offset, first)
                return Divergence(offset, epoch if is_whole else -1, is_exact=offset == 0)
            own_epoch, own_end = own
            if own_epoch == epoch:
                return Divergence(min(end_offset, own_end), epoch, is_exact=True)
            epoch, end_offset = await ask(own_epoch)
            position = own_end
