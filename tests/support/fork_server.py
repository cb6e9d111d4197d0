"""Starts ``quorate`` processes by fork, without loading their packages again.

Python takes 1.7 s of processor time to load a server and 0.6 s to load a command. The fork server
has loaded both. Each process is a fork of it that runs a module as ``python -m`` does, until the
interpreter ends, with its own session, environment, files, sockets and exit code.

A test of what happens while a process loads needs ``subprocess``.

The gate starts one for all its tests and names its socket in ``SOCKET``. Tests that run without the
gate get processes of their own.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOCKET = "QUORATE_TEST_FORK_SERVER"
"""The environment variable with the path of the running server's socket."""
PRELOADED = (
    "quorate.cli.main",
    "quorate.cli.session",
    "quorate.cli.connection",
    "quorate.cli.output",
    "quorate.cli.format",
    "quorate.server.process",
    "uvloop",
)
_LENGTH = struct.Struct("!I")
_STARTED = struct.Struct("!i")
_ENDED = struct.Struct("!id")
_FILES = 2
_END_SECONDS_MAX = 10.0

processor_seconds = 0.0
"""Resource usage of all processes whose end this process has seen."""


def address() -> str:
    """Return the socket of the fork server to use; empty if there is none."""
    return os.environ.get(SOCKET, "")


class ForkedProcess:
    """The part of ``subprocess.Popen`` that a ``LocalNode`` needs; usable from several threads.

    The process is killed when the process that started it ends.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        files: tuple[int, int],
        environment: Mapping[str, str],
    ) -> None:
        """Run ``python -m MODULE ARGUMENTS``. ``files``: standard output and error.

        Raises:
            OSError: The fork server has ended.
        """
        request = json.dumps([module, [*arguments], dict(environment)]).encode()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(address())
        socket.send_fds(self._socket, [_LENGTH.pack(len(request))], files)
        self._socket.sendall(request)
        (self.pid,) = _STARTED.unpack(_read(self._socket, _STARTED.size))
        self.returncode: int | None = None
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """Return the exit code, or minus the signal; None while the process runs."""
        with self._lock:
            if self.returncode is None and select.select([self._socket], [], [], 0)[0]:
                self._end()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the process's end; return the exit code.

        Raises:
            subprocess.TimeoutExpired: It did not end within so many seconds.
            ConnectionError: The fork server has ended, and the process with it.
        """
        with self._lock:
            if self.returncode is not None:
                return self.returncode
            # Another thread may have seen the end and closed the socket.
            watched = self._socket.dup()
        with watched:
            select.select([watched], [], [], timeout)
        if (status := self.poll()) is None:
            raise subprocess.TimeoutExpired("quorate", timeout or 0.0)
        return status

    def send_signal(self, number: int) -> None:
        """Send it, unless the process has ended."""
        if self.poll() is None:
            # It may end between the check and the signal.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _end(self) -> None:
        global processor_seconds
        with self._socket:
            self.returncode, seconds = _ENDED.unpack(_read(self._socket, _ENDED.size))
        processor_seconds += seconds


