"""A standalone server process, and the command line against it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from quorate.demo.ports import free_ports
from tests.support import fork_server

START_LINES_MAX = 200
COMMAND_SECONDS_MAX = 60.0


class Node:
    """A standalone server process and the commands given to it."""

    def __init__(self, folder: Path, codec: str) -> None:
        self.port, self.metrics_port = free_ports(2)
        self.codec = codec
        self.data_dir = folder / "data"
        self._environment = {
            **os.environ,
            "QUORATE__NODE__ID": "1",
            "QUORATE__NODE__DATA_DIR": str(folder / "data"),
            "QUORATE__LISTENERS__CLIENT": f"127.0.0.1:{self.port}",
            "QUORATE__CLUSTER__RECORD_CODEC": codec,
            "QUORATE__METRICS__LISTEN": f"127.0.0.1:{self.metrics_port}",
            "QUORATE_BOOTSTRAP": f"127.0.0.1:{self.port}",
        }
        assert self.run("format", "--cluster-id", "cli-test", "--standalone")[0] == 0
        self.process = self.start("server")
        self.wait_for(self.process, "event=serving")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "quorate", *arguments],
            env=self._environment,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @staticmethod
    def wait_for(process: subprocess.Popen[str], words: str) -> None:
        assert process.stderr is not None
        seen = []
        for _ in range(START_LINES_MAX):
            line = process.stderr.readline()
            seen.append(line)
            if words in line:
                return
            if not line:
                break
        raise AssertionError(f"{words!r} never came:\n{''.join(seen)}")

    def run(self, *arguments: str) -> tuple[int, str, str]:
        done = fork_server.run(
            "quorate", arguments, environment=self._environment, timeout=COMMAND_SECONDS_MAX
        )
        return done.returncode, done.stdout, done.stderr

    def ask(self, *arguments: str) -> Any:
        status, out, err = self.run("-o", "json", *arguments)
        assert status == 0, err
        return json.loads(out)

    def page(self, path: str, accept: str = "*/*") -> str:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.metrics_port}{path}", headers={"Accept": accept}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return str(answer.read().decode())

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        _, err = self.process.communicate(timeout=30)
        assert "event=stopped" in err
        return self.process.returncode
