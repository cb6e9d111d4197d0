"""Waiting for something that a cluster does in its own time, with a limit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from quorate.demo.local_cluster import ClusterError

Found = TypeVar("Found")
SECONDS_MAX: Final = 120.0
POLL_SECONDS: Final = 0.05


async def until(what: str, find: Callable[[], Awaitable[Found | None]]) -> Found:
    """Return what ``find`` finds, as soon as that is not None.

    Raises:
        ClusterError: It did not within ``SECONDS_MAX``.
    """
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        found = await find()
        if found is not None:
            return found
        if time.monotonic() > deadline:
            raise ClusterError(f"{what}: not within {SECONDS_MAX:g} s")
        await asyncio.sleep(POLL_SECONDS)
