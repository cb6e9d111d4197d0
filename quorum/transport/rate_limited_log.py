"""Log without floods: one line per change, then a count at most once a minute.

A subject (a peer, a caller) is healthy, or has a problem described in words. The log gets a line
when a problem begins, when another one replaces it and when the subject recovers. Repetitions are
counted. Problems that alternate get one line each, and each has its own count.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from quorum.transport.limits import REPEATED_LOG_S

_REMEMBERED_MAX = 256


@dataclass(slots=True)
class _Logged:
    """When one problem was last logged, and how often it was suppressed since."""

    at: float
    suppressed: int = 0


class RateLimitedLog:
    """Decides which repetitions reach the log. Times are the event loop's seconds.

    ``logger`` gets a warning for each problem that is logged, and an info line at each recovery.
    Each record has its parts as ``event_fields`` for a log that has fields.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._logged: dict[tuple[str, str], _Logged] = {}

    def warn(self, about: str, problem: str, now: float) -> None:
        """Log ``problem``, unless the same subject had it logged within ``REPEATED_LOG_S``."""
        logged = self._logged.get((about, problem))
        if logged is not None and now - logged.at < REPEATED_LOG_S:
            logged.suppressed += 1
            return
        if len(self._logged) >= _REMEMBERED_MAX:
            # Peers choose some of these words, so the memory is bounded; clearing costs one line.
            self._logged.clear()
        self._logged[about, problem] = _Logged(now)
        again = logged.suppressed + 1 if logged is not None else 0
        more = f" (again {again} times in {now - logged.at:.0f} s)" if logged is not None else ""
        found = {"event": "connection_problem", "about": about, "problem": problem, "again": again}
        self._logger.warning("%s: %s%s", about, problem, more, extra={"event_fields": found})

    def settle(self, about: str, recovery: str) -> None:
        """Log the recovery of a subject that had a problem; its next problem is logged at once."""
        problems = [key for key in self._logged if key[0] == about]
        if not problems:
            return
        suppressed = sum(self._logged[key].suppressed for key in problems)
        for key in problems:
            del self._logged[key]
        more = f" (after {suppressed} more failures)" if suppressed else ""
        found = {"event": "connection_well", "about": about, "failures": suppressed}
        self._logger.info("%s: %s%s", about, recovery, more, extra={"event_fields": found})
