"""A node whose disk fails for checkpoints only."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from quorate.replica.checkpoints import CheckpointManager
from quorate.server import scrubber
from quorate.server.node import ServerNode
from quorate.server.scrubber import Scrubber
from quorum.errors import StorageError
from quorum.log.filesystem import OsFile, OsFileSystem
from tests.support.lone_server import start_lone_server

PATIENCE_S = 20


class Disk(OsFileSystem):
    """Holds the sync of an unfinished checkpoint until released, and fails it then."""

    def __init__(self) -> None:
        super().__init__()
        self.is_held, self.released = threading.Event(), threading.Event()
        self.failure: StorageError | None = None

    def open(self, path: Path, *, create: bool = False, writable: bool = False) -> OsFile:
        plain = super().open(path, create=create, writable=writable)
        file = _File(path, plain._fd)
        file._disk = self
        return file


class _File(OsFile):
    __slots__ = ("_disk",)
    _disk: Disk

    def sync(self) -> None:
        if self._path.name.endswith(".part"):
            self._disk.is_held.set()
            assert self._disk.released.wait(PATIENCE_S)
            self._disk.failure = StorageError("cannot sync: Input/output error", self._path)
            raise self._disk.failure
        super().sync()


def run(
    folder: Path,
    scenario: Callable[[ServerNode, Disk, list[BaseException]], Awaitable[None]],
    *,
    shutdown_ms_max: int = PATIENCE_S * 1000,
) -> tuple[Disk, list[BaseException]]:
    """A leader whose disk blocks a checkpoint, and the errors that ``on_failure`` received."""
    disk = Disk()
    failures: list[BaseException] = []

    async def live() -> None:
        node = await start_lone_server(
            folder, disk, failures.append, shutdown_ms_max=shutdown_ms_max
        )
        async with asyncio.timeout(PATIENCE_S):
            while not disk.is_held.is_set():
                if node.replica.node.is_leader:
                    node.replica.checkpoints.write_now()
                await asyncio.sleep(0.001)
        await scenario(node, disk, failures)

    try:
        asyncio.run(live())
    finally:
        disk.released.set()
    return disk, failures


def test_the_replica_is_called_no_more_when_a_checkpoint_cannot_be_synced(tmp_path: Path) -> None:
    """Goal: nothing is acknowledged by a node that does not trust its disk."""
    calls: list[bool] = []

    async def scenario(node: ServerNode, disk: Disk, failures: list[BaseException]) -> None:
        disk.released.set()
        async with asyncio.timeout(PATIENCE_S):
            while not failures:
                await asyncio.sleep(0.001)
        node.host.guard(calls.append, True)
        await node.stop()

    disk, failures = run(tmp_path, scenario)
    assert failures == [disk.failure]
    assert not calls


@pytest.mark.parametrize("finds", ["loop", "scrubber"])
def test_the_replica_is_called_no_more_after_other_failures(tmp_path: Path, finds: str) -> None:
    failure = KeyboardInterrupt()
    calls: list[bool] = []

    async def scenario(node: ServerNode, disk: Disk, failures: list[BaseException]) -> None:
        if finds == "loop":
            node.host._on_loop_error(asyncio.get_running_loop(), {"exception": failure})
        else:
            node._scrubber._host.on_failure(failure)
        assert failures == [failure]
        node.host.guard(calls.append, True)
        disk.released.set()
        await node.stop()

    assert run(tmp_path, scenario)[1] == [failure]
    assert not calls


def test_a_checkpoint_that_fails_during_the_stop_is_reported(tmp_path: Path) -> None:
    """Goal: a disk that cannot be trusted is not left with the exit code of a clean stop.
    Method: fail the sync when everything else has been closed and the writer is about to be.
    """

    async def scenario(node: ServerNode, disk: Disk, failures: list[BaseException]) -> None:
        cancel = node.replica.checkpoints.cancel

        def cancel_and_fail() -> object:
            last = cancel()
            disk.released.set()
            return last

        node.replica.checkpoints.cancel = cancel_and_fail  # type: ignore[assignment,method-assign]
        await node.stop()
        assert failures == [disk.failure]

    disk, failures = run(tmp_path, scenario)
    assert failures == [disk.failure]
    assert isinstance(disk.failure, StorageError)


def test_a_disk_that_holds_a_checkpoint_does_not_keep_the_node(tmp_path: Path) -> None:
    """Goal: the stop is bounded, and the loop turns meanwhile: it may hear a second signal."""
    turns: list[float] = []

    async def scenario(node: ServerNode, disk: Disk, failures: list[BaseException]) -> None:
        async def turn() -> None:
            while True:
                turns.append(asyncio.get_running_loop().time())
                await asyncio.sleep(0.01)

        turning = asyncio.create_task(turn())
        with pytest.raises(StorageError, match="the disk hangs"):
            await node.stop()
        turning.cancel()
        assert not disk.released.is_set()
        assert not failures

    run(tmp_path, scenario, shutdown_ms_max=500)
    assert len(turns) > 5


def test_a_checkpoint_that_fails_after_the_limit_of_the_stop_is_reported(tmp_path: Path) -> None:
    """Goal: a disk that fails late is a failed disk, not one that hangs.
    Method: fail the sync when the stop has waited for it in vain and ends the writer.
    """

    async def scenario(node: ServerNode, disk: Disk, failures: list[BaseException]) -> None:
        last = node.replica.checkpoints._writing
        stop = node.host.stop
        assert last is not None

        def stop_and_fail(timeout_s: float | None = None) -> bool:
            assert not last.done()
            is_written = stop(timeout_s)
            disk.released.set()
            assert isinstance(last.exception(PATIENCE_S), StorageError)
            return is_written

        node.host.stop = stop_and_fail  # type: ignore[method-assign]
        await node.stop()

    disk, failures = run(tmp_path, scenario, shutdown_ms_max=100)
    assert failures == [disk.failure]


def test_a_checkpoint_that_fails_when_it_is_asked_for_its_failure_is_no_clean_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: no moment in which a failure is lost. Method: fail the sync when the stop, having
    waited in vain, has been answered that nothing failed.
    """
    asked = CheckpointManager.failure.fget
    assert asked is not None

    async def scenario(node: ServerNode, disk: Disk, failures: list[BaseException]) -> None:
        last = node.replica.checkpoints._writing
        assert last is not None

        def answer_and_fail(manager: CheckpointManager) -> BaseException | None:
            answer = asked(manager)
            disk.released.set()
            assert isinstance(last.exception(PATIENCE_S), StorageError)
            return answer

        monkeypatch.setattr(CheckpointManager, "failure", property(answer_and_fail))
        with pytest.raises(StorageError, match="the disk hangs"):
            await node.stop()

    run(tmp_path, scenario, shutdown_ms_max=100)


def test_the_loop_turns_while_a_thread_still_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: a thread that merely reads holds no event loop, and keeps no node that stops.
    Method: the disk holds the scrubber in a read.
    """
    held, released = threading.Event(), threading.Event()
    turns = 0

    def joined(timeout: float | None = None) -> None:
        raise AssertionError(f"the event loop waits for a thread, {timeout} s")

    def read_for_ever(_scrubber: Scrubber) -> int:
        held.set()
        released.wait(PATIENCE_S)
        return 0

    async def scenario(node: ServerNode, disk: Disk, failures: list[BaseException]) -> None:
        async def turn() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0.01)

        disk.released.set()
        assert await asyncio.to_thread(held.wait, PATIENCE_S)
        monkeypatch.setattr(node._scrubber._thread, "join", joined)
        turning = asyncio.create_task(turn())
        await node.stop()
        turning.cancel()
        assert not node._scrubber.ended.done()
        released.set()
        node._scrubber.ended.result(PATIENCE_S)

    monkeypatch.setattr(Scrubber, "_pass", read_for_ever)
    monkeypatch.setattr(scrubber, "pause_s", lambda *_, **__: 0.0)
    try:
        run(tmp_path, scenario)
    finally:
        released.set()
    assert turns > 5
