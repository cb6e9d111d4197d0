"""Producers and their sequence numbers: which command gets which number, and when.

A producer session is one producer. The server keeps answers for a window of ``PRODUCER_WINDOW``
sequence numbers per producer, so a session never has an open number that far above its oldest open
one; more concurrent writers need more sessions. A number, once sent, belongs to its command for
ever.

Pure bookkeeping: no I/O, no clock. See: KIP-360, ADR 10.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from quorate.client.errors import ClientError, RefusedError, refused
from quorate.client.limits import PRODUCER_WINDOW, SEQUENCE_MAX
from quorum.v1 import common_pb2
from quorum.v1.commands_pb2 import InitProducerId
from quorum.v1.metadata_pb2 import WriteAnswer

CommandT = TypeVar("CommandT")

PRODUCER_SESSIONS_MAX = 64
"""Most producers of one client: with 32 commands each, 2048 writers at a time."""


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
        """Give ``command`` the next number. The session must have room."""
        sequence = self.next_sequence
        self.next_sequence = sequence + 1
        self.open[sequence] = command
        return sequence

    def settle(self, sequence: int) -> None:
        """Free the number: its command is answered or given up; unknown numbers are ignored."""
        self.open.pop(sequence, None)


class ProducerSessions(Generic[CommandT]):
    """The producers of one client, and how many more it needs."""

    name = ""
    """The writer's name; empty for none."""
    is_ordered = False
    """Whether the first write that fails makes all later ones fail."""

    def __init__(self, *, producer_sessions_max: int) -> None:
        if producer_sessions_max < 1:
            raise ValueError(
                f"producer_sessions_max must be at least 1, not {producer_sessions_max}"
            )
        self._producer_sessions_max = producer_sessions_max
        self._producer_sessions: list[ProducerSession[CommandT]] = []
        self.opening = 0
        """Number of producers requested and not yet received."""
        self.failure: ClientError | None = None
        """Why every new write fails: an earlier one did, or another process has the name."""
        self.forgotten: RefusedError | None = None
        """Why no position is committed: the name was forgotten, and may have had another owner."""

    def refusal(
        self, producer_session: ProducerSession[CommandT] | None, answer: WriteAnswer
    ) -> RefusedError:
        """Return the error of a refused command of that session."""
        del producer_session
        known = answer.producer if answer.HasField("producer") else None
        return refused(answer.error_code, answer.message, producer=known)

    def init_refused(self, refusal: RefusedError) -> RefusedError:
        """Return the error of a refused request for a producer."""
        return refusal

    def is_hole(self, code: int, *, was_oldest: bool) -> bool:
        """Whether a command is out of order, and no open one will fill the hole before it.

        ``was_oldest``: of all open ones, when it was sent. If it became the oldest later, the one
        before it may have been evaluated behind it, and its answer may have come first.
        """
        is_out_of_order = code == common_pb2.ERROR_CODE_OUT_OF_ORDER_SEQUENCE_NUMBER
        return self.is_ordered and is_out_of_order and was_oldest

    def request(self) -> InitProducerId:
        """Return the request for one more producer."""
        return InitProducerId()

    def __len__(self) -> int:
        return len(self._producer_sessions)

    def with_room(self) -> ProducerSession[CommandT] | None:
        """Return the first session that can take a command.

        Always the first, so that a message has few groups.
        """
        for producer_session in self._producer_sessions:
            if producer_session.has_room:
                return producer_session
        return None

    def wanted(self, waiting: int, window: int) -> int:
        """Return how many more producers to request for ``waiting`` commands without room."""
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
        """Add a producer that was received."""
        self._producer_sessions.append(producer_session)

    def retire(self, producer_session: ProducerSession[CommandT]) -> None:
        """Stop using a producer that the cluster no longer knows."""
        producer_session.is_retired = True


def _is_spent(producer_session: ProducerSession[CommandT]) -> bool:
    return producer_session.is_retired or producer_session.next_sequence > SEQUENCE_MAX
