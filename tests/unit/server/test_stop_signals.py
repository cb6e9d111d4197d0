"""The first stop signal asks; the second ends the process, whatever its event loop is doing."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from quorate.cli.exits import Exit
from quorate.early_stop import STOP_SIGNALS
from quorate.server.ending import Ending
from quorate.server.stop_signals import StopSignals
from quorum.errors import StorageError


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    """Put the handlers of the test's own process back."""
    before = [(number, signal.getsignal(number)) for number in STOP_SIGNALS]
    yield
    for number, handler in before:
        signal.signal(number, handler)


@pytest.mark.parametrize("failure", [None, StorageError("cannot sync")])
@pytest.mark.parametrize("second", STOP_SIGNALS)
@pytest.mark.parametrize("first", STOP_SIGNALS)
def test_the_second_does_not_wait_for_the_loop(
    first: int, second: int, failure: BaseException | None
) -> None:
    left: list[int] = []

    async def scenario() -> None:
        ending = Ending()
        StopSignals(ending, left.append)
        os.kill(os.getpid(), first)
        await asyncio.wait_for(ending.wait(), 20)
        assert (ending.failure, left) == (None, [])
        if failure is not None:
            ending.fail(failure)
        # No turn of the loop in between.
        os.kill(os.getpid(), second)
        assert left == [Exit.FAILED if failure is None else Exit.DAMAGED]

    asyncio.run(scenario())


def test_two_in_one_turn_of_the_loop() -> None:
    left: list[int] = []

    async def scenario() -> None:
        ending = Ending()
        StopSignals(ending, left.append)
        for number in STOP_SIGNALS:
            os.kill(os.getpid(), number)
        assert not left
        async with asyncio.timeout(20):
            while not left:
                await asyncio.sleep(0)

    asyncio.run(scenario())
    assert left == [Exit.FAILED]
