"""Times and counts the calls between driver and controller, and the requests of clients.

Thin wrappers, so that neither the driver nor the controller knows about metrics. The controller
counts its answers in a plain dictionary, which the observer gets now and then: a counter update
for each of ten thousand commands a second would cost more than evaluating some of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from metrics.observer import Observer
from quorate.controller.answer_delivery import AnswerCounts
from quorum.batch import VerifiedBatches
from quorum.core.contract.output import LeadershipChanged
from quorum.errors import ErrorCode
from quorum.runtime.ports import Listener
from quorum.types import SnapshotId

_QUEUE_FULL = frozenset({ErrorCode.RESOURCE_EXHAUSTED, ErrorCode.QUEUE_FULL})


class MeteredListener:
    """A ``Listener`` that times what the one behind it does."""

    def __init__(self, listener: Listener, observer: Observer) -> None:
        self._listener = listener
        self._observer = observer
        self.on_leadership: Callable[[LeadershipChanged], None] = listener.on_leadership
        self.on_truncated: Callable[[int], None] = listener.on_truncated
        self.on_read_confirmed: Callable[[int, int], None] = listener.on_read_confirmed
        self.on_read_failed: Callable[[int], None] = listener.on_read_failed

    def on_committed(
        self, data: bytes, end_offset: int, verified: Sequence[VerifiedBatches] = ()
    ) -> None:
        """Time one committed range."""
        began = time.perf_counter()
        self._listener.on_committed(data, end_offset, verified)
        self._observer.apply_took(time.perf_counter() - began)

    def on_snapshot(self, snapshot_id: SnapshotId) -> None:
        """Time the load of a checkpoint that was fetched."""
        began = time.perf_counter()
        try:
            self._listener.on_snapshot(snapshot_id)
        except Exception:
            self._observer.snapshot_failed("load")
            raise
        self._observer.snapshot_load_took(time.perf_counter() - began)


class CommandMeter:
    """Reports answered commands by type and result, and times confirmed reads."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self.refused = 0
        """Commands refused because a queue was full, up to the last ``report``."""

    def timed(self, on_outcome: Callable[[int | None], None]) -> Callable[[int | None], None]:
        """``on_outcome`` with timing of a read that was confirmed."""
        began = time.perf_counter()

        def decided(read_offset: int | None) -> None:
            if read_offset is not None:
                self._observer.read_took(time.perf_counter() - began)
            on_outcome(read_offset)

        return decided

    def report(self, answered: AnswerCounts) -> None:
        """Give the observer what the controller has answered since the last call."""
        for (kind, code), count in answered.items():
            result = "ok" if code is ErrorCode.NONE else code.name
            self._observer.command_evaluated(kind, result, by=count)
            if code in _QUEUE_FULL:
                self.refused += count
