"""The thread that reads the node's own files in the background, pass after pass.

A thread of its own, so that the disk's writer never waits for it; small paced reads, so that the
disk hardly notices. Everything that follows of a finding happens on the driver's thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from functools import partial
from typing import Final, NoReturn, TypeVar

from quorate.config.sections import ScrubConfig
from quorate.replica.host import ReplicaHost
from quorate.replica.paced_files import Pace, PacedFiles, PacedStop
from quorate.replica.replica import Replica
from quorate.replica.scrub import act_on, scrub, target_of

_FIRST_PAUSE_S_MAX: Final = 3600.0
_AFTER_FINDING_S_MAX: Final = 600.0
"""A finding that could not be acted on is checked and reported again after at most this time."""
_ANSWER_S: Final = 0.5
_log = logging.getLogger(__name__)
Answer = TypeVar("Answer")


def pause_s(config: ScrubConfig, share: float, *, is_first: bool, has_findings: bool) -> float:
    """How long until the next pass begins. Pure; ``share`` is a random number of [0, 1).

    Drawn from the upper half of the pause, so that replicas do not read in step, and at most an
    hour for the first, so that a node that is restarted daily is scrubbed as well.
    """
    longest = config.pause_ms / 1000
    if is_first:
        longest = min(longest, _FIRST_PAUSE_S_MAX)
    elif has_findings:
        longest = min(longest, _AFTER_FINDING_S_MAX)
    return longest * (1 + share) / 2


class Scrubber:
    """One per server. ``start`` once; ``stop``, which any thread may call, at any time and again.

    What fails and is no finding goes to ``host.on_failure``: the node must stop.
    """

    def __init__(self, replica: Replica, host: ReplicaHost, config: ScrubConfig) -> None:
        self._replica = replica
        self._host = host
        self._config = config
        self._files = PacedFiles(host.fs, Pace(max(1, config.bytes_per_second), time.monotonic))
        self._thread = threading.Thread(target=self._run, name="scrub", daemon=True)
        self.ended: Future[None] = Future()
        """Done while nothing is read: before ``start``, and after the end, with what failed."""
        self.ended.set_result(None)
        self.passes = self.findings = 0
        self._done_at = -1.0

    @property
    def read_bytes(self) -> int:
        """Read since the start; any thread may look."""
        return self._files.read_bytes

    @property
    def age_seconds(self) -> float:
        """Since a pass was complete; -1 for never."""
        return time.monotonic() - self._done_at if self._done_at >= 0 else -1.0

    def start(self) -> None:
        """Begin, unless it is switched off."""
        if self._config.bytes_per_second > 0:
            self.ended = Future()
            self._thread.start()

    def stop(self) -> None:
        """End at the next piece; returns at once. ``ended`` is done when the thread has ended."""
        self._files.stop()

    def _run(self) -> None:
        try:
            self._pass_after_pass()
        except PacedStop:
            self.ended.set_result(None)
        except BaseException as error:  # noqa: BLE001 - a failure of the thread must be reported
            self._host.to_driver(partial(self._host.on_failure, error))
            self.ended.set_exception(error)

    def _pass_after_pass(self) -> NoReturn:
        is_first, findings = True, 0
        while not self._files.pause(
            pause_s(
                self._config,
                self._host.rng.random(),
                is_first=is_first,
                has_findings=findings > 0,
            )
        ):
            findings = self._pass()
            is_first = False
        raise PacedStop

    def _pass(self) -> int:
        """One pass; how much was found."""
        began, before = time.monotonic(), self._files.read_bytes
        target = self._on_driver(lambda: target_of(self._replica))
        findings = scrub(self._files, target)
        for finding in findings:
            self.findings += 1
            _log.error("event=scrub_found cause=%s", finding.cause)
            self._on_driver(partial(act_on, self._replica, finding))
        self.passes += 1
        self._done_at = time.monotonic()
        _log.info(
            "event=scrub_done bytes=%d seconds=%.1f findings=%d",
            self._files.read_bytes - before, self._done_at - began, len(findings),
        )  # fmt: skip
        return len(findings)

    def _on_driver(self, call: Callable[[], Answer]) -> Answer:
        """Make a call on the driver's thread and return its result. What it raises ends
        the node, there as here.

        Raises:
            PacedStop: Told to stop meanwhile.
        """
        answer: Future[Answer] = Future()

        def make() -> None:
            try:
                answer.set_result(call())
            except BaseException as error:
                answer.set_exception(error)
                # The waiting task may have been cancelled.
                raise

        self._host.to_driver(make)
        while not wait_for((answer,), _ANSWER_S).done:
            if self._files.pause(0):
                raise PacedStop
        return answer.result()
