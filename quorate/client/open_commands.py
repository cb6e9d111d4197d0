"""Every command of a client that has not ended, and how each of them ends with an error.

Invariant: a command is in exactly one of ``fresh`` (no number yet), ``again`` (to be sent again),
``sent`` (on the current stream), ``pausing`` (until its pause ends), or it has ended.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

from quorate.client.errors import (
    ClientError,
    OutcomeUnknownError,
    ProducerFencedError,
    RefusedError,
    UnavailableError,
)
from quorate.client.pending import (
    Pending,
    PendingProducerSession,
    check_size,
    has_position,
    is_dry_run,
    later_error,
)
from quorate.client.producer_sessions import ProducerSessions
from quorum.v1.commands_pb2 import Command


class OpenCommands:
    """The open commands of one client. Lives on the event loop it was made on."""

    def __init__(self, producers: ProducerSessions[Pending]) -> None:
        self.fresh: deque[Pending] = deque()
        self.again: deque[Pending] = deque()
        self.sent: dict[int, Pending] = {}
        self.pausing: dict[int, Pending] = {}
        self._is_one_forgotten = False
        """Whether a command was forgotten that may be applied."""
        self._producers = producers
        self._failed_order = math.inf
        """``order`` of the first write of an ordered epoch that has failed."""

    def all(self) -> Iterable[Pending]:
        """Yield every command; the containers must not change meanwhile."""
        yield from self.fresh
        yield from self.again
        yield from self.pausing.values()
        yield from self.sent.values()

    @property
    def is_in_doubt(self) -> bool:
        """Whether a command was sent and not answered, whatever its caller knows of it by now."""
        return self._is_one_forgotten or any(map(_may_be_applied, self.all()))

    def is_over(self, pending: Pending) -> bool:
        """Whether nobody needs the outcome of a command any more.

        Later commands of an ordered client need that of one that its caller has cancelled.
        """
        if self._producers.is_ordered and pending.producer_session is not None:
            return pending.done.done() and not pending.done.cancelled()
        return pending.done.done()

    def check_size(self, command: Command) -> None:
        """Refuse a command that no server takes; it is a failed write of an ordered client.

        Raises:
            RefusedError: MESSAGE_TOO_LARGE.
        """
        try:
            check_size(command)
        except RefusedError as refusal:
            if self._producers.is_ordered and self._producers.failure is None:
                self._producers.failure = refusal
            raise

    def release(self, pending: Pending) -> None:
        """Free the number of a command for its session."""
        if pending.producer_session is not None:
            pending.producer_session.settle(pending.command.sequence)

    def forget(self, pending: Pending) -> None:
        """Free the number of a command for its session. A late answer is ignored."""
        self._is_one_forgotten = self._is_one_forgotten or _may_be_applied(pending)
        self.release(pending)
        self.sent.pop(pending.command.tag, None)
        self.pausing.pop(pending.command.tag, None)

    def give_up(self, pending: Pending, why: str, *, unsent: ClientError | None = None) -> None:
        """End a command without an answer; ``unsent`` is the error if it was never sent."""
        self.forget(pending)
        error: ClientError
        if pending.denial is not None and not pending.is_presumed:
            error = pending.denial
        elif pending.attempts and pending.denial is None:
            error = OutcomeUnknownError(f"{why}; the outcome is unknown")
        else:
            error = unsent or UnavailableError(f"{why}; the command was never sent")
        self.fail(pending, error)

    def lose_producer(
        self, pending: Pending, session: PendingProducerSession, refusal: RefusedError
    ) -> None:
        """Send a command under another producer if it certainly was not applied; else end it."""
        self._producers.retire(session)
        is_fenced = isinstance(refusal, ProducerFencedError)
        forgotten = self._producers.forgotten
        if pending.attempts > 1:
            unknown = OutcomeUnknownError(f"the producer is gone: {refusal}")
            unknown.__cause__ = refusal
            self._is_one_forgotten = True
            self.fail(pending, unknown)
        elif is_fenced or self._producers.is_ordered:
            self.fail(pending, refusal)
        else:
            pending.producer_session = None
            pending.attempts = 0
            self.fresh.appendleft(pending)
        if is_fenced:
            self.fail_fresh(refusal)
        elif forgotten is not None:
            for each in [each for each in self.fresh if has_position(each.command)]:
                self.fresh.remove(each)
                self.fail(each, forgotten)

    def end_epoch(self) -> None:
        """Forget all writes of an ordered epoch that has failed; their callers have cancelled them.

        The next epoch does not depend on what becomes of them.
        """
        for pending in [each for each in self.all() if each.has_number]:
            self.forget(pending)
        self.fresh = deque(each for each in self.fresh if not each.has_number)
        self.again = deque(each for each in self.again if not each.has_number)
        self._failed_order = math.inf

    def ended_already(self, command: Command) -> ClientError | None:
        """Return the error of a new command that is not sent because of an earlier one."""
        producers = self._producers
        if producers.failure is not None:
            return later_error(producers.failure, was_sent=False)
        return producers.forgotten if has_position(command) else None

    def fail_fresh(self, error: ClientError) -> None:
        """End all commands that have no number yet."""
        fresh = list(self.fresh)
        self.fresh.clear()
        for pending in fresh:
            self.fail(pending, error)

    def fail(self, pending: Pending, error: ClientError) -> None:
        """End a command with an error; of an ordered client, all later ones as well (360.6)."""
        if not pending.done.done():
            pending.done.set_exception(error)
        producers = self._producers
        if not (producers.is_ordered and pending.has_number):
            return
        failure = producers.failure
        # A later write may have failed before, at its deadline.
        is_first = failure is None or pending.order < self._failed_order
        if is_first and not isinstance(failure, ProducerFencedError):
            producers.failure = failure = error
        if failure is error:
            self._failed_order = min(self._failed_order, pending.order)
            self._fail_later(pending, error)

    def _fail_later(self, first: Pending, error: ClientError) -> None:
        for pending in list(self.all()):
            if pending.order > first.order and pending.has_number:
                self.forget(pending)
                if not pending.done.done():
                    was_sent = pending.attempts > 0
                    pending.done.set_exception(later_error(error, was_sent=was_sent))


def _may_be_applied(pending: Pending) -> bool:
    return pending.attempts > 0 and not pending.is_init and not is_dry_run(pending.command)
