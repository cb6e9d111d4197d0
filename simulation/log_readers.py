"""All clients of one kind that read the log of a cluster, whatever they read it by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from simulation.population import Population


class LogReader(Protocol):
    """A client that reads on and on."""

    offset: int
    """It has read everything below; -1 for nothing yet."""


class LogReaders:
    """Readers that begin one after the other.

    Args:
        readers: each with what makes it begin.
        apart_us: the time from one beginning to the next.
    """

    def __init__(
        self, cluster: Population, readers: Mapping[LogReader, Callable[[], None]], apart_us: int
    ) -> None:
        self._cluster = cluster
        self._readers = readers
        self._apart_us = apart_us

    def start(self) -> None:
        """Let every reader ask somebody."""
        for number, begin in enumerate(self._readers.values()):
            self._cluster.scheduler.after(self._apart_us * (number + 1), begin)

    def offsets(self) -> list[int]:
        """What each of them has read everything below of; -1 for nothing yet."""
        return [each.offset for each in self._readers]

    def have(self, end_offset: int) -> bool:
        """Whether everybody has read everything below ``end_offset``."""
        return all(each.offset == end_offset for each in self._readers)
