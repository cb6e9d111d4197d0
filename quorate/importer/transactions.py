"""Metadata transactions of a source: which of its records take effect.

A transaction may span many batches, and whether it takes effect is known at its last record. A copy
has no markers: what was committed is copied, what was aborted or never ended is not.

See: KIP-868; docs/reference/record-types.md (Metadata records).
"""

from __future__ import annotations

from bisect import bisect_right

from statemachine.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
)

_MARKERS = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)


class TransactionScan:
    """Collects the transactions of one log; ask it after the whole log was passed to it.

    It does not check the order of the markers; replay does.
    """

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._ends: list[int] = []
        self._open: int | None = None

    def take(self, offset: int, record: MetadataRecord) -> None:
        """The next record of the log."""
        if isinstance(record, BeginTransactionRecord):
            self._open = offset
        elif isinstance(record, EndTransactionRecord):
            self._open = None
        elif isinstance(record, AbortTransactionRecord) and self._open is not None:
            self._drop(self._open, offset + 1)
            self._open = None

    def finish(self, end_offset: int) -> None:
        """The log ends at ``end_offset``: what is open there has no effect."""
        if self._open is not None:
            self._drop(self._open, end_offset)

    def takes_effect(self, offset: int, record: MetadataRecord) -> bool:
        """Whether that record is to be copied."""
        if isinstance(record, _MARKERS):
            return False
        found = bisect_right(self._begins, offset) - 1
        return found < 0 or offset >= self._ends[found]

    def dropped(self) -> list[tuple[int, int]]:
        """Offset ranges without effect, half-open, ascending."""
        return list(zip(self._begins, self._ends))

    def _drop(self, begin: int, end: int) -> None:
        self._begins.append(begin)
        self._ends.append(end)
