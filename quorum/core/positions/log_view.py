"""The core's view of its own log: both ends, the epoch history, and the durable end.

Positions only; the runtime has the bytes. ``end_offset`` moves when an append is issued,
``flushed_end`` when it is reported durable.

Invariants:
    1. ``start.offset <= end_offset`` and ``flushed_end <= end_offset``.
    2. ``end_epoch`` is the epoch of the last record, or of the record before ``start``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from quorum.core.positions.epoch_history import EpochHistory
from quorum.errors import invariant, violation
from quorum.types import Epoch, EpochStart, OffsetAndEpoch, SnapshotId


class LogView:
    """The local log as positions. Owned by ``CoreState``."""

    __slots__ = (
        "_pending",
        "cuts",
        "end_epoch",
        "end_offset",
        "epochs",
        "flushed_end",
        "start",
        "ticket",
    )

    def __init__(
        self, start: OffsetAndEpoch, end: OffsetAndEpoch, epochs: Sequence[EpochStart]
    ) -> None:
        self.start = start
        self.end_offset = end.offset
        self.epochs = EpochHistory(start, epochs, end.offset)
        self.end_epoch: Epoch = self.epochs.latest
        self.flushed_end = end.offset
        self.ticket = 0
        """Ticket of the last change; this state of the log is durable when that ticket is."""
        self.cuts = 0
        """Number of truncations and replacements; a change invalidates earlier verifications."""
        self._pending: deque[tuple[int, int]] = deque()

    @property
    def end(self) -> OffsetAndEpoch:
        """The log end (exclusive) and the epoch of the last record."""
        return OffsetAndEpoch(self.end_offset, self.end_epoch)

    def append(self, end_offset: int, epochs: Sequence[EpochStart], ticket: int) -> None:
        """Grow to ``end_offset``; durable with ``ticket``."""
        if end_offset <= self.end_offset:
            raise violation(
                "an append must grow the log", log_end=self.end_offset, end_offset=end_offset
            )
        if self.epochs.is_empty and (not epochs or epochs[0].start_offset > self.end_offset):
            # The log was trimmed to its very end, and continues in the epoch before it.
            self.epochs.assign(self.end_epoch, self.end_offset)
        if epochs:
            for entry in epochs:
                self.epochs.assign(entry.epoch, entry.start_offset)
            self.end_epoch = self.epochs.latest
        self.end_offset = end_offset
        self.ticket = ticket
        self._pending.append((ticket, end_offset))

    def truncate_to(self, end_offset: int, ticket: int) -> None:
        """Shrink to ``end_offset``. Appends that are not durable yet count only up to it."""
        self.cuts += 1
        self.epochs.truncate_to(end_offset)
        self.end_offset = end_offset
        self.end_epoch = self.epochs.epoch_before(end_offset)
        self.flushed_end = min(self.flushed_end, end_offset)
        self.ticket = ticket
        self._pending = deque((other, min(end, end_offset)) for other, end in self._pending)
        self._pending.append((ticket, end_offset))

    def replace_with(self, snapshot_id: SnapshotId, ticket: int) -> None:
        """Become the empty log that starts and ends at the snapshot's position."""
        self.cuts += 1
        self.start = snapshot_id
        self.end_offset = snapshot_id.offset
        self.end_epoch = snapshot_id.epoch
        self.epochs = EpochHistory(snapshot_id, (), snapshot_id.offset)
        self.flushed_end = min(self.flushed_end, snapshot_id.offset)
        self.ticket = ticket
        self._pending.clear()
        self._pending.append((ticket, snapshot_id.offset))

    def advance_start(self, start: OffsetAndEpoch) -> None:
        """Raise the log start; it never falls (630.5)."""
        invariant(
            self.start.offset <= start.offset <= self.end_offset,
            "the log start must rise and stay inside the log",
            log_start=self.start.offset,
            start=start.offset,
            log_end=self.end_offset,
        )
        self.epochs.advance_start(start, self.end_offset)
        self.start = start

    def mark_durable(self, ticket: int) -> bool:
        """Record that everything up to ``ticket`` is on disk; return whether the end rose."""
        before = self.flushed_end
        pending = self._pending
        while pending and pending[0][0] <= ticket:
            self.flushed_end = pending.popleft()[1]
        return self.flushed_end > before

    def end_offset_for_epoch(self, requested: Epoch) -> OffsetAndEpoch | None:
        """The lookup of 279.1 on this log; see ``EpochHistory``."""
        return self.epochs.end_offset_for_epoch(requested, self.end_offset)
