"""When the answers to local reads of one stream leave: with others, if others are about to come.

A local read is answered in the turn that reads it. With many readers on a stream, each small
message with a few answers wakes a few readers, whose next queries are small messages again. So the
answers wait until as many are ready as the last message had: then all readers that the last message
woke have come back, and further ones are unlikely. A message that has waited in vain lowers that
number by a quarter only: after a pause of the client the first message has few answers, and must
not be followed by small ones for ever.

Whether there are more readers than the last message had is found by trials: now and then a message
waits for ``HOLD_SECONDS_MAX``, whatever it has. A trial that finds nobody makes the next one rarer.
So a lone reader, whose messages have one answer each, waits in one of ``_TRIAL_EVERY_MAX`` reads.
"""

from __future__ import annotations

from typing import Final

HOLD_SECONDS_MAX: Final = 0.001
"""Longest time that an answer waits for others, if the loop is not late. Timers have no finer
steps."""
BUSY_SECONDS: Final = 0.001
"""Nothing is held on a stream whose messages arrive in larger intervals."""
_TRIAL_EVERY_MIN: Final = 8
_TRIAL_EVERY_MAX: Final = 1024


class AnswerGathering:
    """The decisions for one stream. Reads no clock and sets no timer."""

    __slots__ = ("_arrived_at", "_every", "_expected", "_is_busy", "_is_trial", "_until_trial")

    def __init__(self) -> None:
        self._expected = 1
        self._every = self._until_trial = _TRIAL_EVERY_MIN
        self._is_trial = False
        self._arrived_at = -1.0
        self._is_busy = False

    def arrived(self, now: float) -> None:
        """Record that a message of queries arrived; ``now`` in seconds."""
        self._is_busy = now - self._arrived_at < BUSY_SECONDS
        self._arrived_at = now

    def holds(self, ready: int) -> bool:
        """Return whether a message with ``ready`` answers waits for more."""
        return self._is_busy and (self._is_trial or ready < self._expected)

    def timed_out(self, answers: int) -> None:
        """Record that a message with so many answers has waited for ``HOLD_SECONDS_MAX``."""
        if self._is_trial:
            is_fruitful = answers > self._expected
            self._every = (
                _TRIAL_EVERY_MIN if is_fruitful else min(2 * self._every, _TRIAL_EVERY_MAX)
            )
        self._expected = max(answers, self._expected * 3 // 4)

    def sent(self, answers: int) -> None:
        """Record that a message with so many answers left."""
        self._expected = max(self._expected, answers)
        if self._is_trial:
            self._until_trial = self._every
        self._until_trial -= 1
        self._is_trial = self._until_trial == 0
