"""How long a channel waits before it tries its peer again; this depends on the last failure.

There are two kinds of failure. An unreachable peer may be back any moment, so its pause grows to
one second only. A refusal (another cluster, a copied disk, another node's certificate) lasts
until an operator acts. Its pause grows to some seconds and is random, so that many refused peers
do not retry in step.

See: ADR 8; docs/reference/peer-stream.md (Exchange).
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
        """Reset both pauses: the peer has answered."""
        self._unreached_s = self._refused_s = RECONNECT_BACKOFF_S

    def after_reaching(self) -> float:
        """Return the pause, in seconds, after a stream that was established, or a refused connect.

        The kernel answers, so the process may listen again any moment.
        """
        self._unreached_s = RECONNECT_BACKOFF_S
        return RECONNECT_BACKOFF_S

    def after_silence(self) -> float:
        """Return the pause, in seconds, after an attempt without an answer: doubled each time."""
        self._unreached_s = min(self._unreached_s * 2, RECONNECT_BACKOFF_MAX_S)
        return self._unreached_s

    def after_refusal(self) -> float:
        """Return the pause, in seconds, after a refusal: doubled, and drawn from its upper half."""
        self._refused_s = min(self._refused_s * 2, REFUSED_BACKOFF_MAX_S)
        return self._rng.uniform(self._refused_s / 2, self._refused_s)
