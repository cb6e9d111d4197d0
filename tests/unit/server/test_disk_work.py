"""Failures of disk work while a node stops, and how they are reported: writer and readers."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest

from quorate.config.sections import ScrubConfig
from quorate.replica import log_manager
from quorate.replica.paced_files import PacedStop
from quorate.replica.replica import Replica
from quorate.server import disk_work, scrubber
from quorate.server.node import ServerNode
from quorate.server.scrubber import Scrubber
from quorum.core.contract.output import VerifyLog
from quorum.errors import StorageError
from quorum.log.filesystem import OsFileSystem
from quorum.runtime.persistence import Persistence
from quorum.runtime.ports import WriteGroup
from quorum.runtime.shell import Shell
from tests.support.lone_replica import LoneReplica
from tests.support.lone_server import start_lone_server

PATIENCE_S = 20


class Held:
    """Work on a thread that a disk holds until it is released, and fails then."""

    def __init__(self) -> None:
        self.begun, self.released = threading.Event(), threading.Event()
        self.failure = StorageError("cannot read: Input/output error", Path("/data"))

    def __call__(self, *_: object, **__: object) -> NoReturn:
        self.begun.set()
        assert self.released.wait(PATIENCE_S)
        raise self.failure


@pytest.fixture
def failures() -> list[BaseException]:
    """The errors that ``on_failure`` received."""
    return []


def run(
    folder: Path, scenario: Callable[[ServerNode, Held], Any], failures: list[BaseException]
) -> Held:
    """A node that has started, and something for its disk to hold."""
    held = Held()

    async def live() -> None:
        node = await start_lone_server(folder, OsFileSystem(), failures.append, shutdown_ms_max=100)
        await scenario(node, held)

    try:
        asyncio.run(live())
    finally:
        held.released.set()
    return held


async def begin_to_read(
    node: ServerNode, held: Held, reader: str, monkeypatch: pytest.MonkeyPatch
) -> Future[Any]:
    """Let the disk hold a reader of the node's own log; what is done when it has ended."""
    if reader == "scrubber":
        monkeypatch.setattr(Scrubber, "_pass", held)
        monkeypatch.setattr(scrubber, "pause_s", lambda *_, **__: 0.0)
        again = Scrubber(node.replica, node.host, ScrubConfig())
        node._scrubber.stop()
        node._scrubber = again
        again.start()
        reading: Future[Any] | None = again.ended
    else:
        monkeypatch.setattr(log_manager, "verify_log", held)
        manager = node.replica.log_manager
        manager.verify(VerifyLog(0, 0))
        reading = manager._last
    assert reading is not None
    assert await asyncio.to_thread(held.begun.wait, PATIENCE_S)
    return reading


READERS = pytest.mark.parametrize("reader", ["scrubber", "log keeper"])


@READERS
def test_a_read_that_fails_during_the_stop_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: list[BaseException], reader: str
) -> None:
    """Goal: a disk that cannot be trusted is not left with the exit code of a clean stop.
    Method: fail it when everything else has been closed and the writer is about to be.
    """

    async def scenario(node: ServerNode, held: Held) -> None:
        await begin_to_read(node, held, reader, monkeypatch)
        cancel = node.replica.checkpoints.cancel

        def cancel_and_fail() -> object:
            held.released.set()
            return cancel()

        monkeypatch.setattr(node.replica.checkpoints, "cancel", cancel_and_fail)
        await node.stop()
        assert failures == [held.failure]

    held = run(tmp_path, scenario, failures)
    assert failures == [held.failure]


@READERS
def test_a_read_that_fails_after_its_deadline_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: list[BaseException], reader: str
) -> None:
    """Method: fail it when the stop has waited for it in vain and ends the writer."""
    monkeypatch.setattr(disk_work, "READERS_S", 0.01)

    async def scenario(node: ServerNode, held: Held) -> None:
        reading = await begin_to_read(node, held, reader, monkeypatch)
        stop = node.host.stop

        def stop_and_fail(timeout_s: float | None = None) -> bool:
            assert not reading.done()
            is_written = stop(timeout_s)
            held.released.set()
            assert reading.exception(PATIENCE_S) is held.failure
            return is_written

        monkeypatch.setattr(node.host, "stop", stop_and_fail)
        await node.stop()
        assert failures == [held.failure]

    held = run(tmp_path, scenario, failures)
    assert failures == [held.failure]


@READERS
def test_a_reading_that_the_stop_ends_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: list[BaseException], reader: str
) -> None:
    async def scenario(node: ServerNode, held: Held) -> None:
        await begin_to_read(node, held, reader, monkeypatch)
        held.failure = PacedStop()  # type: ignore[assignment]
        held.released.set()
        await node.stop()

    run(tmp_path, scenario, failures)
    assert not failures


def test_a_write_that_fails_when_its_progress_is_checked_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: list[BaseException]
) -> None:
    """Goal: no moment in which a failure is lost. Method: the disk holds the writer until the
    very moment in which the stop asks whether it still does.
    """

    async def scenario(node: ServerNode, held: Held) -> None:
        writer = node.host.writer
        writer._writer_thread._persistence = cast("Persistence", SimpleNamespace(execute=held))
        node.host.writer.submit(WriteGroup(1, ()))
        assert await asyncio.to_thread(held.begun.wait, PATIENCE_S)

        def is_writing_no_more(_shell: Shell) -> bool:
            held.released.set()
            writer._writer_thread._system_thread.join(PATIENCE_S)
            return writer.is_running

        monkeypatch.setattr(Shell, "is_writing", property(is_writing_no_more))
        await node.stop()
        assert failures == [held.failure], "before the loop turns again"

    run(tmp_path, scenario, failures)


def test_a_failed_follow_up_of_a_finding_is_reported_after_the_scrubber_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Goal: a disk that cannot quarantine a damaged checkpoint counts as failed. Method: the call
    reaches the driver when no task waits for its result.
    """
    failure = StorageError("cannot rename: Input/output error", Path("/data"))

    def fail(_replica: Replica) -> NoReturn:
        raise failure

    calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
    monkeypatch.setattr(scrubber, "pause_s", lambda *_, **__: 0.0)
    monkeypatch.setattr(scrubber, "target_of", fail)
    host = LoneReplica()
    monkeypatch.setattr(host, "to_driver", calls.put)
    each = Scrubber(cast("Replica", None), host, ScrubConfig())
    each.start()
    call = calls.get(timeout=PATIENCE_S)
    each.stop()
    assert each.ended.result(PATIENCE_S) is None
    with pytest.raises(StorageError) as raised:
        call()
    assert raised.value is failure


@pytest.mark.parametrize("is_started", [False, True])
def test_a_scrubber_may_be_stopped_again(is_started: bool) -> None:
    """Goal: a second stop, and a stop before the start, change nothing."""
    each = Scrubber(cast("Replica", None), LoneReplica(), ScrubConfig())
    if is_started:
        each.start()
    each.stop()
    each.stop()
    assert each.ended.result(PATIENCE_S) is None
