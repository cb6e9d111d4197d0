"""What a service manager is told, on a real socket of its protocol."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.server.service_manager import (
    ALIVE,
    READY,
    TURNS_PER_INTERVAL,
    ServiceManager,
    Watchdog,
)

INTERVAL_S = 0.04


@pytest.fixture
def manager_socket(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(60)
        yield listening


def environment(listening: socket.socket, **more: str) -> dict[str, str]:
    return {"NOTIFY_SOCKET": listening.getsockname(), **more}


def test_a_state_arrives_as_one_datagram(manager_socket: socket.socket) -> None:
    ServiceManager(environment(manager_socket)).notify(READY)
    assert manager_socket.recv(100) == b"READY=1"


def test_an_abstract_socket_is_reached() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0quorate-{os.getpid()}")
        listening.settimeout(60)
        ServiceManager({"NOTIFY_SOCKET": f"@quorate-{os.getpid()}"}).notify(READY)
        assert listening.recv(100) == b"READY=1"


def test_without_a_manager_nothing_is_sent_and_nothing_watches() -> None:
    manager = ServiceManager({})
    manager.notify(READY)
    assert manager.watchdog_s == 0


def test_a_manager_that_is_gone_harms_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "gone")}).notify(READY)
    assert "event=service_manager_not_reached" in caplog.text


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, 0.0),
        ({"WATCHDOG_USEC": "no number"}, 0.0),
    ],
)
def test_the_interval_is_this_process_s(given: dict[str, str], seconds: float) -> None:
    assert ServiceManager(given).watchdog_s == seconds


def test_the_watchdog_is_fed_by_turns_only(manager_socket: socket.socket) -> None:
    """Goal: a replica that has failed feeds nothing although the loop runs."""
    turns: list[bool] = []

    async def run() -> None:
        has_ended = asyncio.Event()

        def turn() -> bool:
            turns.append(len(turns) < TURNS_PER_INTERVAL)
            if len(turns) == 3 * TURNS_PER_INTERVAL:
                has_ended.set()
            return turns[-1]

        microseconds = str(int(INTERVAL_S * 1_000_000))
        manager = ServiceManager(environment(manager_socket, WATCHDOG_USEC=microseconds))
        watchdog = Watchdog(manager, turn)
        watchdog.start()
        await asyncio.wait_for(has_ended.wait(), 60)
        watchdog.stop()

    asyncio.run(run())
    manager_socket.setblocking(False)
    arrived = []
    while True:
        try:
            arrived.append(manager_socket.recv(100))
        except BlockingIOError:
            break
    assert arrived == [ALIVE.encode()] * TURNS_PER_INTERVAL


def test_a_watchdog_that_nobody_asked_for_takes_no_turn() -> None:
    taken: list[None] = []

    async def run() -> None:
        watchdog = Watchdog(ServiceManager({}), lambda: taken.append(None) or True)
        watchdog.start()
        for _ in range(3):
            await asyncio.sleep(0)
        watchdog.stop()

    asyncio.run(run())
    assert taken == []
