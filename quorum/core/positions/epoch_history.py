"""The epoch history of a log: where each epoch begins and ends.

It is kept beside the log's two ends, so that divergence can be found without reading records.
``base`` is the log start and the epoch of the record before it. It represents everything that was
trimmed, so a log that begins at a snapshot knows one epoch more than it has records of.

Invariants:
    1. Epochs and start offsets both rise strictly; every start lies in [base, log end).
    2. The first entry starts at the base offset, unless the log is empty (then there is none).

See: KIP-101, KIP-279 (279.1, 279.5), KIP-595 (diverging epoch).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from quorum.errors import invariant
from quorum.types import Epoch, EpochStart, OffsetAndEpoch


class EpochHistory:
    """Epoch starts of one log. Owned by its ``LogView``, which passes the log end."""

    __slots__ = ("_base", "_epochs", "_starts")

    def __init__(self, base: OffsetAndEpoch, entries: Iterable[EpochStart], log_end: int) -> None:
        self._base = base
        self._epochs: list[Epoch] = []
        self._starts: list[int] = []
        for entry in entries:
            self.assign(entry.epoch, entry.start_offset)
        self.truncate_to(log_end)
        self._cut_below(base, log_end)

    def assign(self, epoch: Epoch, start_offset: int) -> None:
        """Record that ``epoch`` begins at ``start_offset``; no effect if it is the latest.

        Raises:
            InvariantViolation: Epoch or offset does not rise.
        """
        if self._epochs and epoch == self._epochs[-1]:
            return
        if self._epochs:
            invariant(
                epoch > self._epochs[-1] and start_offset > self._starts[-1],
                "epoch history must rise",
                epoch=epoch,
                start_offset=start_offset,
                last_epoch=self._epochs[-1],
                last_start=self._starts[-1],
            )
        self._epochs.append(epoch)
        self._starts.append(start_offset)

    def truncate_to(self, log_end: int) -> None:
        """Drop the epochs that begin at or above ``log_end``."""
        keep = bisect_left(self._starts, log_end)
        del self._epochs[keep:]
        del self._starts[keep:]

    def advance_start(self, base: OffsetAndEpoch, log_end: int) -> None:
        """Drop epochs wholly below the new log start; keep the epoch that covers it."""
        self._cut_below(base, log_end)
        self._base = base

    def _cut_below(self, base: OffsetAndEpoch, log_end: int) -> None:
        covering = bisect_right(self._starts, base.offset) - 1
        if covering < 0:
            return
        del self._epochs[:covering]
        del self._starts[:covering]
        if base.offset >= log_end:
            self._epochs.clear()
            self._starts.clear()
        else:
            self._starts[0] = base.offset

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        """The history, ascending."""
        return tuple(map(EpochStart, self._epochs, self._starts))

    @property
    def is_empty(self) -> bool:
        """Whether the log has no record, so that no epoch begins in it."""
        return not self._epochs

    @property
    def latest(self) -> Epoch:
        """Epoch of the last record, or of the record before the log start if there is none."""
        return self._epochs[-1] if self._epochs else self._base.epoch

    @property
    def latest_start(self) -> int:
        """Offset at which the latest epoch begins in this log."""
        return self._starts[-1] if self._starts else self._base.offset

    def epoch_before(self, offset: int) -> Epoch:
        """Return the epoch of the record just below ``offset``, in [log start, log end]."""
        index = bisect_right(self._starts, offset - 1) - 1
        return self._epochs[index] if index >= 0 else self._base.epoch

    def end_offset_for_epoch(self, requested: Epoch, log_end: int) -> OffsetAndEpoch | None:
        """Return the largest known epoch not above ``requested``, and that epoch's end offset.

        The record before a trimmed log's start counts as known, so the id of the oldest snapshot
        is a possible answer. None if no epoch is low enough.

        See: 279.1.
        """
        index = bisect_right(self._epochs, requested) - 1
        if index >= 0:
            above = index + 1
            end = self._starts[above] if above < len(self._starts) else log_end
            return OffsetAndEpoch(end, self._epochs[index])
        if 0 < self._base.epoch <= requested:
            return OffsetAndEpoch(self._base.offset, self._base.epoch)
        return None
