"""Timeouts that count turns of the event loop instead of clock time.

When the machine pauses for seconds, the measuring process pauses as well. Measured by the clock,
every call would then have exceeded its deadline, although no answer could have arrived.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine
from typing import Any, TypeVar

Answer = TypeVar("Answer")

STEP_SECONDS = 0.25
"""Seconds that one turn counts. A process pause of any length counts as one turn."""


async def within(seconds: float, work: Coroutine[Any, Any, Answer]) -> Answer:
    """Return what ``work`` returns, or raise what it raises.

    Raises:
        TimeoutError: ``work`` had not ended after ``seconds`` of turns; it is cancelled.
    """
    task = asyncio.ensure_future(work)
    try:
        for _ in range(math.ceil(seconds / STEP_SECONDS)):
            done, _ = await asyncio.wait({task}, timeout=STEP_SECONDS)
            if done:
                return task.result()
        raise TimeoutError
    finally:
        task.cancel()
