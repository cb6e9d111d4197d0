"""A group of clients of one kind that read the log of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from simulation.population import Population


class LogReader(Protocol):
    """A client that reads continuously."""

    offset: int
    """End of what it has read; -1 for nothing yet."""


class LogReaders:
    """Readers that start one after the other.

    Args:
        readers: Each reader with the call that starts it.
        apart_us: Time from one start to the next.
    """

    def __init__(
        self, cluster: Population, readers: Mapping[LogReader, Callable[[], None]], apart_us: int
    ) -> None:
        self._cluster = cluster
        self._readers = readers
        self._apart_us = apart_us

    def start(self) -> None:
        """Start every reader."""
        for number, begin in enumerate(self._readers.values()):
            self._cluster.scheduler.after(self._apart_us * (number + 1), begin)

    def offsets(self) -> list[int]:
        """Return the end of what each reader has read; -1 for nothing yet."""
        return [each.offset for each in self._readers]

    def have(self, end_offset: int) -> bool:
        """Return whether every reader has read everything below ``end_offset``."""
        return all(each.offset == end_offset for each in self._readers)
