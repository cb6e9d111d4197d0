"""Logging without floods: the same complaint at most once a minute, with a count."""

from __future__ import annotations

import logging

from quorum.transport.limits import REPEATED_LOG_S

_REMEMBERED_MAX = 256


class Complaints:
    """Decides which repetitions reach the log. Times are the event loop's seconds."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._said: dict[tuple[str, str], tuple[float, int]] = {}

    def complain(self, about: str, problem: str, now: float) -> None:
        """Log ``problem`` unless it was logged about the same subject a short while ago."""
        last, suppressed = self._said.get((about, problem), (-REPEATED_LOG_S, 0))
        if now - last < REPEATED_LOG_S:
            self._said[about, problem] = (last, suppressed + 1)
            return
        if len(self._said) >= _REMEMBERED_MAX:
            # Peers choose some of these words, so the memory is bounded; forgetting costs a line.
            self._said.clear()
        self._said[about, problem] = (now, 0)
        more = f" repeated={suppressed}" if suppressed else ""
        self._logger.warning("%s: %s%s", about, problem, more)

    def settle(self, about: str) -> None:
        """The subject is well again: its next complaint is logged at once."""
        for key in [key for key in self._said if key[0] == about]:
            del self._said[key]
