"""How old the published image is: what the log is known to hold, once the image holds it too."""

from __future__ import annotations

from quorum.core.liveness.freshness import Freshness


class ImageAge:
    """Told on every publication and before every question. Owned by the event loop.

    Invariant: the image held everything acknowledged before ``_as_of_ms``; it never falls.
    """

    def __init__(self) -> None:
        self._as_of_ms = -1

    def note(self, known: Freshness, applied_end: int) -> None:
        """The log is current as ``known`` says, and the image holds it up to ``applied_end``."""
        if applied_end >= known.end_offset and known.as_of_ms > self._as_of_ms:
            self._as_of_ms = known.as_of_ms

    def at(self, now_ms: int) -> int:
        """Milliseconds since then; -1 when it was never known."""
        return max(0, now_ms - self._as_of_ms) if self._as_of_ms >= 0 else -1
