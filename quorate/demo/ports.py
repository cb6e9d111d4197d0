"""Ports for servers of this machine, so that no two clusters choose the same.

A port is chosen long before its server binds it, and a server that is down for a while must find
its port free when it comes back. So it is not enough to test whether a process listens: a chosen
port belongs to the choosing process until that ends, by a lock that other processes see.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
import threading
from pathlib import Path
from typing import Final

LOOPBACK: Final = "127.0.0.1"
_PORTS: Final = range(20_000, 32_000)
"""Below the range from which the kernel takes the ports of outgoing connections."""
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class PortReservations:
    """Ports that this process has chosen. Any thread may ask.

    One locked byte of a file reserves one port. The kernel frees the locks of a process that ends
    in whatever way; servers that outlive it are found by binding.
    """

    def __init__(self, file: Path, ports: range = _PORTS) -> None:
        self._file = file
        self._ports = ports
        self._descriptor = -1
        self._owner = 0
        self._taken: set[int] = set()
        self._guard = threading.Lock()

    def choose(self, count: int) -> list[int]:
        """Return this many ports of the loopback interface, never the same one twice.

        Args:
            count: At least 1.

        Raises:
            RuntimeError: Too few ports of the range are left.
            OSError: The file cannot be opened.
        """
        with self._guard:
            self._open()
            candidates = list(self._ports)
            random.SystemRandom().shuffle(candidates)
            chosen: list[int] = []
            for port in candidates:
                if self._take(port):
                    chosen.append(port)
                if len(chosen) == count:
                    return chosen
        raise RuntimeError(
            f"fewer than {count} ports from {self._ports.start} to {self._ports.stop} are left"
        )

    def _open(self) -> None:
        # The locks belong to a process: a forked child has the descriptor, but none of the locks.
        if self._owner != os.getpid():
            # Never closed: closing any descriptor of the file would free every lock of the process.
            self._descriptor = os.open(self._file, _FLAGS, 0o600)
            self._owner = os.getpid()

    def _take(self, port: int) -> bool:
        if port in self._taken:
            return False
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except OSError:
            return False
        with socket.socket() as one:
            try:
                one.bind((LOOPBACK, port))
            except OSError:
                fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, port)
                return False
        self._taken.add(port)
        return True


_RESERVATIONS: Final = PortReservations(
    Path(tempfile.gettempdir()) / f"quorate-ports-{os.getuid()}"
)


def free_ports(count: int) -> list[int]:
    """Ports that no process listens on, all different, and this process's until it ends."""
    return _RESERVATIONS.choose(count)
