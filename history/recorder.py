"""Record a history while it happens.

Call ``begin`` when a client calls, and exactly one of ``ok``, ``failed`` and ``unknown`` when the
client knows the outcome. An operation that is never ended stays unknown. Not thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from history.history import History
from history.operation import Action, Level, Operation, Outcome, Value


class Recorder:
    """Appends to a history. ``now`` is the monotonic clock of all its clients."""

    def __init__(self, history: History, now: Callable[[], int]) -> None:
        self.history = history
        self._now = now

    def begin(
        self,
        client: str,
        key: str,
        action: Action,
        arguments: Mapping[str, Value] | None = None,
        *,
        level: Level | None = None,
        at_least: int = -1,
        mark: str = "",
    ) -> Operation:
        """Record that a client calls now."""
        operation = Operation(
            number=len(self.history.operations),
            client=client,
            key=key,
            action=action,
            call=self._now(),
            arguments=arguments or {},
            level=level,
            at_least=at_least,
            mark=mark,
        )
        self.history.operations.append(operation)
        return operation

    def ok(
        self,
        operation: Operation,
        *,
        offset: int,
        epoch: int = -1,
        result: Mapping[str, Value] | None = None,
        session: str = "",
    ) -> None:
        """Record that the response arrived now."""
        operation.end = self._now()
        operation.outcome = Outcome.OK
        operation.offset, operation.epoch = offset, epoch
        operation.result = result or {}
        operation.session = session

    def failed(self, operation: Operation, error: str) -> None:
        """Record that the operation has no effect, now or later."""
        operation.end = self._now()
        operation.outcome = Outcome.FAILED
        operation.error = error

    def unknown(self, operation: Operation) -> None:
        """Record that the outcome cannot be determined."""
        operation.outcome = Outcome.UNKNOWN
        operation.end = None
