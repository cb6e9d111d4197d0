"""Runs one pod as a kubelet does: init containers, probes, restarts, the command before a stop.

Real processes of this checkout, with the commands and the environment of the rendered pod. Not
carried out: images, users, resources, capabilities.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from tests.integration.kubernetes.pod_template import Container, Pod, Probe
from tests.integration.kubernetes.sandbox import ROOT, Sandbox

INIT_SECONDS_MAX = 120.0
PATH = f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin"
_PAUSE_S = 0.05


class RunningPod:
    """One pod from its creation to its end. Any thread.

    ``is_ready`` is the result of the readiness probe, ``restarts`` how often the container ended or
    its liveness probe failed.
    """

    def __init__(self, pod: Pod, volumes: Path) -> None:
        """Make the sandbox; nothing runs yet. ``volumes`` keeps a folder per pod and volume."""
        self.pod = pod
        self.is_ready = False
        self.ready_since = 0.0
        self.restarts = 0
        self.pre_stop_output = ""
        self.log_path = volumes / f"{pod.name}.log"
        data = volumes / pod.name
        data.mkdir(exist_ok=True)
        self.sandbox = Sandbox(
            pod.name,
            {path: data if name == "data" else None for path, name in pod.mounts.items()},
            is_read_only=pod.main.is_root_read_only,
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ending = threading.Event()
        self._thread = threading.Thread(target=self._sync, name=pod.name, daemon=True)

    @property
    def address(self) -> str:
        return self.sandbox.address

    def start(self) -> None:
        """Begin: init containers, then the container, then its probes."""
        self._thread.start()

    def stop(self) -> int:
        """The command before the stop, SIGTERM, and SIGKILL after the grace period; exit code."""
        began = time.monotonic()
        self._leave()
        process = self._process
        assert process is not None
        if self.pod.main.pre_stop:
            done = subprocess.run(
                self.sandbox.command(self.pod.main.pre_stop),
                env=_environment(self.pod.main),
                capture_output=True,
                text=True,
                timeout=self.pod.grace_s,
                check=False,
            )
            self.pre_stop_output = f"{done.returncode}: {done.stdout}{done.stderr}"
        process.send_signal(signal.SIGTERM)
        try:
            status = process.wait(max(0.0, began + self.pod.grace_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        self.sandbox.remove()
        return status

    def lose(self) -> None:
        """The machine is gone: no signal, no command."""
        self._leave()
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self.sandbox.remove()

    # ------------------------------------------------------------------ inside

    def _leave(self) -> None:
        """End the probes; a pod that is stopped is not ready."""
        self._is_ending.set()
        self._thread.join()
        self.is_ready = False

    def _sync(self) -> None:
        with self.log_path.open("ab") as log:
            for container in self.pod.first:
                subprocess.run(
                    self.sandbox.command(container.command),
                    env=_environment(container),
                    stdout=log,
                    stderr=log,
                    timeout=INIT_SECONDS_MAX,
                    check=True,
                )
            while not self._is_ending.is_set():
                self._process = subprocess.Popen(
                    self.sandbox.command(self.pod.main.command),
                    env=_environment(self.pod.main),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
                self._probe(self._process)
                if not self._is_ending.is_set():
                    self.is_ready = False
                    self.restarts += 1
                    self._process.kill()
                    self._process.wait()

    def _probe(self, process: subprocess.Popen[bytes]) -> None:
        """Return when the container has ended, is to be restarted, or the pod is stopped."""
        probes = self.pod.main.probes
        if not self._probe_until(process, probes["startup"]):
            return
        due = {"liveness": 0.0, "readiness": 0.0}
        failures = dict.fromkeys(due, 0)
        while process.poll() is None and not self._is_ending.wait(_PAUSE_S):
            for name in due:
                probe = probes[name]
                if time.monotonic() < due[name]:
                    continue
                due[name] = time.monotonic() + probe.period_s
                is_ok = self._ask(probe)
                failures[name] = 0 if is_ok else failures[name] + 1
                if name == "readiness" and is_ok and not self.is_ready:
                    self.ready_since = time.monotonic()
                    self.is_ready = True
                elif failures[name] >= probe.failures_max:
                    if name == "liveness":
                        return
                    self.is_ready = False

    def _probe_until(self, process: subprocess.Popen[bytes], probe: Probe) -> bool:
        """Whether the startup probe succeeded in time."""
        for _ in range(probe.failures_max):
            if process.poll() is not None:
                return False
            if self._ask(probe):
                return True
            if self._is_ending.wait(probe.period_s):
                return False
        return False

    def _ask(self, probe: Probe) -> bool:
        url = f"http://{self.address}:{probe.port}{probe.path}"
        try:
            with urllib.request.urlopen(url, timeout=probe.timeout_s) as answer:
                return 200 <= answer.status < 400
        except (urllib.error.URLError, OSError):
            return False


def _environment(container: Container) -> dict[str, str]:
    return {**container.environment, "PATH": PATH, "PYTHONPATH": str(ROOT), "HOME": "/"}
