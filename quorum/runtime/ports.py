"""What the driver needs around it: a writer, a network and the state machine's ear.

Unlike ``quorum.ports`` these speak the core's vocabulary. In production they are a thread,
gRPC streams and the controller; in the simulator a scheduled disk, a message queue and the
very same controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from quorum.core.contract.local_events import LocalEvent
from quorum.core.contract.output import Effect, LeadershipChanged
from quorum.core.messages.message_types import Message
from quorum.types import NodeId, SnapshotId
from quorum.values import value


@value
class WriteGroup:
    """Effects of one ticket, in order; payloads are filled in."""

    ticket: int
    effects: tuple[Effect, ...]


@value
class WriteDone:
    """All groups up to and including ``ticket`` are as durable as their effects say."""

    ticket: int
    facts: tuple[LocalEvent, ...]
    flushed: bool
    """Whether the log was synced (for the fsync histogram)."""
    sync_seconds: float = 0.0


class Writer(Protocol):
    """Executes write groups in the order given and reports each completion once."""

    def submit(self, group: WriteGroup) -> None:
        """Queue a group. Never blocks. Completion arrives at ``Driver.write_done``."""


class Network(Protocol):
    """Carries messages to peers; may lose, delay, duplicate or reorder them."""

    def send(self, to: NodeId, message: Message) -> None:
        """Queue a message. Never blocks and never raises for an unreachable peer."""

    def set_peers(self, addresses: Mapping[NodeId, str], *, is_hint: bool = False) -> None:
        """Where peers are now; connections to them are kept open."""


class Listener(Protocol):
    """The state machine side of a replica. All calls come from the driver's thread, in order."""

    def on_committed(self, data: bytes, end_offset: int) -> None:
        """Whole committed batches, contiguous with what was delivered before."""

    def on_snapshot(self, snapshot_id: SnapshotId) -> None:
        """Forget the image and load this checkpoint; delivery goes on at its end offset."""

    def on_leadership(self, change: LeadershipChanged) -> None:
        """Who leads changed; see ``LeadershipChanged`` for what that means for proposals."""

    def on_truncated(self, end_offset: int) -> None:
        """Uncommitted records at and above ``end_offset`` are gone."""

    def on_read_confirmed(self, token: int, read_offset: int) -> None:
        """A linearizable read may be answered at or above ``read_offset``."""

    def on_read_failed(self, token: int) -> None:
        """A linearizable read was not confirmed; it may be asked again elsewhere."""
