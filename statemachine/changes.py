"""How much of the latest checkpoint is out of date: the ratio of requirement 630.4.

Counted exactly, by record key (``sections.tracking``): a key counts once as soon as what it
says is changed or deleted after it existed, whether it was in the checkpoint or was added since,
and whether the change stands in the log or was derived from an event. Records that were only
added do not count, nor does one that restates what is so already.

A log record that states nothing, a NoOpRecord, was added and is gone at once, so each counts as
one. Without that the log of an idle cluster, which holds nothing else, would never be trimmed.

A checkpoint is written while changes go on, so counting for the coming one begins when its
image is captured and takes over when its file is complete.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from quorum.errors import QuorumUsageError
from statemachine.sections.tracking import RecordKey


class ChangeCounter:
    """Counts changed checkpoint records. Owned by the thread that applies."""

    def __init__(self) -> None:
        self.snapshot_records = 0
        """Data records in the latest checkpoint; 0 also when there is none."""
        self._changed: set[RecordKey] = set()
        self._empty = 0
        self._since_capture: set[RecordKey] | None = None
        self._empty_since_capture = 0

    @property
    def changed_records(self) -> int:
        """Records changed or deleted since the latest checkpoint, each once."""
        return len(self._changed) + self._empty

    @property
    def ratio(self) -> float:
        """Changed records per record of the latest checkpoint; infinite when it has none."""
        if self.snapshot_records == 0:
            return math.inf
        return self.changed_records / self.snapshot_records

    def absorb(self, keys: Iterable[RecordKey], empty_records: int = 0) -> None:
        """Take in what an applied delta touched, and how many of its records state nothing."""
        self._changed.update(keys)
        self._empty += empty_records
        if self._since_capture is not None:
            self._since_capture.update(keys)
            self._empty_since_capture += empty_records

    def capture(self) -> None:
        """A checkpoint of the image as applied now is being written.

        Raises:
            QuorumUsageError: One is under way already.
        """
        if self._since_capture is not None:
            raise QuorumUsageError("a checkpoint capture is under way already")
        self._since_capture = set()
        self._empty_since_capture = 0

    def complete(self, snapshot_records: int) -> None:
        """The captured checkpoint is on disk and has that many data records.

        Raises:
            QuorumUsageError: Nothing was captured.
        """
        if self._since_capture is None:
            raise QuorumUsageError("no checkpoint capture is under way")
        self._changed, self._since_capture = self._since_capture, None
        self._empty = self._empty_since_capture
        self.snapshot_records = snapshot_records

    def abandon(self) -> None:
        """The captured checkpoint will not be; counting goes on as if it had not begun."""
        self._since_capture = None

    def start_over(self, snapshot_records: int) -> None:
        """A checkpoint was loaded: nothing has changed since. Ends a capture under way."""
        self._changed = set()
        self._empty = 0
        self._since_capture = None
        self.snapshot_records = snapshot_records
