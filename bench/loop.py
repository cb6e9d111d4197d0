"""The event loop of the benches: uvloop if installed (extra ``fast``), else asyncio's.

uvloop makes stream turns cheaper (`bench/stream_turns.py`); it changes nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return the argument for ``asyncio.Runner(loop_factory=...)``."""
    if find_spec("uvloop") is None:
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    return factory
