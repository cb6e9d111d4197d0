"""What a cluster knows of its nodes and messages without their contents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from quorum.core.messages.message_types import Message
from quorum.types import NodeId
from simulation.harness.core_disk import Log
from simulation.invariants.violation import Violation

Event: TypeAlias = tuple[Any, ...]
"""The event's name and its arguments."""


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
    """Whether its sender waited for the answer and no longer does."""

    @property
    def outline(self) -> tuple[NodeId, NodeId, type[Message], int]:
        """Return the message's identity without its contents."""
        return self.sender, self.to, type(self.message), self.number


@dataclass(frozen=True, slots=True)
class Local:
    """One state of one node: packed, with the parts that the cluster reads."""

    packed: bytes
    body: bytes
    """Equal for states that differ only in the high watermark and in crashes left."""
    node_id: NodeId
    epoch: int
    durable_epoch: int
    durable_leader: NodeId
    role: str
    leads: bool
    """Whether it leads and that is durable."""
    can_write: bool
    follows: NodeId
    high_watermark: int
    log: Log
    durable: Log
    voters: tuple[NodeId, ...]
    waits: frozenset[int]
    """Numbers of its own requests that wait for an answer."""
    owed: frozenset[tuple[NodeId, int]]
    """Sender and number of the requests that it has yet to answer."""
    begins: tuple[NodeId, ...]
    """Voters from which this leader waits for no BeginQuorumEpoch answer."""
    events: tuple[Event, ...]
    """Events that may happen to it without a message."""
    is_urgent: bool
    """Whether the next event must decide what its disk has completed."""
    is_moot: bool
    """Whether other states cover all that it leads to, see ``space``."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an event for a node."""

    local: int
    sent: tuple[int, ...]
    killed: frozenset[int]
    violation: Violation | None = None
