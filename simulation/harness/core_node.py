"""The core of one node, with a disk that completes work on request.

The explorer, ``relay_scale`` and the unit tests of the core derive from ``CoreNode``. Each has a
network and a clock of its own; outputs take effect in the driver's order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from quorum.core.contract.local_events import SnapshotSealed
from quorum.core.contract.output import Effect, Output, SealDownload
from quorum.core.messages.fetch_messages import (
    FetchDecision,
    ServeRecords,
)
from quorum.core.messages.message_types import Message, Outgoing
from quorum.core.messages.received_records import ReceivedRecords
from quorum.core.messages.snapshot_messages import ServeChunk
from quorum.core.node.raft_node import RaftNode
from quorum.types import NodeId, SnapshotId
from quorum.values import value
from simulation.harness.core_disk import Disk


@value
class Promised:
    """A message that is sent when the disk has completed a ticket."""

    ticket: int
    to: NodeId
    message: Message


@dataclass
class CoreNode(ABC):
    """A node without a driver: call an entry point of ``raft`` and give its output to ``take``."""

    raft: RaftNode
    disk: Disk
    """The durable content."""
    pending: list[tuple[int, tuple[Effect, ...]]] = field(default_factory=list, init=False)
    """Work submitted to the disk and not complete, by ticket."""
    promises: list[Promised] = field(default_factory=list, init=False)
    """Messages that wait for a ticket."""

    @property
    @abstractmethod
    def now_ms(self) -> int:
        """Return the time on the node's clock."""

    @abstractmethod
    def leave(self, to: NodeId, message: Message) -> None:
        """Send a message."""

    def after(self, disk: Disk, effect: Effect) -> Disk:
        """Return a disk after ``effect``."""
        return disk.after(effect, {})

    @property
    def written(self) -> Disk:
        """Return the disk's content once all submitted work is complete."""
        disk = self.disk
        for _, effects in self.pending:
            for effect in effects:
                disk = self.after(disk, effect)
        return disk

    def take(self, output: Output) -> None:
        """Apply the output of an entry point."""
        if output.persist:
            self.pending.append((output.ticket, tuple(output.persist)))
        for promise in output.after_persist:
            message = self.filled(promise.message)
            self.promises.append(Promised(promise.ticket, promise.to, message))
        for send in output.immediate:
            self.leave(send.to, self.filled(send.message))

    def persist(self) -> None:
        """Complete the oldest group submitted to the disk."""
        ticket, effects = self.pending.pop(0)
        for effect in effects:
            self.disk = self.after(self.disk, effect)
        due = [each for each in self.promises if each.ticket <= ticket]
        self.promises = [each for each in self.promises if each.ticket > ticket]
        for promise in due:
            self.leave(promise.to, promise.message)
        self.take(self.raft.persisted(self.now_ms, ticket))
        for effect in effects:
            if isinstance(effect, SealDownload):
                self.take(self.raft.on_local_event(self.now_ms, self.sealed(effect.snapshot_id)))

    def sealed(self, snapshot_id: SnapshotId) -> SnapshotSealed:
        """Return what the runtime reports of a completely downloaded snapshot."""
        return SnapshotSealed(snapshot_id, (), self.disk.snapshots[snapshot_id])

    def filled(self, decided: Outgoing) -> Message:
        """Return the message with what the runtime would read; see ``received`` for its records."""
        if isinstance(decided, FetchDecision):
            wanted, records = decided.content, b""
            if isinstance(wanted, ServeRecords):
                described: Any = self.read(wanted.offset, wanted.end_offset)
                records = described
            return decided.response(records)
        if isinstance(decided, ServeChunk):
            size = self.written.snapshots[decided.snapshot_id]
            chunk = bytes(min(decided.bytes_max, size - decided.position))
            return decided.response(size=size, chunk=chunk, file_digest=b"d")
        return decided

    def read(self, offset: int, end_offset: int) -> ReceivedRecords:
        """Return records of [offset, end_offset) for another node."""
        return self.written.read(offset, end_offset)
