"""Timeouts that count turns of the event loop instead of clock time.

When the machine pauses for seconds, the measuring process pauses too. By the clock every call would
have exceeded its deadline, although nothing could have ended it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine
from typing import Any, TypeVar

Answer = TypeVar("Answer")

STEP_SECONDS = 0.25
"""A process pause of the loop, however long, costs one such step."""


async def within(seconds: float, work: Coroutine[Any, Any, Answer]) -> Answer:
    """What ``work`` returns or raises.

    Raises:
        TimeoutError: It was still at it after ``seconds`` in which the loop ran; it is cancelled.
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