def run(
    module: str,
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    timeout: float,
    limit: Callable[[], None] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m MODULE ARGUMENTS`` to its end; return its status and output.

    Without a fork server, or with a ``limit`` that must be called before Python starts, a new
    interpreter is started.

    Raises:
        subprocess.TimeoutExpired: It did not end in time, and was killed.
    """
    if limit is not None or not address():
        return subprocess.run(
            [sys.executable, "-m", module, *arguments],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            env=environment,
            cwd=ROOT,
            check=False,
            timeout=timeout,
            preexec_fn=limit,
        )
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = ForkedProcess(
            module, arguments, files=(out.fileno(), err.fileno()), environment=environment
        )  # fmt: skip
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess([*arguments], status, out.read(), err.read())


@contextlib.contextmanager
def running() -> Iterator[None]:
    """Run a fork server for this process and all that it starts; at the end all of them have ended.

    An existing fork server is used.
    """
    if address():
        yield
        return
    # A socket's path has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="quorate-fork-", dir="/tmp") as folder:
        path = f"{folder}/socket"
        server = subprocess.Popen(
            [sys.executable, "-m", __name__, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # gRPC reads the variable when it is loaded.
            env={**os.environ, "GRPC_VERBOSITY": "NONE"},
            cwd=ROOT,
        )
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            server.stdout.readline()
            os.environ[SOCKET] = path
            yield
        finally:
            os.environ.pop(SOCKET, None)
            server.stdin.close()
            server.wait(_END_SECONDS_MAX)
            server.stdout.close()


# ---------------------------------------------------------------- the server


class _Server:
    """The fork server. It has one thread, so no lock is held in a fork."""

    def __init__(self, path: str) -> None:
        self._children: dict[int, socket.socket] = {}
        self._events = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen()
        self._woken, self._wakes = socket.socketpair()
        for each in (self._woken, self._wakes):
            each.setblocking(False)
        signal.set_wakeup_fd(self._wakes.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for source in (self._listener, self._woken, sys.stdin):
            self._events.register(source, selectors.EVENT_READ)

    def serve(self) -> None:
        """Serve until standard input is closed.

        Raises:
            _InChild: In each child, which then runs its module.
        """
        while True:
            for key, _ in self._events.select():
                if key.fileobj is sys.stdin:
                    return
                if key.fileobj is self._listener:
                    self._start(self._listener.accept()[0])
                elif key.fileobj is self._woken:
                    self._woken.recv(1024)
                    self._collect()
                elif key.data in self._children:
                    # The requester has ended.
                    self._events.unregister(key.fileobj)
                    os.kill(key.data, signal.SIGKILL)

    def end(self) -> None:
        """Kill and reap all children."""
        for pid in self._children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def close(self) -> None:
        """Close all files of this object in a child, which uses their numbers for others."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._events.close()
        for each in (self._listener, self._woken, self._wakes, *self._children.values()):
            each.close()

    def _start(self, connection: socket.socket) -> None:
        head, files, _, _ = socket.recv_fds(connection, _LENGTH.size, _FILES)
        try:
            request = json.loads(_read(connection, _LENGTH.unpack(head)[0]))
        except (ConnectionError, struct.error):
            # This requester has ended; processes of the others go on.
            connection.close()
            for each in files:
                os.close(each)
            return
        pid = os.fork()
        if pid == 0:
            connection.close()
            raise _InChild(*request, files)
        for each in files:
            os.close(each)
        self._children[pid] = connection
        self._events.register(connection, selectors.EVENT_READ, pid)
        with contextlib.suppress(OSError):
            connection.sendall(_STARTED.pack(pid))

    def _collect(self) -> None:
        for pid in [*self._children]:
            found, status, used = os.wait4(pid, os.WNOHANG)
            if found:
                code = os.waitstatus_to_exitcode(status)
                with self._children.pop(pid) as connection:
                    # Unregister before the socket is closed, because its number is used again.
                    with contextlib.suppress(KeyError):
                        self._events.unregister(connection)
                    with contextlib.suppress(OSError):
                        connection.sendall(_ENDED.pack(code, used.ru_utime + used.ru_stime))


@dataclass
class _InChild(BaseException):
    """Unwinds a child's stack to where its module is run."""

    module: str
    arguments: list[str]
    environment: dict[str, str]
    files: list[int]

    def become(self) -> None:
        """Take the files, signals, session and environment of a process of its own."""
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        opened = (os.open(os.devnull, os.O_RDONLY), *self.files)
        for number, each in enumerate(opened):
            os.dup2(each, number)
            os.close(each)
        os.environ.clear()
        os.environ.update(self.environment)
        sys.argv = [self.module, *self.arguments]


def _read(connection: socket.socket, size: int) -> bytes:
    """Receive exactly so many bytes.

    Raises:
        ConnectionError: The other end was closed before.
    """
    data = b""
    while len(data) < size:
        if not (more := connection.recv(size - len(data))):
            raise ConnectionError("the fork server or the requester has ended")
        data += more
    return data


def main(path: str) -> None:
    """Load the packages and serve; in a child, run the requested module."""
    for module in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    gc.collect()
    gc.freeze()
    server = _Server(path)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    try:
        server.serve()
    except _InChild as child:
        server.close()
        child.become()
        module = child.module
    else:
        server.end()
        return
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1])
