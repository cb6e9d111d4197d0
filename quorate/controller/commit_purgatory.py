"""Answers that may not leave yet: they rest on an offset, or on still being the leader.

What is evaluated or read without appending anything proves nothing about who leads now. Such
answers, and linearizable reads, wait for a *round*: a confirmation of leadership that begins
after they came (ADR 9). Everybody of one turn of the loop shares a round. Reads may be
confirmed by any leader; answers only by this node, which evaluated them, in the same leadership
term.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import TypeAlias

from quorate.controller.answer_delivery import AnswerDelivery
from quorate.controller.requests import PendingCommand

OnOutcome: TypeAlias = Callable[[int | None], None]
"""Told the offset to read at (everything below it must be applied), None when not confirmed."""


class CommitPurgatory:
    """Owned by the controller and its thread. Answers leave in the order of their offsets."""

    def __init__(self, reads_max: int, delivery: AnswerDelivery) -> None:
        self._delivery = delivery
        self._reads_max = reads_max
        self._reads_count = 0
        self.arrived: list[OnOutcome] = []
        """Reads that wait for a round to begin."""
        self._rounds: dict[int, tuple[list[OnOutcome], list[PendingCommand]]] = {}
        self._last_token = 0
        self._held: list[tuple[int, int, PendingCommand]] = []
        self._held_count = 0

    def add_read(self, on_outcome: OnOutcome) -> bool:
        """Take a linearizable read for the next round; False when too many are waiting."""
        if self._reads_count >= self._reads_max:
            return False
        self._reads_count += 1
        self.arrived.append(on_outcome)
        return True

    def begin_round(self, unproven: Sequence[PendingCommand] = ()) -> int:
        """The token of a round for all reads that have arrived, and for these answers."""
        self._last_token += 1
        self._rounds[self._last_token] = (self.arrived, list(unproven))
        self.arrived = []
        return self._last_token

    def end_round(self, token: int) -> tuple[list[OnOutcome], list[PendingCommand]]:
        """The reads and answers that waited for a round; empty when it is not known (any more)."""
        reads, unproven = self._rounds.pop(token, ([], []))
        self._reads_count -= len(reads)
        return reads, unproven

    def hold(self, answers: Sequence[PendingCommand]) -> None:
        """Keep proven answers until the image has reached their offsets."""
        for pending in answers:
            self._held_count += 1
            heapq.heappush(self._held, (pending.rests_on, self._held_count, pending))

    def release(self, end_offset: int) -> None:
        """Let every answer leave that rests on nothing at or above ``end_offset``."""
        held = self._held
        if not held or held[0][0] > end_offset:
            return
        released: list[PendingCommand] = []
        while held and held[0][0] <= end_offset:
            released.append(heapq.heappop(held)[2])
        self._delivery.send(released)

    def take_answers(self) -> list[PendingCommand]:
        """Leadership is lost: every answer that waits, oldest first. Reads wait on."""
        answers = [entry[2] for entry in sorted(self._held, key=lambda entry: entry[:2])]
        self._held.clear()
        for token, (reads, unproven) in self._rounds.items():
            answers.extend(unproven)
            self._rounds[token] = (reads, [])
        return answers
