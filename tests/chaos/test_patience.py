"""A hanging call is distinguished from a paused machine."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.chaos.patience import STEP_SECONDS, within


def test_what_never_ends_is_given_up() -> None:
    async def scenario() -> None:
        with pytest.raises(TimeoutError):
            await within(2 * STEP_SECONDS, asyncio.Event().wait())

    asyncio.run(scenario())


def test_a_process_pause_does_not_count_as_a_failure() -> None:
    """The loop is blocked for longer than the limit; the call ends by itself right after."""

    async def scenario() -> str:
        async def call() -> str:
            time.sleep(4 * STEP_SECONDS)
            await asyncio.sleep(0)
            return "done"

        return await within(3 * STEP_SECONDS, call())

    assert asyncio.run(scenario()) == "done"


def test_what_it_raises_is_passed_on() -> None:
    async def call() -> None:
        raise KeyError("x")

    async def scenario() -> None:
        with pytest.raises(KeyError):
            await within(1.0, call())

    asyncio.run(scenario())
