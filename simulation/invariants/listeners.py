"""The listeners of a run observer: one plain list of callbacks per kind of event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias, get_args

from quorate.controller.publishing import Published
from quorum.core.contract.output import Effect
from quorum.core.messages.message_types import Message, Received, ReceivedRequest
from quorum.runtime.ports import WriteGroup
from quorum.types import ElectionState, NodeId, SnapshotId
from simulation.invariants.mirror import Batch, Truncation
from simulation.invariants.seen import CommandKey, ReadBegun, Seen
from statemachine.commands import Command

_Command: TypeAlias = tuple[int, int, int]
_OnMessage: TypeAlias = Callable[[Seen, NodeId, Message], None]


def _nobody() -> dict[type, list[_OnMessage]]:
    return {kind: [] for kind in get_args(Message)}


@dataclass(frozen=True, slots=True)
class Listeners:
    """Each list is called in order, with the arguments of the hook of that name in ``Invariant``.

    Each message type has its own list, so that an invariant is called for its own types only.
    """

    on_opened: list[Callable[[Seen, Seen | None], None]] = field(default_factory=list)
    on_submitted: list[Callable[[Seen, WriteGroup], None]] = field(default_factory=list)
    on_appended: list[Callable[[Seen, list[Batch]], None]] = field(default_factory=list)
    on_truncated: list[Callable[[Seen, Truncation], None]] = field(default_factory=list)
    on_persisted: list[Callable[[Seen, Effect], None]] = field(default_factory=list)
    on_voted: list[Callable[[Seen, ElectionState], None]] = field(default_factory=list)
    on_committed: list[Callable[[Seen, list[Batch], int], None]] = field(default_factory=list)
    on_request: list[Callable[[Seen, NodeId, ReceivedRequest], None]] = field(default_factory=list)
    on_stepped: list[Callable[[Seen], None]] = field(default_factory=list)
    on_checkpoint: list[Callable[[Seen, SnapshotId, bytes], None]] = field(default_factory=list)
    on_published: list[Callable[[Seen, Published], None]] = field(default_factory=list)
    on_watched: list[Callable[[Seen, int], None]] = field(default_factory=list)
    on_acknowledged: list[Callable[[Seen, int, CommandKey, Command | None], None]] = field(
        default_factory=list
    )
    on_read: list[Callable[[Seen, ReadBegun, int], None]] = field(default_factory=list)
    on_block: list[Callable[[Seen, _Command, int, int], None]] = field(default_factory=list)
    on_sent: dict[type, list[_OnMessage]] = field(default_factory=_nobody)
    on_received: dict[type, list[_OnMessage]] = field(default_factory=_nobody)

    def received(self, seen: Seen, sender: NodeId, received: Received) -> None:
        """Call the listeners for messages of this type, and those for requests."""
        message = received.request if isinstance(received, ReceivedRequest) else received
        if isinstance(received, ReceivedRequest):
            for on_request in self.on_request:
                on_request(seen, sender, received)
        for on_received in self.on_received[type(message)]:
            on_received(seen, sender, message)
