"""Processes that run mutants: their output, and the result of one that has ended."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import psutil

from tests.mutation.mutants import Mutant


@dataclass(slots=True, eq=False)
class Child:
    """A process that runs one mutant."""

    pid: int
    reader: int
    mutant: Mutant
    names: list[str]
    """Tests, then seeds, in the order of their runs."""
    wall_seconds: float
    """Wall-clock limit of one test."""
    is_again: bool
    output: bytes = b""
    last_contact_at: float = field(default_factory=time.perf_counter)
    cpu_seconds: float = 0.0
    """Processor seconds used at the last check."""
    has_timed_out: bool = False

    def has_worked(self) -> bool:
        """Return whether it used processor time since the last check; its limit then restarts."""
        times = psutil.Process(self.pid).cpu_times()
        used = times.user + times.system
        has_worked = used > self.cpu_seconds
        self.cpu_seconds = used
        if has_worked:
            self.last_contact_at = time.perf_counter()
        return has_worked


def ended(running: Sequence[Child]) -> list[Child]:
    """Wait up to a second for reports; return the children that have ended."""
    ready, _, _ = select.select([each.reader for each in running], [], [], 1.0)
    now, over = time.perf_counter(), []
    for child in running:
        if child.reader in ready:
            data = os.read(child.reader, 1 << 16)
            child.output += data
            child.last_contact_at = now
            if not data:
                over.append(child)
        elif now - child.last_contact_at > child.wall_seconds and not child.has_worked():
            # By the clock only, which proves nothing about the mutant.
            os.kill(child.pid, signal.SIGKILL)
            child.has_timed_out = True
            over.append(child)
    return over


def outcome(output: Sequence[str], wait_status: int, *, timed_out: bool) -> tuple[str, str]:
    """Return the status of a mutant and the test that decided, from what its process left.

    ``timeout``: a test used up its processor time. ``unfinished``: no test failed within the budget
    of the first stage. ``unknown``: only the clock ran out, or the
    process was killed from outside. ``error``: not one test was begun.
    """
    lines = [each for each in output if each]
    if not lines:
        return "error", ""
    last = lines[-1]
    if last in ("killed", "survived", "unfinished", "error"):
        return last, lines[-2] if len(lines) > 1 else ""
    if timed_out:
        return "unknown", last
    if os.WIFSIGNALED(wait_status):
        by = os.WTERMSIG(wait_status)
        if by == signal.SIGPROF:
            return "timeout", last
        return ("unknown" if by == signal.SIGKILL else "crashed"), last
    return "crashed", last
