"""When each peer may be asked again."""

from __future__ import annotations

from quorum.config import QuorumConfig
from quorum.types import NodeId

_DOUBLINGS_MAX = 4


def backoff_ms(config: QuorumConfig, failures: int) -> int:
    """Pause after the ``failures``-th failure in a row: doubling, at most 16 times the base."""
    return max(1, config.retry_backoff_ms) << min(max(failures - 1, 0), _DOUBLINGS_MAX)


class PeerTable:
    """Failures in a row and readiness, by peer. Bounded: only peers we ask ourselves."""

    __slots__ = ("_config", "_failures", "_ready_ms")

    def __init__(self, config: QuorumConfig) -> None:
        self._config = config
        self._failures: dict[NodeId, int] = {}
        self._ready_ms: dict[NodeId, int] = {}

    def ready_ms(self, peer: NodeId) -> int:
        """From when on the peer may be asked; 0 for one that did not fail."""
        return self._ready_ms.get(peer, 0)

    def failures(self, peer: NodeId) -> int:
        """Failures in a row."""
        return self._failures.get(peer, 0)

    def failed(self, peer: NodeId, now_ms: int) -> None:
        """No useful answer: leave the peer alone for a while."""
        failures = self._failures.get(peer, 0) + 1
        self._failures[peer] = failures
        self._ready_ms[peer] = now_ms + backoff_ms(self._config, failures)

    def succeeded(self, peer: NodeId) -> None:
        """A useful answer: the peer may be asked at once."""
        if self._failures.pop(peer, 0):
            del self._ready_ms[peer]

    def reset(self) -> None:
        """Forget every failure, as after a change of leader."""
        self._failures.clear()
        self._ready_ms.clear()
