"""Producers and their sequence numbers: which command goes under which number, and when.

A lane is one producer. The server keeps answers for a window of ``PRODUCER_WINDOW`` sequence
numbers per producer, so a lane never has an open number that far above its oldest open one;
more concurrent writers need more lanes. A number, once sent, belongs to its command for ever.

Pure bookkeeping: no I/O, no clock. See: KIP-360, ADR 10.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from quorate.client.limits import PRODUCER_WINDOW, SEQUENCE_MAX

CommandT = TypeVar("CommandT")


class ProducerSession(Generic[CommandT]):
    """One producer and its open commands, by sequence number, ascending."""

    __slots__ = ("is_retired", "next_sequence", "open", "producer_epoch", "producer_id", "window")

    def __init__(
        self, producer_id: int, producer_epoch: int, *, window: int = PRODUCER_WINDOW
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.window = window
        self.next_sequence = 0
        self.open: dict[int, CommandT] = {}
        self.is_retired = False

    @property
    def oldest_open(self) -> int:
        """The lowest open number; the next one to be given when none is open."""
        for sequence in self.open:
            return sequence
        return self.next_sequence

    @property
    def has_room(self) -> bool:
        """Whether one more command may be given a number now."""
        if self.is_retired or self.next_sequence > SEQUENCE_MAX:
            return False
        return not self.open or self.next_sequence - next(iter(self.open)) < self.window

    def admit(self, command: CommandT) -> int:
        """Give ``command`` the next number. The lane must have room."""
        sequence = self.next_sequence
        self.next_sequence = sequence + 1
        self.open[sequence] = command
        return sequence

    def settle(self, sequence: int) -> None:
        """The command under that number is answered or given up; unknown numbers do nothing."""
        self.open.pop(sequence, None)


class ProducerSessions(Generic[CommandT]):
    """The producers of one client and how many more it wants."""

    def __init__(self, *, producer_sessions_max: int) -> None:
        if producer_sessions_max < 1:
            raise ValueError(
                f"producer_sessions_max must be at least 1, not {producer_sessions_max}"
            )
        self._producer_sessions_max = producer_sessions_max
        self._producer_sessions: list[ProducerSession[CommandT]] = []
        self.opening = 0
        """Producers asked for and not yet given."""

    def __len__(self) -> int:
        return len(self._producer_sessions)

    def with_room(self) -> ProducerSession[CommandT] | None:
        """A lane that can take a command; the first such, so that messages have few groups."""
        for producer_session in self._producer_sessions:
            if producer_session.has_room:
                return producer_session
        return None

    def wanted(self, waiting: int, window: int) -> int:
        """How many more producers to ask for, with ``waiting`` commands that found no room."""
        self._producer_sessions = [
            producer_session
            for producer_session in self._producer_sessions
            if producer_session.open or not _is_spent(producer_session)
        ]
        missing = -(-waiting // window) - self.opening
        return max(
            0,
            min(missing, self._producer_sessions_max - len(self._producer_sessions) - self.opening),
        )

    def add(self, producer_session: ProducerSession[CommandT]) -> None:
        """A producer was given."""
        self._producer_sessions.append(producer_session)

    def retire(self, producer_session: ProducerSession[CommandT]) -> None:
        """The cluster no longer knows this producer: nothing new goes under it."""
        producer_session.is_retired = True


def _is_spent(producer_session: ProducerSession[CommandT]) -> bool:
    return producer_session.is_retired or producer_session.next_sequence > SEQUENCE_MAX
