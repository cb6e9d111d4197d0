"""Parts of a run: one that fails is named with its error, and the figures of the others stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Parts:
    """Which parts of a run failed.

    Args:
        announce: Receives a line for each failed part, at once.
    """

    def __init__(self, announce: Callable[[str], None]) -> None:
        self._announce = announce
        self.failed: dict[str, str] = {}
        """The first error of each failed part."""

    @contextmanager
    def part(self, *names: str) -> Iterator[None]:
        """Keep an error of these parts from ending the run."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever fails, the figures so far stay
            for name in names:
                self.failed.setdefault(name, f"{type(error).__name__}: {error}")
                self._announce(f"failed: {name}: {self.failed[name]}")
