"""A long-lived task is started again after a failure; a broken invariant is reported instead."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from quorum import supervisor as module
from quorum.errors import InvariantViolation
from quorum.supervisor import Supervisor


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RESTART_PAUSE_S", 0.001)


def test_work_that_fails_is_done_again_until_it_returns() -> None:
    async def scenario() -> None:
        supervisor, tries = Supervisor(), [0]

        async def work() -> None:
            tries[0] += 1
            if tries[0] < 4:
                raise OSError(24, "Too many open files")

        await supervisor.start("worker", work)
        assert tries == [4]
        assert supervisor.restarts == 3

    asyncio.run(scenario())


def test_pauses_double_up_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def no_pause(seconds: float) -> None:
        pauses.append(seconds)

    async def scenario() -> None:
        monkeypatch.setattr(module, "RESTART_PAUSE_S", 0.5)
        monkeypatch.setattr(module.asyncio, "sleep", no_pause)

        async def work() -> None:
            if len(pauses) < 6:
                raise ValueError

        await Supervisor().start("worker", work)

    asyncio.run(scenario())
    assert pauses == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]


def test_a_broken_invariant_is_not_retried_but_reported() -> None:
    reported: list[Any] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))

        async def work() -> None:
            raise InvariantViolation("wrong")

        supervisor = Supervisor()
        await asyncio.gather(supervisor.start("worker", work), return_exceptions=True)
        assert supervisor.restarts == 0

    asyncio.run(scenario())
    assert [type(error) for error in reported] == [InvariantViolation]


def test_a_cancelled_task_ends_silently_also_in_its_pause() -> None:
    reported: list[Any] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context))
        failed = asyncio.Event()

        async def work() -> None:
            failed.set()
            raise ValueError

        task = Supervisor().start("worker", work)
        await failed.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()

    asyncio.run(scenario())
    assert reported == []
