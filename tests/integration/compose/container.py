"""A service of deploy/compose.yaml as a container: its user, its root, its address, its volume."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.integration.kubernetes.sandbox import Sandbox
from tests.support.image import default_command, healthcheck, image_environment, image_user

PATIENCE_S = 180.0
_PAUSE_S = 0.2


class Container:
    """Real processes in namespaces of their own; started and stopped as often as one likes."""

    def __init__(
        self, name: str, service: Mapping[str, Any], root: Path, folder: Path, log: Path
    ) -> None:
        """``folder`` has the file of names, and gets the volumes. It must not be below /tmp."""
        self.name = name
        self._service = service
        self._root = root
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._sandbox = Sandbox(name, {}, is_read_only=False)
        self.address = self._sandbox.address
        self._mount(folder)

    def start(self) -> None:
        entry = self._service.get("entrypoint", default_command()[:1])
        command = self._service.get("command", default_command()[1:])
        # Compose replaces $$ by $.
        words = [str(each).replace("$$", "$") for each in (*entry, *command)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._inside(words), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def wait_healthy(self) -> None:
        """Run the health check until it succeeds."""
        check = self._service.get("healthcheck", {}).get("test", ["CMD", *healthcheck()])
        assert check[0] == "CMD"
        deadline = time.monotonic() + PATIENCE_S
        while self.execute(*check[1:]).returncode != 0:
            assert self._process is not None
            assert self._process.poll() is None, f"{self.name} has ended: {self.log()}"
            assert time.monotonic() < deadline, f"{self.name} is not healthy: {self.log()}"
            time.sleep(_PAUSE_S)

    def execute(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command beside the first process, as ``docker exec`` does."""
        return subprocess.run(self._inside(words), capture_output=True, text=True, check=False)

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(PATIENCE_S)

    def status(self) -> dict[str, str]:
        """What the kernel says about the first process."""
        assert self._process is not None
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}

    def remove(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._sandbox.remove()

    def log(self) -> str:
        return self._log.read_text(errors="replace")[-2000:]

    def _inside(self, words: list[str] | tuple[str, ...]) -> list[str]:
        user, group = image_user()
        environment = {
            **image_environment(),
            "PATH": "/opt/quorate/bin:/usr/local/bin:/usr/bin:/bin",
            **self._service.get("environment", {}),
        }
        return self._sandbox.command([
            "chroot", str(self._root), "setpriv", f"--reuid={user}", f"--regid={group}",
            "--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all",
            "env", "-i", *(f"{key}={value}" for key, value in environment.items()), *words,
        ])  # fmt: skip

    def _mount(self, folder: Path) -> None:
        """Volumes, /tmp and the names; then nothing else can be written."""
        root = self._root
        lines = [
            f"mount --bind '{folder}/hosts' '{root}/etc/hosts'",
            *(f"mount -t tmpfs tmpfs '{root}{each}'" for each in self._service["tmpfs"]),
        ]
        for text in self._service.get("volumes", ()):
            source, target = text.split(":")
            # An engine fills a new volume with what the image has there, its owner included.
            volume = f"{folder}/volume-{source}"
            lines += [
                f"test -e '{volume}' || cp -a '{root}{target}' '{volume}'",
                f"mount --bind '{volume}' '{root}{target}'",
            ]
        if self._service["read_only"]:
            lines.append(f"mount -o remount,bind,ro '{root}'")
        done = subprocess.run(
            self._sandbox.command(["sh", "-ec", "\n".join(lines)]),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
