"""One server process: a replica with real clocks, threads, sockets and metrics around it."""

from quorate.server.process import run

__all__ = ["run"]
