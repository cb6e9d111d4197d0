"""The event loop to run on: uvloop where it is installed (extra ``fast``), else asyncio's.

uvloop makes stream turns cheaper (`bench/stream_turns.py`); nothing else depends on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """For ``asyncio.Runner(loop_factory=...)``."""
    if find_spec("uvloop") is None:
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    return factory
