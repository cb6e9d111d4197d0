"""Watches against the log: every change once, in order, without a gap, and progress never ahead.

A watcher begins with a state or with ``resume``; from there on each batch begins where the last
one ended. The first batch after a resume may begin earlier: one that was resumed inside is handed
out whole.
"""

from __future__ import annotations

from quorate.history.history import Handed, History, LogBatch
from quorate.history.violation import Violation


def watch_violations(history: History) -> list[Violation]:
    """What watchers were handed and should not have been, or not so."""
    by_base = {batch.base: batch for batch in history.log}
    followers: dict[str, _Follower] = {}
    violations = []
    for each in history.handed:
        follower = followers.setdefault(each.watcher, _Follower())
        problem = follower.take(each, by_base, history)
        if problem:
            rule, text = problem
            violations.append(Violation(rule, each.watcher, text))
    return violations


class _Follower:
    """Where one watcher is."""

    def __init__(self) -> None:
        self._end = -1
        self._has_resumed = False
        self._progress = -1

    def take(
        self, each: Handed, by_base: dict[int, LogBatch], history: History
    ) -> tuple[str, str] | None:
        if each.what == "batch":
            return self._batch(each, by_base, history)
        if each.what == "progress":
            return self._take_progress(each)
        if each.what == "resume":
            return self._resume(each)
        if each.what == "state":
            return self._state(each)
        return "watch-unknown", f"handed something unknown: {each.what}"

    def _state(self, each: Handed) -> tuple[str, str] | None:
        before, self._end = self._end, each.end
        self._has_resumed = False
        self._progress = max(self._progress, each.end)
        if each.end < before:
            return "watch-back", f"a state at {each.end} after changes up to {before}"
        return None

    def _resume(self, each: Handed) -> tuple[str, str] | None:
        before, self._end = self._end, each.end
        self._has_resumed = True
        if before >= 0 and each.end != before:
            return "watch-resume", f"resumed at {each.end}, although it had all up to {before}"
        return None

    def _take_progress(self, each: Handed) -> tuple[str, str] | None:
        before, self._progress = self._progress, max(self._progress, each.end)
        if each.end > self._end:
            return "watch-progress", f"progress says {each.end}, handed out was up to {self._end}"
        if each.end < before:
            return "watch-progress", f"progress went back from {before} to {each.end}"
        return None

    def _batch(
        self, each: Handed, by_base: dict[int, LogBatch], history: History
    ) -> tuple[str, str] | None:
        before, self._end = self._end, max(self._end, each.end)
        may_overlap, self._has_resumed = self._has_resumed, False
        if before < 0:
            return "watch-start", f"changes from {each.base} before any state"
        if each.base > before:
            return "watch-gap", f"changes from {each.base} follow offset {before}"
        if each.base < before and not (may_overlap and each.base < before < each.end):
            return "watch-repeat", f"changes from {each.base} follow offset {before}"
        batch = by_base.get(each.base)
        if batch is None:
            is_covered = bool(history.log) and not history.is_unread(each.base)
            return ("watch-ghost", f"no batch begins at {each.base}") if is_covered else None
        if (batch.end, batch.epoch, batch.digest) != (each.end, each.epoch, each.digest):
            return (
                "watch-differs",
                f"[{each.base}, {each.end}) of epoch {each.epoch} is not what the log holds: "
                f"[{batch.base}, {batch.end}) of epoch {batch.epoch}",
            )
        return None
