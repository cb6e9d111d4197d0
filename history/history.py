"""A whole history: client operations, deliveries to watchers, and the log itself."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from history.operation import Operation, Value


@dataclass(frozen=True, slots=True)
class LogBatch:
    """A committed batch: offsets [base, end) of one epoch."""

    base: int
    end: int
    epoch: int
    digest: str
    """Digest of the records; equal digests mean equal records."""
    marks: tuple[str, ...] = ()
    """Marks of the writes in this batch."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event delivered to a watcher, in the order of ``History.deliveries``."""

    watcher: str
    what: str
    """``state`` (complete, as of ``end``), ``batch`` ([base, end)), ``progress`` (up to ``end``),
    ``resume`` (the watcher resumes at ``end``), ``refused`` (the records at ``end`` are gone, only
    [base, end) is readable), or ``diverged`` (the server reports divergence at ``end``).
    """
    end: int
    base: int = -1
    epoch: int = -1
    digest: str = ""


@dataclass(frozen=True, slots=True)
class LogGap:
    """Offsets [base, end) that could not be read because the log had already been trimmed."""

    base: int
    end: int


@dataclass(slots=True)
class History:
    """Everything that happened in one run. ``log`` may be empty, or begin above 0 after a trim.

    Offsets that were trimmed while the log was being read are in ``gaps``; they are unknown.
    """

    unit: str = "us"
    """Unit of all times, for display only."""
    notes: dict[str, Value] = field(default_factory=dict)
    """Origin of the history, such as seed and commit; ignored by all checks."""
    operations: list[Operation] = field(default_factory=list)
    log: list[LogBatch] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    gaps: list[LogGap] = field(default_factory=list)

    def is_unread(self, offset: int) -> bool:
        """Return whether the batch at that offset was never read, so it cannot be checked."""
        if self.log and offset < self.log[0].base:
            return True
        return any(gap.base <= offset < gap.end for gap in self.gaps)

    def by_key(self) -> dict[str, list[Operation]]:
        """Return the operations per key, in the order of their calls."""
        found: dict[str, list[Operation]] = defaultdict(list)
        for operation in sorted(self.operations, key=lambda each: (each.call, each.number)):
            found[operation.key].append(operation)
        return dict(found)
