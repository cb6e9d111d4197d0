"""The order of a server's start and stop, whenever the reason to stop arrives."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from quorate.controller.publishing import CheckpointProgress
from quorate.server import process
from quorate.server.ending import Ending
from quorate.server.guest import Guest
from quorate.server.node import ServerNode
from quorate.server.process import live
from quorate.server.service_manager import ServiceManager
from quorum.errors import StorageError
from statemachine.changes import ChangeCounter
from statemachine.image import EMPTY_IMAGE


class Host:
    """The part of a fake node that a watchdog uses; nobody watches here."""

    def take_turn(self) -> bool:
        raise AssertionError


class Controller:
    """The part of a fake node that the collection of cycles looks at."""

    image = EMPTY_IMAGE
    checkpoint = CheckpointProgress(ChangeCounter())


class Replica:
    controller = Controller()


class Node:
    """A fake ``ServerNode``: records calls, and ends as configured."""

    host = Host()
    replica = Replica()
    node_id = 1
    client_address = "nowhere:1"

    def __init__(self, ending: Ending, at: str, failure: Exception | None) -> None:
        self._ending = ending
        self._at = at
        self._failure = failure
        self.done: list[str] = []

    async def start(self) -> None:
        self._do("start")

    async def transfer_leadership(self) -> None:
        self._do("transfer_leadership")

    async def stop(self) -> None:
        self._do("stop")

    def _do(self, step: str) -> None:
        self.done.append(step)
        if step == self._at:
            if self._failure is None:
                self._ending.ask()
            else:
                self._ending.fail(self._failure)


@pytest.mark.parametrize(
    ("failure", "steps"),
    [
        (None, ["start", "transfer_leadership", "stop"]),
        (StorageError("cannot sync"), ["start", "stop"]),
    ],
)
def test_a_reason_to_end_during_the_start(
    failure: Exception | None, steps: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """It never reports ready, and it stops in order; a failed one transfers no leadership."""

    async def run() -> list[str]:
        ending = Ending()
        node = Node(ending, "start", failure)
        with caplog.at_level("INFO"):
            await asyncio.wait_for(live(cast("ServerNode", node), ending, ServiceManager({})), 60)
        assert ending.failure is failure
        return node.done

    assert asyncio.run(run()) == steps
    assert "event=serving" not in caplog.text


@pytest.mark.parametrize("at", ["transfer_leadership", "stop"])
def test_a_failure_after_the_request_is_kept(at: str) -> None:
    async def run() -> tuple[list[str], BaseException | None]:
        ending = Ending()
        failure = StorageError("cannot sync")
        node = Node(ending, at, failure)
        ending.ask()
        await asyncio.wait_for(live(cast("ServerNode", node), ending, ServiceManager({})), 60)
        return node.done, ending.failure

    done, failure = asyncio.run(run())
    assert done == ["start", "transfer_leadership", "stop"]
    assert isinstance(failure, StorageError)


class OnRelease(logging.Handler):
    """Takes down when the node gives back the memory of its start, and stops the node then."""

    def __init__(self, node: Node, ending: Ending) -> None:
        super().__init__()
        self._node = node
        self._ending = ending

    def emit(self, record: logging.LogRecord) -> None:
        if "event=start_pages_released bytes=" in record.getMessage():
            self._node.done.append("release")
            self._ending.ask()


@pytest.fixture
def release_s(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[float], None]]:
    """Sets the delay of the release; the node's log is on."""
    level = process._log.level
    process._log.setLevel(logging.INFO)
    yield lambda seconds: monkeypatch.setattr(process, "_RELEASE_S", seconds)
    process._log.setLevel(level)


def test_the_memory_of_the_start_is_given_back_while_the_node_serves(
    release_s: Callable[[float], None],
) -> None:
    async def run() -> list[str]:
        ending = Ending()
        node = Node(ending, "", None)
        handler = OnRelease(node, ending)
        process._log.addHandler(handler)
        try:
            await asyncio.wait_for(live(cast("ServerNode", node), ending, ServiceManager({})), 60)
        finally:
            process._log.removeHandler(handler)
        return node.done

    release_s(0)
    assert asyncio.run(run()) == ["start", "release", "transfer_leadership", "stop"]


def test_a_node_that_stops_before_the_release_leaves_no_timer(
    release_s: Callable[[float], None],
) -> None:
    delay = 3_600.0

    async def run() -> list[asyncio.TimerHandle]:
        ending = Ending()
        node = Node(ending, "", None)
        loop = asyncio.get_running_loop()
        call_later, timers = loop.call_later, []

        def watched(seconds: float, *arguments: Any, **options: Any) -> asyncio.TimerHandle:
            timer = call_later(seconds, *arguments, **options)
            if seconds == delay:
                timers.append(timer)
            return timer

        loop.call_later = watched  # type: ignore[method-assign]

        async def guest(_host: ServerNode, _must_end: asyncio.Event) -> None:
            assert [each.cancelled() for each in timers] == [False]

        await live_with(guest, node, ending)
        return timers

    release_s(delay)
    (timer,) = asyncio.run(run())
    assert timer.cancelled()


async def live_with(guest: Guest, node: Node, ending: Ending) -> None:
    run = live(cast("ServerNode", node), ending, ServiceManager({}), guest)
    await asyncio.wait_for(run, 60)


def test_a_guest_that_ends_ends_the_process_in_order() -> None:
    async def run() -> list[str]:
        ending = Ending()
        node = Node(ending, "", None)

        async def guest(host: ServerNode, must_end: asyncio.Event) -> None:
            assert host is cast("ServerNode", node)
            assert not must_end.is_set()
            node.done.append("guest")

        await live_with(guest, node, ending)
        assert ending.failure is None
        return node.done

    assert asyncio.run(run()) == ["start", "guest", "transfer_leadership", "stop"]


def test_a_guest_ends_while_the_node_still_works() -> None:
    async def run() -> list[str]:
        ending = Ending()
        node = Node(ending, "", None)

        async def guest(_host: ServerNode, must_end: asyncio.Event) -> None:
            ending.ask()
            await must_end.wait()
            await asyncio.sleep(0)
            node.done.append("guest")

        await live_with(guest, node, ending)
        return node.done

    assert asyncio.run(run()) == ["start", "guest", "transfer_leadership", "stop"]


def test_what_a_guest_raises_is_raised_when_the_node_has_stopped() -> None:
    async def run() -> None:
        ending = Ending()
        node = Node(ending, "", None)

        async def guest(_host: ServerNode, _must_end: asyncio.Event) -> None:
            raise ConnectionError("of the guest")

        with pytest.raises(ConnectionError, match="of the guest"):
            await live_with(guest, node, ending)
        assert node.done[-1] == "stop"
        assert ending.failure is None

    asyncio.run(run())


def test_a_failing_node_waits_for_no_guest() -> None:
    async def run() -> None:
        ending = Ending()
        node = Node(ending, "", None)

        async def guest(_host: ServerNode, _must_end: asyncio.Event) -> None:
            try:
                ending.ask()
                await asyncio.sleep(0)
                ending.fail(StorageError("cannot sync"))
                await asyncio.get_running_loop().create_future()
            finally:
                node.done.append("guest")

        await live_with(guest, node, ending)
        assert node.done == ["start", "guest", "stop"]
        assert isinstance(ending.failure, StorageError)

    asyncio.run(run())
