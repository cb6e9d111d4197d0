"""How long a channel waits before it tries its peer again, by why the last attempt came to nothing.

Two failures are told apart. Who cannot be reached may be back any moment, so the pause grows to
a second only. Who refuses (another cluster, a copied disk, another node's certificate) will do so
until somebody changes something: there the pause grows to some seconds, and is drawn from a
range, so that many refused peers do not come back in step.

See: ADR 8; docs/reference/protocol.md (The peer stream).
"""

from __future__ import annotations

import random

from quorum.transport.limits import (
    RECONNECT_BACKOFF_MAX_S,
    RECONNECT_BACKOFF_S,
    REFUSED_BACKOFF_MAX_S,
)


class Backoff:
    """The pauses of one channel. Pure but for ``rng``."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._unreached_s = RECONNECT_BACKOFF_S
        self._refused_s = RECONNECT_BACKOFF_S

    def record_contact(self) -> None:
        """The peer has answered something: whatever was wrong is over."""
        self._unreached_s = self._refused_s = RECONNECT_BACKOFF_S

    def after_reaching(self) -> float:
        """The pause, in seconds, after a stream that stood, or a refused TCP connect.

        A kernel that answers is there; its process may listen again any moment.
        """
        self._unreached_s = RECONNECT_BACKOFF_S
        return RECONNECT_BACKOFF_S

    def after_silence(self) -> float:
        """The pause, in seconds, after an attempt that reached nobody: doubled each time."""
        self._unreached_s = min(self._unreached_s * 2, RECONNECT_BACKOFF_MAX_S)
        return self._unreached_s

    def after_refusal(self) -> float:
        """The pause, in seconds, after a refusal: doubled each time, drawn from its upper half."""
        self._refused_s = min(self._refused_s * 2, REFUSED_BACKOFF_MAX_S)
        return self._rng.uniform(self._refused_s / 2, self._refused_s)
