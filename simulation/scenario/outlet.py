"""What a command prints: lines gathered while it runs, each of one kind.

Within one step of a node its decisions come first, then what it sent, then answers to its
clients, because that is the order in which a reader asks.
"""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    """What a line is about; the order within one step of a node."""

    DISK = 0
    EVENT = 1
    MESSAGE = 2
    ANSWER = 3
    RESULT = 4


_LEVELS: dict[str, frozenset[Kind]] = {
    "off": frozenset(Kind),
    "on": frozenset({Kind.RESULT}),
    "messages": frozenset({Kind.EVENT, Kind.ANSWER, Kind.RESULT}),
    "disk": frozenset({Kind.EVENT, Kind.MESSAGE, Kind.ANSWER, Kind.RESULT}),
}
LEVELS = tuple(_LEVELS)


class Outlet:
    """Collects the output of one command at a time."""

    def __init__(self) -> None:
        self._kinds = _LEVELS["off"]
        self._lines: list[str] = []
        self._step: list[tuple[Kind, str]] = []

    def silence(self, level: str) -> None:
        """Print everything (``off``), results only (``on``), or no messages or disk lines."""
        self._kinds = _LEVELS[level]

    def announce(self, kind: Kind, line: str) -> None:
        """Add a line, if its kind is wanted."""
        if kind in self._kinds:
            self._step.append((kind, line))

    def print_lines(self, lines: list[str]) -> None:
        """Add lines that no setting silences."""
        self._lines += lines

    def end_step(self) -> None:
        """A node's step is over: its lines are put in order."""
        self._lines += [line for _, line in sorted(self._step, key=lambda entry: entry[0])]
        self._step.clear()

    def take(self) -> list[str]:
        """Everything said since the last call; ``ok`` if that is nothing."""
        self.end_step()
        taken, self._lines = self._lines, []
        return taken or ["ok"]
