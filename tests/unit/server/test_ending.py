"""Why a process ends: a failure counts whenever it comes, and is never outdone by a request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import NoReturn

import pytest

from quorate.cli.exits import Exit
from quorate.server.ending import Ending
from quorum.errors import DiskFullError, ElectionStateError, InvariantViolation, StorageError


def in_loop(scenario: Callable[[Ending], Coroutine[None, None, None]]) -> Ending:
    async def run() -> Ending:
        ending = Ending()
        await asyncio.wait_for(scenario(ending), 60)
        return ending

    return asyncio.run(run())


async def hangs() -> None:
    await asyncio.get_running_loop().create_future()


async def ends() -> None:
    return None


def test_a_request_alone_ends_well() -> None:
    async def scenario(ending: Ending) -> None:
        assert not ending.is_due
        ending.ask()
        assert ending.is_due
        await ending.wait()
        await ending.unless_failed(ends())

    ending = in_loop(scenario)
    assert (ending.failure, ending.status) == (None, Exit.OK)


def of_another_account() -> StorageError:
    """As of a node whose ``quorum-state`` was made by root."""
    refused = StorageError("cannot open: Permission denied")
    refused.__cause__ = PermissionError()
    error = ElectionStateError(f"unusable election state: {refused}")
    error.__cause__ = refused
    return error


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (StorageError("cannot sync"), Exit.DAMAGED),
        (of_another_account(), Exit.USAGE),
        (DiskFullError("no space"), Exit.DAMAGED),
        (InvariantViolation("two leaders"), Exit.FAILED),
        (SystemExit(3), Exit.FAILED),
    ],
)
def test_a_failure_after_the_request_decides_and_is_logged(
    failure: BaseException, status: Exit, caplog: pytest.LogCaptureFixture
) -> None:
    """Only the first: what comes later follows from it."""

    async def scenario(ending: Ending) -> None:
        ending.ask()
        ending.fail(failure)
        ending.fail(OSError("follows from the first"))

    ending = in_loop(scenario)
    assert (ending.failure, ending.status) == (failure, status)
    (record,) = caplog.records
    assert record.getMessage() == f"event=node_failed error={failure}"


def test_a_failure_alone_is_a_reason_to_end() -> None:
    async def scenario(ending: Ending) -> None:
        asyncio.get_running_loop().call_soon(ending.fail, StorageError("cannot sync"))
        await ending.wait()

    assert in_loop(scenario).status is Exit.DAMAGED


def test_work_is_left_at_once_when_the_process_fails() -> None:
    """Goal: a broken core is not driven for the time that a leadership transfer may take."""
    left: list[bool] = []

    async def work() -> None:
        try:
            await hangs()
        except asyncio.CancelledError:
            left.append(True)
            raise

    async def scenario(ending: Ending) -> None:
        asyncio.get_running_loop().call_later(0.01, ending.fail, StorageError("cannot sync"))
        await ending.unless_failed(work())

    assert in_loop(scenario).status is Exit.DAMAGED
    assert left == [True]


def test_the_error_of_the_work_is_a_failure() -> None:
    async def work() -> NoReturn:
        raise InvariantViolation("two leaders")

    async def scenario(ending: Ending) -> None:
        ending.ask()
        await ending.unless_failed(work())

    assert isinstance(in_loop(scenario).failure, InvariantViolation)


def test_a_second_request_changes_nothing() -> None:
    """A second signal ends the process at once; see ``stop_signals``."""

    async def scenario(ending: Ending) -> None:
        ending.ask()
        ending.ask()
        await ending.wait()

    assert in_loop(scenario).status is Exit.OK
