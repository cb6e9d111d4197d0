"""A violation found by a check, with the operations that show it."""

from __future__ import annotations

from dataclasses import dataclass

from history.operation import Operation


@dataclass(frozen=True, slots=True)
class Violation:
    """One violated guarantee. ``operations`` contradict one another."""

    rule: str
    """Short stable name, for programs."""
    key: str
    """The resource or watcher concerned."""
    message: str
    operations: tuple[Operation, ...] = ()

    def __str__(self) -> str:
        return f"{self.rule}: {self.key}: {self.message}"
