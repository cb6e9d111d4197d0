"""Ports of the driver: a host with a writer and a network, and the state machine's listener.

Unlike ``quorum.ports``, these use the core's types. In production they are a thread, gRPC streams
and the controller; in the simulator a scheduled disk, a message queue and the same controller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from quorum.batch import VerifiedBatches
from quorum.core.contract.events import Event
from quorum.core.contract.local_events import LocalEvent
from quorum.core.contract.output import Effect, LeadershipChanged
from quorum.core.messages.message_types import Message
from quorum.ports import Clock
from quorum.types import NodeId, SnapshotId
from quorum.values import value

TURN_BYTES: Final = 1 << 16
"""Committed record bytes after which a turn of the event loop ends, though more could be delivered.

Applying them takes 3 ms if they create partitions, and 20 ms if they are the smallest writes. Peers
wait meanwhile. Ranges of 1 MiB would cost a tenth less.
"""


@value
class WriteGroup:
    """Effects of one ticket, in order, with their payloads."""

    ticket: int
    effects: tuple[Effect, ...]


@value
class WriteDone:
    """Completion of all groups up to and including ``ticket``."""

    ticket: int
    local_events: tuple[LocalEvent, ...]
    flushed: bool
    """Whether the log was synced (for the fsync histogram)."""
    sync_seconds: float = 0.0
    is_inline: bool = False
    """Whether the pass ran on the event loop's thread (``inline_writer``)."""


class Writer(Protocol):
    """Executes write groups in order and reports each completion once."""

    def submit(self, group: WriteGroup) -> None:
        """Queue a group. Never blocks. The completion goes to ``Driver.write_done``."""


class Network(Protocol):
    """Carries messages to peers; may lose, delay, duplicate or reorder them."""

    def send(self, to: NodeId, message: Message) -> None:
        """Queue a message. Never blocks and never raises for an unreachable peer."""

    def set_peers(self, addresses: Mapping[NodeId, str], *, is_hint: bool = False) -> None:
        """Set peers' addresses; connections to them are kept open."""


class Host(Protocol):
    """Environment of one driver. To be inherited; all calls come from the driver's thread."""

    clock: Clock
    writer: Writer
    network: Network
    defers_delivery: bool = False
    """Whether a replica that does not lead delivers only in ``Driver.deliver``, which the host
    calls after ``on_delivery_due``."""
    delivery_turn_bytes: int = TURN_BYTES
    """Committed record bytes, at least one batch, of one turn of a replica that does not lead."""

    def on_event(self, event: Event) -> None:
        """Handle an event of the core, for logs and metrics."""

    def on_deadline(self, deadline_ms: int) -> None:
        """Schedule ``Driver.tick`` by then, in milliseconds of ``clock``.

        Called with the first deadline after each tick, and afterwards only with earlier ones.
        """

    def on_delivery_due(self, is_urgent: bool) -> None:  # noqa: FBT001, ARG002 - one argument
        """Schedule ``Driver.deliver``: soon, or at once if ``is_urgent``.

        Called once for commits that may gather, and once more when urgent work follows.
        """
        return

    def on_failure(self, error: BaseException) -> None:
        """Stop the node: its disk failed, or its log was quarantined."""


class Listener(Protocol):
    """The state machine of a replica. All calls come from the driver's thread, in order."""

    def on_committed(
        self, data: bytes, end_offset: int, verified: Sequence[VerifiedBatches] = ()
    ) -> None:
        """Apply whole committed batches, contiguous with those delivered before.

        ``verified`` are the same batches with their headers, if this process has verified them
        before. Else it is empty, and the listener verifies ``data``.
        """

    def on_snapshot(self, snapshot_id: SnapshotId) -> None:
        """Replace the image by this checkpoint; delivery continues at its end offset."""

    def on_leadership(self, change: LeadershipChanged) -> None:
        """Handle a change of leader; see ``LeadershipChanged`` for its meaning for proposals."""

    def on_truncated(self, end_offset: int) -> None:
        """Drop uncommitted records at and above ``end_offset``."""

    def on_read_confirmed(self, token: int, read_offset: int) -> None:
        """Answer a linearizable read from an image at or above ``read_offset``."""

    def on_read_failed(self, token: int) -> None:
        """Fail a linearizable read that was not confirmed; another replica may confirm it."""
