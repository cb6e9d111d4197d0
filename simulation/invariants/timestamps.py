"""Timestamps in the log ascend, whatever the clocks do (docs/guarantees.md)."""

from __future__ import annotations

import struct

from simulation.invariants.invariant import Invariant
from simulation.invariants.mirror import Batch
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen

_MAX_TIMESTAMP = struct.Struct(">q")
_MAX_TIMESTAMP_AT = 35


class TimestampsRise(Invariant):
    """No committed batch has an earlier timestamp than the one below it, also across leaders."""

    name = "timestamps-rise"

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.newest_ms = -1

    def on_committed(self, seen: Seen, batches: list[Batch], end_offset: int) -> None:
        for batch in batches:
            (stamp_ms,) = _MAX_TIMESTAMP.unpack_from(batch.data, _MAX_TIMESTAMP_AT)
            self.require(
                stamp_ms >= self.newest_ms,
                "a batch is older than the one below it",
                end_offset=batch.end_offset,
                epoch=batch.epoch,
                stamp_ms=stamp_ms,
                below_ms=self.newest_ms,
            )
            self.newest_ms = stamp_ms
