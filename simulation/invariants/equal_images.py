"""Equal applied position means equal image (Raft, State Machine Safety)."""

from __future__ import annotations

from simulation.invariants.invariant import Invariant
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen
from statemachine.dump import state_digest

EVERY = 16
"""Offsets between samples, equal on all nodes: a digest costs time in proportion to the state."""


class EqualImages(Invariant):
    """Samples images at positions that are the same for all nodes; ``check`` compares at once."""

    name = "equal-images"

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.digests: dict[int, bytes] = {}

    def on_stepped(self, seen: Seen) -> None:
        applied = seen.replica.controller.image.provenance.end_offset
        if applied != seen.applied_end and applied % EVERY == 0:
            self.check(seen)

    def on_opened(self, seen: Seen, before: Seen | None) -> None:
        self.check(seen)

    def check(self, seen: Seen) -> None:
        """Compare this node's image with all others of the same position."""
        image = seen.replica.controller.image
        applied = image.provenance.end_offset
        digest = state_digest(image)
        self.require(
            self.digests.setdefault(applied, digest) == digest,
            "two images of one position differ",
            node=seen.id,
            applied=applied,
        )
