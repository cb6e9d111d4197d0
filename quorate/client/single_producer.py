"""The one producer of a client that has a name or an order.

A name keeps its producer over restarts of the process: each process raises the epoch, and so fences
the one before it (360.1). An order ends with the first write that fails: every later one fails, and
the program decides whether to go on under the next epoch (360.6).

Pure bookkeeping: no I/O, no clock. See: KIP-360, ADR 68.
"""

from __future__ import annotations

from typing import TypeVar

from quorate.client.errors import ProducerFencedError, RefusedError
from quorate.client.limits import EPOCH_EXHAUSTED
from quorate.client.producer_sessions import ProducerSession, ProducerSessions
from quorate.client.results.errors import KnownProducer
from quorum.v1 import common_pb2
from quorum.v1.commands_pb2 import InitProducerId
from quorum.v1.metadata_pb2 import WriteAnswer

CommandT = TypeVar("CommandT")


class SingleProducer(ProducerSessions[CommandT]):
    """At most one usable producer, and the identity under which the next one is requested."""

    def __init__(self, name: str, *, is_ordered: bool) -> None:
        super().__init__(producer_sessions_max=1)
        self.name = name
        self.is_ordered = is_ordered
        self._current: ProducerSession[CommandT] | None = None
        self._is_known = False
        """Whether the cluster knows the current producer, as far as we know."""

    def request(self) -> InitProducerId:
        """Return the request for a producer.

        The first one of a process takes the name over. Later ones name the present identity, so
        that they are refused if another process has taken the name.
        """
        request = InitProducerId()
        if self.name:
            request.transactional_id = self.name
        if self._current is not None:
            request.producer_id = self._current.producer_id
            request.producer_epoch = self._current.producer_epoch
        return request

    def wanted(self, waiting: int, window: int) -> int:
        """Return 1 if a producer must be requested, else 0."""
        if isinstance(self.failure, ProducerFencedError) or (self.failure and self._current):
            return 0
        return super().wanted(waiting, window)

    def add(self, producer_session: ProducerSession[CommandT]) -> None:
        """Use a producer that was received."""
        super().add(producer_session)
        self._current, self._is_known = producer_session, True

    def retire(self, producer_session: ProducerSession[CommandT]) -> None:
        """Stop using a producer that the cluster no longer knows."""
        super().retire(producer_session)
        self._is_known = False

    def refusal(
        self, producer_session: ProducerSession[CommandT] | None, answer: WriteAnswer
    ) -> RefusedError:
        """Return the error of a refused command; note if another process has the name.

        After a session was retired, this process itself may have raised the epoch. Then only the
        answer to its request for a producer decides.
        """
        refusal = super().refusal(producer_session, answer)
        is_epoch = answer.error_code == common_pb2.ERROR_CODE_INVALID_PRODUCER_EPOCH
        if is_epoch and isinstance(self.failure, ProducerFencedError):
            return self.failure
        is_current = producer_session is self._current and self._is_known
        if self.name and is_epoch and is_current and producer_session is not None:
            known = refusal.producer
            if known is not None and known.producer_id != producer_session.producer_id:
                # The command itself named another producer.
                return refusal
            return self._fence(answer.message, known)
        if self.name and is_current and self._is_forgotten(refusal):
            self.forgotten = RefusedError(
                refusal.code,
                f"{refusal.text}; another process may have had the name since: begin an epoch, and "
                "read the position again",
                producer=refusal.producer,
            )
        return refusal

    def _is_forgotten(self, refusal: RefusedError) -> bool:
        """Whether the cluster has forgotten the name too: nothing proves that it is still ours."""
        known = refusal.producer
        return refusal.code == common_pb2.ERROR_CODE_UNKNOWN_PRODUCER_ID and (
            known is None or known.transactional_id != self.name
        )

    @property
    def wants_name(self) -> bool:
        """Whether it has a name and holds no epoch of it."""
        return bool(self.name) and not self._is_known

    def init_refused(self, refusal: RefusedError) -> RefusedError:
        """Return the error of a refused request for a producer; note if the name is taken."""
        if refusal.code != common_pb2.ERROR_CODE_INVALID_PRODUCER_EPOCH:
            return refusal
        if self.name:
            return self._fence(refusal.text, refusal.producer)
        # The next request asks for a new one.
        self._current = None
        return refusal

    def _fence(self, message: str, known: KnownProducer | None) -> ProducerFencedError:
        """Note for ever that another process has the name; return the error of all writes."""
        found = self.failure
        if not isinstance(found, ProducerFencedError):
            found = self.failure = ProducerFencedError(self.name, message, producer=known)
        return found

    def begin_epoch(self) -> None:
        """Go on after a failure, with sequence 0 of the next epoch.

        An unnamed producer raises its epoch itself. A named one has it raised through its name, as
        does one whose epochs are used up.

        Raises:
            ProducerFencedError: Another process has the name.
        """
        if isinstance(self.failure, ProducerFencedError):
            raise self.failure
        self.failure = None
        current = self._current
        if current is None:
            return
        is_known = self._is_known
        self.retire(current)
        if is_known and not self.name and current.producer_epoch < EPOCH_EXHAUSTED:
            current.open.clear()
            raised = current.producer_epoch + 1
            self.add(ProducerSession(current.producer_id, raised, window=current.window))
