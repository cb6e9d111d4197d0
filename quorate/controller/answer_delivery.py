"""Sending the answers of commands, and counting them.

Commands of one receiver that are answered together get their answers in one call: a message of
commands is committed as a whole, and a call for each of them would cost more than its content.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from quorate.controller.requests import PendingCommand
from quorum.errors import ErrorCode

AnswerCounts: TypeAlias = dict[tuple[str, ErrorCode], int]
"""Answered commands by the name of their type and the code of the answer."""


class AnswerDelivery:
    """Sends answers to their receivers and counts them. Owned by the controller's thread."""

    def __init__(self) -> None:
        self._counts: AnswerCounts = {}

    def send(self, answered: Sequence[PendingCommand]) -> None:
        """Call each receiver with its answers; the order of the answers is kept."""
        self._count(answered)
        first, count = 0, len(answered)
        while first < count:
            on_answers = answered[first].on_answers
            end = first + 1
            while end < count and answered[end].on_answers is on_answers:
                end += 1
            on_answers(answered if end - first == count else answered[first:end])
            first = end

    def take_counts(self) -> AnswerCounts:
        """Return how many commands were answered since the last call."""
        counts, self._counts = self._counts, {}
        return counts

    def _count(self, answered: Sequence[PendingCommand]) -> None:
        """Count by runs of equal keys, because most commands have the key of the one before."""
        counts = self._counts
        kind, code, run = None, ErrorCode.NONE, 0
        for pending in answered:
            if pending.kind is kind and pending.answer.code is code:
                run += 1
                continue
            if kind is not None:
                key = (kind.__name__, code)
                counts[key] = counts.get(key, 0) + run
            kind, code, run = pending.kind, pending.answer.code, 1
        if kind is not None:
            key = (kind.__name__, code)
            counts[key] = counts.get(key, 0) + run
