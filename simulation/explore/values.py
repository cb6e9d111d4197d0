"""What a cluster knows of its nodes and messages without looking into them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from quorum.core.messages.message_types import Message
from quorum.types import NodeId
from simulation.harness.core_disk import Log
from simulation.invariants.violation import Violation

Event: TypeAlias = tuple[Any, ...]
"""Its name, and what it is about."""


@dataclass(frozen=True, slots=True)
class Packet:
    """A message under way. ``number`` is the request's id."""

    sender: NodeId
    to: NodeId
    message: Message
    number: int
    is_request: bool
    epoch: int
    is_late: bool
    """A request whose sender does not wait for the answer, and did once."""

    @property
    def outline(self) -> tuple[NodeId, NodeId, type[Message], int]:
        """What it is, without its contents."""
        return self.sender, self.to, type(self.message), self.number


@dataclass(frozen=True, slots=True)
class Local:
    """One state of one node: packed, and what the cluster looks at."""

    packed: bytes
    body: bytes
    """Equal for states that differ only in what is known to be committed and in crashes left."""
    node_id: NodeId
    epoch: int
    durable_epoch: int
    durable_vote: NodeId
    durable_leader: NodeId
    role: str
    leads: bool
    """It leads, and that is durable."""
    can_write: bool
    follows: NodeId
    high_watermark: int
    log: Log
    durable: Log
    voters: tuple[NodeId, ...]
    waits: frozenset[int]
    """Numbers of its own requests that wait for an answer."""
    owed: frozenset[tuple[NodeId, int]]
    """Whose requests it has yet to answer."""
    begins: tuple[NodeId, ...]
    """Voters that this leader waits for no answer of."""
    events: tuple[Event, ...]
    """What may happen to it without a message."""
    is_urgent: bool
    """Its disk is next: nothing else happens until it is known what that has done."""
    is_moot: bool
    """What it leads to is reached without it, see ``space``."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an event makes of a node."""

    local: int
    sent: tuple[int, ...]
    killed: frozenset[int]
    violation: Violation | None = None
