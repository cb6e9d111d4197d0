"""Check watches against the log: every change once, in order, without a gap.

A watcher begins with a state or with ``resume``. From there each batch begins where the previous
one ended; only the first batch after a resume may begin earlier, because a batch is delivered
whole. Progress never exceeds what was delivered. If the server refuses a resume, the offset must be
below the readable range, and the watcher continues with a state inside that range. The server must
never report divergence, because watchers hold committed records only.
"""

from __future__ import annotations

from history.history import Delivery, History, LogBatch
from history.violation import Violation


def watch_violations(history: History) -> list[Violation]:
    """Return the deliveries that contradict the log, one another or their order."""
    by_base = {batch.base: batch for batch in history.log}
    followers: dict[str, _Follower] = {}
    violations = []
    states: dict[int, str] = {}
    for each in history.deliveries:
        follower = followers.setdefault(each.watcher, _Follower())
        problem = follower.take(each, by_base, history)
        if problem is None and each.what == "state" and each.digest:
            problem = _differs(each, states.setdefault(each.end, each.digest))
        if problem:
            rule, text = problem
            violations.append(Violation(rule, each.watcher, text))
    return violations


def _differs(state: Delivery, first: str) -> tuple[str, str] | None:
    if state.digest == first:
        return None
    return "watch-state", f"the state at {state.end} differs from that of another watcher there"


class _Follower:
    """Position and expectations of one watcher."""

    def __init__(self) -> None:
        self._end = -1
        self._has_resumed = False
        self._progress = -1
        self._readable = -1
        """First readable offset, as the server reported in its last refusal."""

    def take(
        self, each: Delivery, by_base: dict[int, LogBatch], history: History
    ) -> tuple[str, str] | None:
        if each.what == "batch":
            return self._batch(each, by_base, history)
        if each.what == "progress":
            return self._take_progress(each)
        if each.what == "resume":
            return self._resume(each)
        if each.what == "state":
            return self._state(each)
        if each.what == "refused":
            return self._refused(each)
        if each.what == "diverged":
            return "watch-diverged", f"the server reported divergence at {each.end}"
        return "watch-unknown", f"delivery of unknown kind: {each.what}"

    def _state(self, each: Delivery) -> tuple[str, str] | None:
        before, self._end = self._end, each.end
        self._has_resumed = False
        self._progress = max(self._progress, each.end)
        readable, self._readable = self._readable, -1
        if each.end < before:
            return "watch-back", f"a state at {each.end} after changes up to {before}"
        if each.end < readable:
            return "watch-back", f"a state at {each.end}, though the log begins at {readable}"
        return None

    def _refused(self, each: Delivery) -> tuple[str, str] | None:
        self._readable = each.base
        if each.base > each.end:
            return "watch-refused", f"the readable range [{each.base}, {each.end}) is empty"
        if self._end >= each.base:
            return (
                "watch-refused",
                f"resume at {self._end} was refused, but the log begins at {each.base}",
            )
        return None

    def _resume(self, each: Delivery) -> tuple[str, str] | None:
        before, self._end = self._end, each.end
        self._has_resumed = True
        if before >= 0 and each.end != before:
            return "watch-resume", f"resumed at {each.end}, but had received all up to {before}"
        return None

    def _take_progress(self, each: Delivery) -> tuple[str, str] | None:
        before, self._progress = self._progress, max(self._progress, each.end)
        if each.end > self._end:
            return "watch-progress", f"progress is {each.end}, but only {self._end} was delivered"
        if each.end < before:
            return "watch-progress", f"progress went back from {before} to {each.end}"
        return None

    def _batch(
        self, each: Delivery, by_base: dict[int, LogBatch], history: History
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
