"""Server processes that begin where loading has ended: hundreds of restarts in minutes.

A fork server has loaded the packages once; every start of a node is a fork of it that runs the
command line as it is, with real files, sockets, signals and exit codes. Only the second that Python
takes to load is left out.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, cast

from quorate.demo.local_cluster import LocalNode
from tests.integration.processes import Processes

PRELOADED = (
    "quorate.entry",
    "quorate.cli.main",
    "quorate.server.process",
    "tests.campaigns.forked",
)


def _serve(config: str, log: str, environment: Mapping[str, str], defect: str) -> None:
    """Run the child process."""
    os.setsid()
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
    for each in (1, 2):
        os.dup2(descriptor, each)
    os.environ.update(environment)
    sys.argv = ["quorate", "server", "--config", config]
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_DFL)
    if defect:
        from tests.campaigns.broken_node import DEFECTS

        DEFECTS[defect]()
    from quorate.entry import main

    code = 1
    with contextlib.suppress(SystemExit):
        code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


class ForkedProcess:
    """As much of ``subprocess.Popen`` as a ``LocalNode`` needs."""

    def __init__(self, process: ForkServerProcess) -> None:
        self._process = process
        self.pid = cast("int", process.pid)

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        # It may end between the two, and be collected by another thread's wait.
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("quorate server", timeout or 0.0)
        return code


class ForkedProcesses(Processes):
    """A cluster whose nodes are forked, voters first, then ``observers``.

    ``defect``: one of ``broken_node.DEFECTS``, or none.
    """

    def __init__(self, folder: Path, *, defect: str = "", observers: int = 0, **given: Any) -> None:
        super().__init__(folder, **given)
        self.defect = defect
        for node_id in range(len(self.nodes) + 1, len(self.nodes) + 1 + observers):
            self.add_observer(node_id)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(list(PRELOADED))

    def start(self, node: LocalNode) -> None:
        changed = {
            name: value for name, value in self.environment.items() if os.environ.get(name) != value
        }
        given = (str(node.config_path), str(node.log_path), changed, self.defect)
        # Not a daemon: the child ends as a process of its own does, by ``end_all`` at the latest.
        process = self._context.Process(target=_serve, args=given)
        process.start()
        node.process = cast("Any", ForkedProcess(process))
