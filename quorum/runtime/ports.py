"""What the driver needs around it: a host with a writer and a network, and a state machine.

Unlike ``quorum.ports`` these speak the core's vocabulary. In production they are a thread,
gRPC streams and the controller; in the simulator a scheduled disk, a message queue and the
very same controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from quorum.core.contract.events import Event
from quorum.core.contract.local_events import LocalEvent
from quorum.core.contract.output import Effect, LeadershipChanged
from quorum.core.messages.message_types import Message
from quorum.ports import Clock
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


class Host(Protocol):
    """What one driver runs in. To be inherited; all calls come from the driver's thread."""

    clock: Clock
    writer: Writer
    network: Network
    defers_delivery: bool = False
    """Whether a replica that does not lead delivers only in ``Driver.deliver``, which the host
    calls after ``on_delivery_due``."""

    def on_event(self, event: Event) -> None:
        """The core reports something that operators want to see or count."""

    def on_deadline(self, deadline_ms: int) -> None:
        """``Driver.tick`` is wanted by then, in milliseconds of ``clock``.

        Called with the first deadline after each tick, and then with earlier ones only.
        """

    def on_delivery_due(self, is_urgent: bool) -> None:  # noqa: FBT001, ARG002 - one argument
        """``Driver.deliver`` is wanted: soon, or at once if ``is_urgent``.

        Called once for commits that may gather, and once more when something urgent follows.
        """
        return

    def on_failure(self, error: BaseException) -> None:
        """The node must stop: its disk failed, or its log was quarantined."""


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
