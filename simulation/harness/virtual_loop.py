"""An event loop whose time passes only while nothing else is to be done.

A test on it needs no real time, and one seed always gives one run: no socket, no thread and no
clock of the machine takes part.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")


class StuckError(AssertionError):
    """Nothing is left that could ever happen, and the test waits."""


class _Selector(selectors.BaseSelector):
    """Never waits; moves the clock to the next timer instead."""

    def __init__(self) -> None:
        self.now = 0.0
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise StuckError("no callback and no timer is left")
        self.now += max(0.0, timeout)
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, int(fileobj), events, data)
        self._keys[fileobj] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


class VirtualLoop(asyncio.SelectorEventLoop):
    """``time`` is in seconds, from 0."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


def run_virtually(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine on a loop of its own; nothing of it may wait for another thread."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
