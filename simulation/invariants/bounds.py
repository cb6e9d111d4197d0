"""The positions of one node are in order (docs/testing.md)."""

from __future__ import annotations

from simulation.invariants.invariant import Invariant
from simulation.invariants.seen import Seen


class Bounds(Invariant):
    """log start <= high watermark <= log end; applied <= high watermark; core and disk agree."""

    name = "bounds"

    def on_stepped(self, seen: Seen) -> None:
        node = seen.replica.node
        high_watermark = node.high_watermark
        log_end = node.log_end_offset
        applied = seen.replica.controller.image.provenance.end_offset
        if (
            not node.log_start.offset <= high_watermark <= log_end
            or applied > high_watermark
            or log_end != seen.written.end_offset
        ):
            self.fail(
                "positions out of order",
                node=seen.id,
                log_start=node.log_start.offset,
                high_watermark=high_watermark,
                log_end=log_end,
                applied=applied,
                handed_to_disk=seen.written.end_offset,
            )
