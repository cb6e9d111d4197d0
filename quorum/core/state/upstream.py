"""The peer that an observer fetches from: a relay, or the leader if no relay answers.

Plain data and the rules for one change at a time. ``fetching`` chooses the next peer, and records
here how each Fetch or FetchSnapshot ended. Voters have no relays: only the leader counts their
acknowledgements.

Invariants:
    1. ``path`` and ``confirmed_ms`` come from one useful answer of ``epoch``.
    2. While a relay answers, the leader is never asked.

See: docs/adr (relays), KIP-595 (observers).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quorum.config import QuorumConfig
from quorum.core.state.held_fetches import NEVER_MS
from quorum.types import NO_NODE, Epoch, NodeId, ReplicaKey

if TYPE_CHECKING:
    import random


@dataclass(frozen=True, slots=True)
class RelayPlan:
    """How one node is configured to use relays.

    ``serves``: answer Fetch and FetchSnapshot of other observers. ``fetch_from``: relays to fetch
    from, the preferred one first; the leader is asked if none of them answers.
    """

    serves: bool = False
    fetch_from: tuple[NodeId, ...] = ()


NO_RELAYS = RelayPlan()


@dataclass(slots=True)
class Upstream:
    """The node asked for records, and how well it is connected to the leader."""

    relays: tuple[NodeId, ...] = ()
    current: NodeId = NO_NODE
    """The peer that gave the latest useful answer."""
    path: tuple[ReplicaKey, ...] = ()
    """The relays between this node and the leader, nearest first; empty: the leader itself."""
    epoch: Epoch = 0
    confirmed_ms: int = -1
    """The leader of ``epoch`` is known to have led at this time; -1 for never."""
    is_direct: bool = False
    """Fetches from the leader, because no relay answered."""
    direct_from_ms: int = NEVER_MS
    """When the leader may be asked; ``NEVER_MS`` while relays answer."""
    retry_ms: int = 0
    """While direct: when to try the relays again."""
    _known: frozenset[NodeId] = field(init=False, default=frozenset())

    def __post_init__(self) -> None:
        self._known = frozenset(self.relays)

    def is_relay(self, peer: NodeId) -> bool:
        """Whether ``peer`` is one of the relays to fetch from."""
        return peer in self._known

    def in_order(self) -> tuple[NodeId, ...]:
        """The relays, the one that answered last before the others."""
        if self.current not in self._known:
            return self.relays
        return (self.current, *(each for each in self.relays if each != self.current))

    def failed(self, peer: NodeId, now_ms: int, config: QuorumConfig, rng: random.Random) -> None:
        """Record that a peer gave no useful answer.

        The first failure in a row starts the wait before the leader is asked.

        That time has a random part, so a thousand observers of one dead relay do not ask the
        leader at the same moment.
        """
        if peer not in self._known:
            return
        if self.is_direct:
            self.retry_ms = now_ms + config.relay_retry_ms
        elif self.direct_from_ms == NEVER_MS:
            patience_ms = config.relay_patience_ms
            self.direct_from_ms = now_ms + patience_ms + rng.randrange(patience_ms)

    def succeeded(self, peer: NodeId) -> None:
        """Record that a peer gave a useful answer."""
        self.current = peer
        if peer in self._known:
            self.is_direct = False
            self.direct_from_ms = NEVER_MS

    def go_direct(self, now_ms: int, config: QuorumConfig) -> None:
        """Fetch from the leader from now on, until a relay answers again."""
        if not self.is_direct:
            self.is_direct = True
            self.retry_ms = now_ms + config.relay_retry_ms

    def confirm(self, path: tuple[ReplicaKey, ...], epoch: Epoch, at_ms: int) -> None:
        """Record an answer of ``epoch`` by ``path``, whose leader led at ``at_ms`` or later."""
        self.path = path
        self.confirmed_ms = max(self.confirmed_ms, at_ms) if epoch == self.epoch else at_ms
        self.epoch = epoch
