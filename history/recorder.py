"""Writing a history down while it happens.

``begin`` when a client calls, exactly one of ``ok``, ``failed`` and ``unknown`` when it knows; an
operation that is never ended stays unknown. Not for several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from history.history import History
from history.operation import Action, Level, Operation, Outcome, Value


class Recorder:
    """Appends to a history. ``now`` is the clock of all its clients; it never goes back."""

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
        """A client calls now."""
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
        """The answer came now."""
        operation.end = self._now()
        operation.outcome = Outcome.OK
        operation.offset, operation.epoch = offset, epoch
        operation.result = result or {}
        operation.session = session

    def failed(self, operation: Operation, error: str) -> None:
        """It has no effect and never will."""
        operation.end = self._now()
        operation.outcome = Outcome.FAILED
        operation.error = error

    def unknown(self, operation: Operation) -> None:
        """Nobody said what became of it."""
        operation.outcome = Outcome.UNKNOWN
        operation.end = None
