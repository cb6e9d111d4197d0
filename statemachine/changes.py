"""How much of the latest checkpoint is out of date: the ratio of requirement 630.4.

Counted exactly, by record key (``sections.tracking``). A key counts once when its record is
changed or deleted after it existed. It does not matter whether the record was in the checkpoint
or was added since, nor whether the change is in the log or was derived from an event. Records
that were only added, or that restate the current state, do not count.

A record without state, a NoOpRecord, counts as one record added and deleted. Otherwise the log of
an idle cluster, which holds nothing else, would never be trimmed.

Changes continue while a checkpoint is written. So its counting starts when its image is captured,
and takes over when its file is complete.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from quorum.errors import QuorumUsageError
from statemachine.sections.tracking import RecordKey


class ChangeCounter:
    """Counts changed checkpoint records. Owned by the thread that applies."""

    def __init__(self) -> None:
        self.snapshot_records = 0
        """Data records in the latest checkpoint; 0 also if there is none."""
        self.absorbed = 0
        """Keys that were absorbed, again each time; it never falls."""
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

    def absorb(self, keys: Collection[RecordKey], empty_records: int = 0) -> None:
        """Add the keys that an applied delta touched, and its number of records without state."""
        self.absorbed += len(keys)
        self._changed.update(keys)
        self._empty += empty_records
        if self._since_capture is not None:
            self._since_capture.update(keys)
            self._empty_since_capture += empty_records

    def capture(self) -> None:
        """Start counting for a checkpoint of the image as applied now.

        Raises:
            QuorumUsageError: A capture is under way already.
        """
        if self._since_capture is not None:
            raise QuorumUsageError("a checkpoint capture is under way already")
        self._since_capture = set()
        self._empty_since_capture = 0

    def complete(self, snapshot_records: int) -> None:
        """Finish the capture: the checkpoint is on disk, with that many data records.

        Raises:
            QuorumUsageError: Nothing was captured.
        """
        if self._since_capture is None:
            raise QuorumUsageError("no checkpoint capture is under way")
        self._changed, self._since_capture = self._since_capture, None
        self._empty = self._empty_since_capture
        self.snapshot_records = snapshot_records

    def abandon(self) -> None:
        """Give up the captured checkpoint; counting continues as if it had not begun."""
        self._since_capture = None

    def start_over(self, snapshot_records: int) -> None:
        """Reset after loading a checkpoint: nothing has changed since. Ends a capture."""
        self._changed = set()
        self._empty = 0
        self._since_capture = None
        self.snapshot_records = snapshot_records
