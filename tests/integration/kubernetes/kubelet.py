"""Runs one pod as a kubelet does: init containers, probes, restarts, the command before a stop.

Real processes with the commands, the environment, the volumes and the rights of the rendered pod.
An image is a folder with the files of its release. Resources are not carried out.
"""

from __future__ import annotations

import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from tests.integration.kubernetes.pod_template import Container, Pod, Probe
from tests.integration.kubernetes.sandbox import Sandbox

INIT_SECONDS_MAX = 120.0
PATH = f"{Path(sys.prefix).resolve()}/bin:/usr/local/bin:/usr/bin:/bin"
RESTARTS_MAX = 3
"""A kubelet goes on; here nobody mends what is wrong."""
_PAUSE_S = 0.05
_UNCHECKED = ssl.create_default_context()
_UNCHECKED.check_hostname = False
_UNCHECKED.verify_mode = ssl.CERT_NONE


class RunningPod:
    """One pod from its creation to its end. Any thread.

    ``is_ready`` is the result of the readiness probe, ``restarts`` how often the container ended or
    its liveness probe failed, ``problem`` why the pod is given up, ``events`` when readiness was
    lost.
    """

    def __init__(self, pod: Pod, volumes: Path, secrets: Path) -> None:
        """Make the sandbox; nothing runs yet. ``volumes`` keeps a folder per pod and volume."""
        self.pod = pod
        self.problem = ""
        self.events: list[str] = []
        self.is_ready = False
        self.ready_since = 0.0
        self.restarts = 0
        self.pre_stop_output = ""
        self.log_path = volumes / f"{pod.name}.log"
        self._volumes = volumes
        self._secrets = secrets
        self.refresh()
        self.sandbox = Sandbox(
            pod.name,
            {path: each.place(volumes, pod.name) for path, each in pod.mounts.items()},
            is_read_only=pod.main.is_root_read_only,
            read_only=pod.read_only,
            programs={each.release for each in (*pod.first, pod.main)},
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ending = threading.Event()
        self._thread = threading.Thread(target=self._sync, name=pod.name, daemon=True)

    @property
    def address(self) -> str:
        return self.sandbox.address

    def refresh(self) -> None:
        """Bring what Secrets have by now to the pod's volumes."""
        for each in self.pod.mounts.values():
            each.fill(self._volumes, self.pod.name, self.pod.user, self._secrets)

    def execute(
        self, words: Sequence[str], timeout: float | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command beside the first process, as ``kubectl exec`` does."""
        return subprocess.run(
            self._inside(words),
            env=_environment(self.pod.main),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def rights(self) -> dict[str, str]:
        """What the kernel says about the container's process: users, groups, capabilities."""
        assert self._process is not None
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return dict(line.split(":\t", 1) for line in lines if ":\t" in line)

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
            done = self.execute(self.pod.main.pre_stop, self.pod.grace_s)
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

    def _inside(self, words: Sequence[str]) -> list[str]:
        return self.sandbox.command(self.pod.user.command(words))

    def _sync(self) -> None:
        with self.log_path.open("ab") as log:
            for container in self.pod.first:
                done = subprocess.run(
                    self._inside(container.command),
                    env=_environment(container),
                    stdout=log,
                    stderr=log,
                    timeout=INIT_SECONDS_MAX,
                    check=False,
                )
                if done.returncode != 0:
                    self.problem = f"{container.name} ended with {done.returncode}"
                    return
            while not self._is_ending.is_set():
                if self.restarts > RESTARTS_MAX:
                    self.problem = f"restarted {RESTARTS_MAX} times"
                    return
                self._process = subprocess.Popen(
                    self._inside(self.pod.main.command),
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
                answer = self._ask(probe)
                is_ok = not answer
                failures[name] = 0 if is_ok else failures[name] + 1
                if name == "readiness" and is_ok and not self.is_ready:
                    self.ready_since = time.monotonic()
                    self.is_ready = True
                elif failures[name] >= probe.failures_max:
                    if name == "liveness":
                        return
                    if self.is_ready:
                        self.events.append(f"{self.pod.name} is not ready any more: {answer}")
                    self.is_ready = False

    def _probe_until(self, process: subprocess.Popen[bytes], probe: Probe) -> bool:
        """Whether the startup probe succeeded in time."""
        for _ in range(probe.failures_max):
            if process.poll() is not None:
                return False
            if not self._ask(probe):
                return True
            if self._is_ending.wait(probe.period_s):
                return False
        return False

    def _ask(self, probe: Probe) -> str:
        """Why the probe failed; empty if it did not."""
        url = f"{probe.scheme}://{self.address}:{probe.port}{probe.path}"
        context = _UNCHECKED if probe.scheme == "https" else None
        try:
            with urllib.request.urlopen(url, timeout=probe.timeout_s, context=context) as answer:
                return "" if 200 <= answer.status < 400 else f"status {answer.status}"
        except urllib.error.HTTPError as error:
            return f"{error}: {error.read(500)!r}"
        except OSError as error:
            return f"no answer: {error}"


def _environment(container: Container) -> dict[str, str]:
    return {
        **container.environment,
        "PATH": PATH,
        "PYTHONPATH": str(container.release),
        "HOME": "/",
    }
