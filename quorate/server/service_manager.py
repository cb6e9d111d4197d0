"""What a node reports to the service manager that started it: systemd's notification protocol.

systemd names a datagram socket in ``NOTIFY_SOCKET`` (sd_notify(3)) and an interval in
``WATCHDOG_USEC`` (sd_watchdog_enabled(3)). Without them nothing is sent. The two libraries for this
are as long as this file and have had no release for years.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Mapping
from typing import Final

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"
ALIVE: Final = "WATCHDOG=1"
TURNS_PER_INTERVAL: Final = 4
"""Turns of the raft loop in one watchdog interval; two may come late, and none is missed."""

_log = logging.getLogger(__name__)


class ServiceManager:
    """The service manager of this process, or nobody."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        # An abstract socket is written with "@" and addressed with a zero byte.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self.watchdog_s = _watchdog_s(environment)
        """The process counts as hung after this many seconds without ``ALIVE``; 0: never."""

    def notify(self, state: str) -> None:
        """Send one assignment. A manager that is gone is logged and harms nothing."""
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                # The loop does not wait for a manager whose queue is full.
                sender.settimeout(0)
                sender.sendto(state.encode(), self._address)
        except OSError as error:
            _log.warning("event=service_manager_not_reached state=%s error=%s", state, error)


class Watchdog:
    """Tells the service manager again and again that the raft loop turns. Owned by an event loop.

    ``turn`` takes one turn and returns whether the replica still works: what is reported is that
    turn, not that the process exists. A loop that hangs, or a replica that has failed, feeds
    nothing, and the service manager ends the process.
    """

    def __init__(self, manager: ServiceManager, turn: Callable[[], bool]) -> None:
        self._manager = manager
        self._turn = turn
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Take a turn now and then, if the manager watches at all."""
        if self._manager.watchdog_s > 0:
            self._feed()

    def stop(self) -> None:
        """Take no more turns."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _feed(self) -> None:
        if self._turn():
            self._manager.notify(ALIVE)
        pause_s = self._manager.watchdog_s / TURNS_PER_INTERVAL
        self._timer = self._loop.call_later(pause_s, self._feed)


def _watchdog_s(environment: Mapping[str, str]) -> float:
    """Return the interval of the watchdog; 0 if there is none or it is another process's."""
    interval, pid = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", "")
    if not interval.isdecimal() or pid not in ("", str(os.getpid())):
        return 0.0
    return int(interval) / 1_000_000
