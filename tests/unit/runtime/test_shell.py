"""The shell after a failure: one report and no further calls, also during the stop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import cast

import pytest

from quorum.errors import InvariantViolation, StorageError
from quorum.runtime.clock import SystemClock
from quorum.runtime.persistence import Persistence
from quorum.runtime.ports import WriteDone, WriteGroup
from quorum.runtime.shell import Shell


class Disk:
    """A fake ``Persistence``: completes groups, or fails."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.written: list[int] = []

    def execute(self, groups: Sequence[WriteGroup]) -> WriteDone:
        if self.failure is not None:
            raise self.failure
        self.written += [group.ticket for group in groups]
        return WriteDone(groups[-1].ticket, (), flushed=True)


class HeldDisk(Disk):
    """Holds its first pass until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.is_held, self.released = threading.Event(), threading.Event()

    def execute(self, groups: Sequence[WriteGroup]) -> WriteDone:
        self.is_held.set()
        assert self.released.wait(60)
        return super().execute(groups)


class Wheel:
    """A fake replica: records its calls, and raises if configured."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.calls = 0

    def tick(self) -> None:
        self._called()

    def write_done(self, done: WriteDone) -> None:
        del done
        self._called()

    def _called(self) -> None:
        self.calls += 1
        if self.failure is not None:
            raise self.failure


def run(scenario: Callable[[Shell, list[BaseException]], Awaitable[None]], disk: Disk,
        wheel: Wheel) -> list[BaseException]:  # fmt: skip
    """The errors that ``on_failure`` received, after the end of the loop."""
    failures: list[BaseException] = []

    async def live() -> None:
        shell = Shell(cast("Persistence", disk), SystemClock(), on_failure=failures.append)
        shell.attach(wheel)
        await asyncio.wait_for(scenario(shell, failures), 60)
        # All messages of the writer thread are processed.
        await asyncio.sleep(0)

    asyncio.run(live())
    return failures


def test_what_is_queued_is_written_before_the_end() -> None:
    async def scenario(shell: Shell, failures: list[BaseException]) -> None:
        del failures
        shell.writer.submit(WriteGroup(1, ()))
        shell.start()
        assert shell.stop(60)
        assert not shell.is_writing

    disk = Disk()
    assert run(scenario, disk, Wheel()) == []
    assert disk.written == [1]


def test_a_disk_failure_in_the_last_pass_is_reported_before_stop_returns() -> None:
    """Goal: the caller of stop learns that writes are missing; the loop does not run again."""
    failure = StorageError("cannot sync")

    async def scenario(shell: Shell, failures: list[BaseException]) -> None:
        shell.writer.submit(WriteGroup(1, ()))
        shell.start()
        assert not shell.stop(60)
        assert failures == [failure]
        assert not shell.is_writing

    assert run(scenario, Disk(failure), Wheel()) == [failure]


def test_a_replica_that_failed_is_not_called_again() -> None:
    """Neither by messages, nor by its timer, nor by completions of the disk."""
    failure = InvariantViolation("two leaders")
    wheel = Wheel(failure)

    async def scenario(shell: Shell, failures: list[BaseException]) -> None:
        shell.start()
        shell.guard(wheel.tick)
        shell.guard(wheel.tick)
        shell.on_deadline(0)
        shell.writer.submit(WriteGroup(1, ()))
        await asyncio.sleep(0.01)
        assert shell.stop(60)
        assert failures == [failure]

    disk = Disk()
    assert run(scenario, disk, wheel) == [failure]
    assert (wheel.calls, disk.written) == (1, [1])


def test_a_replica_is_not_called_after_its_disk_failed() -> None:
    failure = StorageError("cannot sync")
    wheel = Wheel()

    async def scenario(shell: Shell, failures: list[BaseException]) -> None:
        shell.writer.submit(WriteGroup(1, ()))
        shell.start()
        while not failures:
            await asyncio.sleep(0.001)
        shell.guard(wheel.tick)
        shell.stop(60)

    assert run(scenario, Disk(failure), wheel) == [failure]
    assert wheel.calls == 0


@pytest.mark.parametrize(
    ("failure", "written"),
    [(StorageError("cannot sync"), [1]), (InvariantViolation("two leaders"), [1, 2])],
)
def test_a_failure_found_elsewhere_ends_all_writing(failure: Exception, written: list[int]) -> None:
    """Goal: after a failed sync of any file no waiting group is written, and no write is reported
    as done. Method: fail while the disk blocks the first of two.
    """
    wheel = Wheel()
    disk = HeldDisk()

    async def scenario(shell: Shell, failures: list[BaseException]) -> None:
        shell.writer.submit(WriteGroup(1, ()))
        shell.start()
        assert await asyncio.to_thread(disk.is_held.wait, 60)
        shell.writer.submit(WriteGroup(2, ()))
        shell.on_failure(failure)
        shell.on_failure(OSError("follows from the first"))
        assert failures == [failure]
        disk.released.set()
        assert shell.stop(60) == (len(written) == 2)
        shell.guard(wheel.tick)

    assert run(scenario, disk, wheel) == [failure]
    assert (wheel.calls, disk.written) == (0, written)


def test_a_failure_after_the_stop_is_reported() -> None:
    failure = StorageError("cannot sync")

    async def scenario(shell: Shell, failures: list[BaseException]) -> None:
        del failures
        shell.start()
        assert shell.stop(60)
        shell.on_failure(failure)

    assert run(scenario, Disk(), Wheel()) == [failure]


def test_a_turn_reports_whether_the_replica_works() -> None:
    """What feeds a watchdog: a turn of the replica, and none of one that has failed."""

    async def scenario(shell: Shell, failures: list[BaseException]) -> None:
        shell.start()
        assert shell.take_turn()
        wheel.failure = ValueError("broken")
        assert not shell.take_turn()
        assert failures == [wheel.failure]
        assert not shell.take_turn()
        assert wheel.calls == 2
        shell.stop(60)

    wheel = Wheel()
    run(scenario, Disk(), wheel)
