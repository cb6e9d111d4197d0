"""The order of a server's start and stop, whenever the reason to stop arrives."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from quorate.server.ending import Ending
from quorate.server.node import ServerNode
from quorate.server.process import live
from quorate.server.service_manager import ServiceManager
from quorum.errors import StorageError


class Host:
    """The part of a fake node that a watchdog uses; nobody watches here."""

    def take_turn(self) -> bool:
        raise AssertionError


class Node:
    """A fake ``ServerNode``: records calls, and ends as configured."""

    host = Host()
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
