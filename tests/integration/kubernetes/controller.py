"""Keeps a set of pods as Kubernetes' controller of StatefulSets does, and publishes their names."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tests.integration.kubernetes.kubelet import RunningPod
from tests.integration.kubernetes.pod_template import PodSet
from tests.integration.kubernetes.sandbox import publish

PATIENCE_S = 180.0
_PAUSE_S = 0.05


class Controller:
    """Used by one thread. ``statuses`` has the exit code of each pod that was stopped.

    ``unready_max`` is how many pods of the release that the last update brought were not ready at a
    time; pods of the one before are not this release's affair. ``events`` are all of them that
    were ready and then not.
    """

    def __init__(self, wanted: PodSet, folder: Path, secrets: Path) -> None:
        self.wanted = wanted
        self.running: dict[int, RunningPod] = {}
        self.statuses: list[int] = []
        self.pre_stops: list[str] = []
        self.unready_max = 0
        self.events: list[str] = []
        self._folder = folder
        self._secrets = secrets

    def create_all(self) -> None:
        """Start every pod: all at once, or each when the one before is ready."""
        for pod in self.wanted.pods:
            if pod.ordinal not in self.running:
                self._create(pod.ordinal)
                if not self.wanted.is_parallel:
                    self.wait_available(pod.ordinal)

    def wait_available(self, *ordinals: int) -> None:
        """Wait until these pods have been ready for ``minReadySeconds``."""
        for ordinal in ordinals:
            self._until(
                f"pod {ordinal} available",
                lambda pod=self.running[ordinal]: (
                    pod.is_ready and time.monotonic() - pod.ready_since >= self.wanted.min_ready_s
                ),
            )

    def lose(self, ordinal: int) -> None:
        """Lose a pod with its machine; it comes back on its volume, with another address."""
        old = self.running.pop(ordinal)
        old.lose()
        self._create(ordinal)
        assert self.running[ordinal].address != old.address

    def roll(self, wanted: PodSet) -> None:
        """Replace pods one at a time, the highest number first, each when the last is available."""
        assert wanted.fixed == self.wanted.fixed, "Kubernetes refuses this update"
        self.wanted = wanted
        self.unready_max = 0
        for ordinal in sorted(self.running, reverse=True):
            self._delete(ordinal)
            self._create(ordinal)
            self.wait_available(ordinal)

    def refresh_secrets(self) -> None:
        """Let every pod see Secrets as they are by now."""
        for each in self.running.values():
            each.refresh()

    def scale(self, wanted: PodSet) -> None:
        """Create pods that are missing, or stop those beyond, the highest number first."""
        assert wanted.fixed == self.wanted.fixed, "Kubernetes refuses this update"
        for ordinal, pod in self.running.items():
            if ordinal < len(wanted.pods):
                assert wanted.pods[ordinal] == pod.pod, "scaling alone replaces no pod"
        self.wanted = wanted
        for ordinal in sorted(self.running, reverse=True):
            if ordinal >= len(wanted.pods):
                self._delete(ordinal)
        self.create_all()

    def stop_all(self) -> None:
        for ordinal in sorted(self.running, reverse=True):
            self._delete(ordinal)

    def _create(self, ordinal: int) -> None:
        pod = RunningPod(self.wanted.pods[ordinal], self._folder, self._secrets)
        self.running[ordinal] = pod
        if self.wanted.publishes_not_ready:
            self._publish()
        pod.start()

    def _delete(self, ordinal: int) -> None:
        pod = self.running[ordinal]
        self.statuses.append(pod.stop())
        self.pre_stops.append(pod.pre_stop_output)
        del self.running[ordinal]
        self._publish()

    def _publish(self) -> None:
        publish(
            self._folder,
            {
                pod.pod.host_name: pod.address
                for pod in self.running.values()
                if pod.is_ready or self.wanted.publishes_not_ready
            },
        )

    def _until(self, what: str, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_S:g} s"
            unready = [pod for pod in self.running.values() if not pod.is_ready]
            updated = [pod for pod in unready if pod.pod in self.wanted.pods]
            self.unready_max = max(self.unready_max, len(updated))
            self.events += [
                event for pod in unready for event in pod.events if event not in self.events
            ]
            problems = {pod.pod.name: pod.problem for pod in unready if pod.problem}
            assert not problems, f"{what}: {problems}"
            time.sleep(_PAUSE_S)
            if not self.wanted.publishes_not_ready:
                self._publish()
