"""The base class of all invariants: its hooks, and how a failure is reported."""

from __future__ import annotations

from typing import ClassVar

from quorate.controller.publishing import Published
from quorum.core.contract.output import Effect
from quorum.core.messages.message_types import Message, ReceivedRequest
from quorum.runtime.ports import WriteGroup
from quorum.types import ElectionState, NodeId, SnapshotId
from simulation.invariants.mirror import Batch, Truncation
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import CommandKey, ReadBegun, Seen
from simulation.invariants.violation import Violation
from statemachine.commands import Command


class Invariant:
    """One property of a cluster. A subclass overrides the hooks it needs; the others cost nothing.

    ``seen`` is the observed state of the node concerned, *after* the event.
    """

    name = ""
    sent_kinds: ClassVar[tuple[type, ...]] = ()
    """The message types for which ``on_sent`` is called; empty for all types."""
    received_kinds: ClassVar[tuple[type, ...]] = ()
    """The same for ``on_received``."""

    def __init__(self, run_observer: RunObserver) -> None:
        self.run_observer = run_observer

    def fail(self, message: str, /, **evidence: object) -> None:
        """Raise ``Violation``: the property does not hold."""
        raise Violation(self.name, message, **evidence)

    def require(self, condition: object, message: str, /, **evidence: object) -> None:
        """Raise ``Violation`` unless ``condition`` holds.

        A check that runs for every message tests first and calls ``fail``, so that evidence is
        gathered only for failures.
        """
        if not condition:
            self.fail(message, **evidence)

    def on_opened(self, seen: Seen, before: Seen | None) -> None:
        """Handle that a process opened its directory; ``before`` is its last incarnation."""

    def on_submitted(self, seen: Seen, group: WriteGroup) -> None:
        """Handle a group of effects submitted to the disk, before each of them."""

    def on_appended(self, seen: Seen, batches: list[Batch]) -> None:
        """Handle batches submitted to the disk."""

    def on_truncated(self, seen: Seen, cut: Truncation) -> None:
        """Handle a cut submitted to the disk."""

    def on_persisted(self, seen: Seen, effect: Effect) -> None:
        """Handle an effect that became durable."""

    def on_voted(self, seen: Seen, state: ElectionState) -> None:
        """Handle election state that became durable."""

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        """Handle a message that the node sent."""

    def on_received(self, seen: Seen, sender: NodeId, message: Message) -> None:
        """Handle a message that is about to be delivered to the node."""

    def on_request(self, seen: Seen, sender: NodeId, received: ReceivedRequest) -> None:
        """Handle a request as ``on_received``, with what the node knows of its sender."""

    def on_committed(self, seen: Seen, batches: list[Batch], end_offset: int) -> None:
        """Handle the first report, by any node, that ``batches`` up to ``end_offset`` committed."""

    def on_stepped(self, seen: Seen) -> None:
        """Handle a completed step of the node."""

    def on_checkpoint(self, seen: Seen, snapshot_id: SnapshotId, content: bytes) -> None:
        """Handle a checkpoint file that got its final name."""

    def on_published(self, seen: Seen, published: Published) -> None:
        """Handle a step that is published to the subscribers of a node's image."""

    def on_watched(self, seen: Seen, end_offset: int) -> None:
        """Handle a delivery to a watcher: everything new below ``end_offset``."""

    def on_acknowledged(
        self, seen: Seen, offset: int, key: CommandKey, content: Command | None
    ) -> None:
        """Handle the acknowledgement of a client's write that ends at ``offset`` (exclusive).

        ``key`` and ``content`` are None where the write may have no batch of its own.
        """

    def on_block(self, seen: Seen, command: tuple[int, int, int], first: int, count: int) -> None:
        """Handle the allocation of ``count`` producer ids from ``first`` on to a broker."""

    def on_read(self, seen: Seen, begun: ReadBegun, offset: int) -> None:
        """Handle a read that began at ``begun`` and was confirmed at ``offset``."""
