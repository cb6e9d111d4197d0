"""What a check found wrong, with everything a person needs to see it."""

from __future__ import annotations

from dataclasses import dataclass

from history.operation import Operation


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken promise. ``operations`` are those that contradict one another."""

    rule: str
    """Short and stable, for programs."""
    key: str
    """The resource or watcher it is about."""
    message: str
    operations: tuple[Operation, ...] = ()

    def __str__(self) -> str:
        return f"{self.rule}: {self.key}: {self.message}"
