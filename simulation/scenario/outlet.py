"""Collect the output lines of one command.

Within one step of a node its decisions come first, then the messages it sent, then its answers to
clients: a reader first wants to know why the node acted.
"""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    """The kind of a line. The order of members is the order of lines within one step."""

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
        """Add a line unless its kind is silenced."""
        if kind in self._kinds:
            self._step.append((kind, line))

    def print_lines(self, lines: list[str]) -> None:
        """Add lines regardless of ``silence``."""
        self._lines += lines

    def end_step(self) -> None:
        """End a node's step: sort its lines by kind."""
        self._lines += [line for _, line in sorted(self._step, key=lambda entry: entry[0])]
        self._step.clear()

    def take(self) -> list[str]:
        """Return the lines since the last call; ``ok`` if there are none."""
        self.end_step()
        taken, self._lines = self._lines, []
        return taken or ["ok"]
