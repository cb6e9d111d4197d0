"""The base that all invariants share: what they may be told of, and how they report."""

from __future__ import annotations

from typing import ClassVar

from quorate.controller.publishing import Published
from quorum.core.contract.output import Effect
from quorum.core.messages.message_types import Message, ReceivedRequest
from quorum.types import ElectionState, NodeId, SnapshotId
from simulation.invariants.mirror import Batch, Truncation
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import CommandKey, ReadBegun, Seen
from simulation.invariants.violation import Violation
from statemachine.commands import Command


class Invariant:
    """One property of a cluster. Overrides the hooks it needs; the others cost nothing.

    ``seen`` is what is known of the node that something happened to, *after* it happened.
    """

    name = ""
    sent_kinds: ClassVar[tuple[type, ...]] = ()
    """The types of messages that ``on_sent`` looks at, and is called for; empty: all of them."""
    received_kinds: ClassVar[tuple[type, ...]] = ()
    """The same for ``on_received``."""

    def __init__(self, run_observer: RunObserver) -> None:
        self.run_observer = run_observer

    def fail(self, message: str, /, **evidence: object) -> None:
        """Report that the property does not hold."""
        raise Violation(self.name, message, **evidence)

    def require(self, condition: object, message: str, /, **evidence: object) -> None:
        """Report unless ``condition`` holds.

        What is checked with every message asks first and calls ``fail``: the evidence of what
        holds need not be gathered.
        """
        if not condition:
            self.fail(message, **evidence)

    def on_opened(self, seen: Seen, before: Seen | None) -> None:
        """A process opened its directory; ``before`` is its former life."""

    def on_appended(self, seen: Seen, batches: list[Batch]) -> None:
        """Batches were handed to the disk."""

    def on_truncated(self, seen: Seen, cut: Truncation) -> None:
        """A cut was handed to the disk."""

    def on_persisted(self, seen: Seen, effect: Effect) -> None:
        """An effect is durable."""

    def on_voted(self, seen: Seen, state: ElectionState) -> None:
        """Election state is durable."""

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        """A message left the node."""

    def on_received(self, seen: Seen, sender: NodeId, message: Message) -> None:
        """A message is about to be handed to the node, which has not seen it yet."""

    def on_request(self, seen: Seen, sender: NodeId, received: ReceivedRequest) -> None:
        """As ``on_received``, with what the node knows of the sender of a request."""

    def on_committed(self, seen: Seen, batches: list[Batch], end_offset: int) -> None:
        """A node is the first to call ``batches``, up to ``end_offset``, committed."""

    def on_stepped(self, seen: Seen) -> None:
        """A node has done something."""

    def on_checkpoint(self, seen: Seen, snapshot_id: SnapshotId, content: bytes) -> None:
        """A checkpoint file got its final name."""

    def on_published(self, seen: Seen, told: Published) -> None:
        """Those who follow a node's image are told of a step."""

    def on_watched(self, seen: Seen, end_offset: int) -> None:
        """A watcher is handed everything below ``end_offset`` that it had not yet."""

    def on_acknowledged(
        self, seen: Seen, offset: int, key: CommandKey, content: Command | None
    ) -> None:
        """A client is told that its write is done, at ``offset`` (exclusive).

        ``key`` and ``content`` are None where it may have no batch of its own.
        """

    def on_block(self, seen: Seen, command: tuple[int, int, int], first: int, count: int) -> None:
        """A broker is told that ``count`` producer ids from ``first`` on are its own."""

    def on_read(self, seen: Seen, begun: ReadBegun, offset: int) -> None:
        """A read that began at ``begun`` was confirmed at ``offset``."""
