"""When each peer may be asked again, and the one Fetch that may be under way.

See: docs/reference/protocol.md, "Between replicas" (one Fetch in flight over all connections).
"""

from __future__ import annotations

from dataclasses import dataclass

from quorum.config import QuorumConfig
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import PeerRequest
from quorum.types import NodeId, VersionRange

_DOUBLINGS_MAX = 4


def backoff_ms(config: QuorumConfig, failures: int) -> int:
    """Pause after the ``failures``-th failure in a row: doubling, at most 16 times the base."""
    return max(1, config.retry_backoff_ms) << min(max(failures - 1, 0), _DOUBLINGS_MAX)


@dataclass(slots=True, eq=False, kw_only=True)
class InFlight(PeerRequest):
    """A Fetch or FetchSnapshot that is under way or waits for the disk before it leaves.

    It is not retried itself: a failure is the peer's (``PeerTable``), and the next one may go
    elsewhere. It is due, which means given up, at ``NEVER_MS`` while it has not left.
    """

    ticket: int
    """Leaves when this is durable."""
    position: int = 0
    """Where the chunk begins that FetchSnapshot asks for."""
    supported: tuple[VersionRange, ...] = ()
    """What a Fetch advertises of this release (``FetchRequest.supported``)."""
    asks_ahead: bool = True
    """Whether chunks behind this one may be asked for; not again once one of them was lost."""
    behind: InFlight | None = None
    """The request for the next chunk, sent ahead. It is worth nothing without this one, and is no
    pending request before this one is answered."""

    @property
    def has_left(self) -> bool:
        """Whether it was sent."""
        return self.due_ms < NEVER_MS


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
        if self._failures:
            self._failures.pop(peer, None)
            self._ready_ms.pop(peer, None)

    def reset(self) -> None:
        """Forget every failure, as after a change of leader."""
        self._failures.clear()
        self._ready_ms.clear()
