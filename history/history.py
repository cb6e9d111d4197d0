"""A whole history: operations, what watchers were handed, and the log itself."""

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
    """Of its records; equal digests mean equal records."""
    marks: tuple[str, ...] = ()
    """Of the writes that are in it."""


@dataclass(frozen=True, slots=True)
class Handed:
    """Something that a watcher was handed, in the order of ``History.handed``."""

    watcher: str
    what: str
    """``state`` (whole, as of ``end``), ``batch`` ([base, end)), ``progress`` (up to ``end``),
    ``resume`` (the watcher asks for what follows ``end``), ``refused`` (what follows is gone, only
    [base, end) can be read), or ``diverged`` (its history is called another from ``end`` on).
    """
    end: int
    base: int = -1
    epoch: int = -1
    digest: str = ""


@dataclass(frozen=True, slots=True)
class LogGap:
    """Offsets [base, end) that nobody could read, because the log had been trimmed by then."""

    base: int
    end: int


@dataclass(slots=True)
class History:
    """What happened in one run. ``log`` may be empty, or begin above 0 where it was trimmed.

    What was trimmed in the middle of reading is in ``gaps``: of those offsets the log says nothing.
    """

    unit: str = "us"
    """Of all times, for people."""
    notes: dict[str, Value] = field(default_factory=dict)
    """How it came about: a seed, a commit; never looked at by a check."""
    operations: list[Operation] = field(default_factory=list)
    log: list[LogBatch] = field(default_factory=list)
    handed: list[Handed] = field(default_factory=list)
    gaps: list[LogGap] = field(default_factory=list)

    def is_unread(self, offset: int) -> bool:
        """Whether nobody read the batch at that offset, so that nothing can be said of it."""
        if self.log and offset < self.log[0].base:
            return True
        return any(gap.base <= offset < gap.end for gap in self.gaps)

    def by_key(self) -> dict[str, list[Operation]]:
        """Operations per key, in the order of their calls."""
        found: dict[str, list[Operation]] = defaultdict(list)
        for operation in sorted(self.operations, key=lambda each: (each.call, each.number)):
            found[operation.key].append(operation)
        return dict(found)
