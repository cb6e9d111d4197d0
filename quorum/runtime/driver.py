"""The driver: passes inputs to the pure core and carries out its outputs in the required order.

It is synchronous and has no threads, sockets or clocks, so that the same object runs in production
(under ``quorum.runtime.shell``) and in the simulator. It owns the in-memory tail of the log.
Replicas get records from the tail while the writer is still busy; only records that a replica far
behind needs are read from disk.

Invariants; DESIGN.md has more:
    1. ``persist`` of an output is submitted before its messages leave, in the order of tickets.
    2. A promise leaves only when its ticket was reported durable.
    3. The bytes of a Fetch answer are read when the core decides on them, never later, so a
       truncation in between cannot change the answer.
    4. Listeners see committed ranges once, contiguous and in order.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from quorum.batch import BatchHeader
from quorum.core.contract.events import MessageIgnored
from quorum.core.contract.local_events import (
    AddVoter,
    DurableState,
    LeaseChanged,
    LocalEvent,
    RemoveVoter,
    RequestFailed,
    Resign,
    TransferLeadership,
    UpdateVoter,
)
from quorum.core.contract.output import (
    Append,
    Effect,
    HighWatermarkAdvanced,
    Output,
    Progress,
    Promise,
    QuarantineLog,
    ReplaceLogWith,
    StoreHighWatermark,
    Truncate,
    VerifyLog,
)
from quorum.core.messages.fetch_messages import FetchResponse
from quorum.core.messages.message_types import Incoming, Message, Received
from quorum.core.messages.snapshot_messages import FetchSnapshotResponse
from quorum.core.node.raft_node import RaftNode
from quorum.core.state.held_fetches import NEVER_MS
from quorum.errors import LogQuarantinedError, violation
from quorum.ports import LogStore, SnapshotStore
from quorum.runtime.chain import ChainDigests
from quorum.runtime.control_batches import ControlBatches
from quorum.runtime.delivery import DeferredDelivery, Delivery
from quorum.runtime.notifications import Notifications, OnSettled
from quorum.runtime.peer_addresses import PeerAddresses
from quorum.runtime.ports import Host, Listener, WriteDone, WriteGroup
from quorum.runtime.proposals import checked_end
from quorum.runtime.received import proven
from quorum.runtime.serving import Serving
from quorum.runtime.tail import TailCache
from quorum.types import NodeId, SnapshotId, VersionRange

OperatorRequest: TypeAlias = AddVoter | RemoveVoter | UpdateVoter | TransferLeadership
_REMOVE_NOTHING = frozenset((Append, StoreHighWatermark))


class Driver:
    """Drives one replica. Every method is called from one thread.

    Life-cycle: construct, ``prepare``, ``start``, then any of the entry points.
    """

    def __init__(
        self,
        node: RaftNode,
        host: Host,
        *,
        log: LogStore,
        snapshots: SnapshotStore,
        listener: Listener,
        on_verify: Callable[[VerifyLog], None],
        process_pause_ms: int,
    ) -> None:
        """Connect all parts; nothing runs before ``prepare``.

        ``on_verify`` verifies the log's files and reports ``LogVerified``. A delay of
        ``process_pause_ms`` behind a deadline is reported to the core; 0: never.
        """
        self.node = node
        self.tail = TailCache()
        self.controls = ControlBatches(host.clock, self.read_records)
        self.addresses = PeerAddresses(host.network)
        self._host = host
        self._log = log
        self._snapshots = snapshots
        self._process_pause_ms = process_pause_ms
        self._due_ms: int | None = None
        self.now_ms = 0
        """Time of the latest entry, in milliseconds of the host's clock."""
        self.armed_ms = NEVER_MS
        """When the host calls ``tick`` at the latest."""
        self._chain = ChainDigests(log)
        self._promises: deque[tuple[int, NodeId, Message]] = deque()
        self._durable_ticket = 0
        self._progress: deque[Progress | LocalEvent] = deque()
        self._is_draining = False
        self._later: list[Output] | None = None
        """An output that a delivery comes before, and those of later tickets; else None."""
        self._delivery = Delivery(self.read_records, self.tail.verified, listener)
        self._deferred = DeferredDelivery(host.on_delivery_due) if host.defers_delivery else None
        self._notifications = Notifications(
            self._delivery, listener, self.addresses, on_verify, self.on_local_event
        )
        self._serving = Serving(self.read_records, snapshots, self._progress.append)
        self._tokens = itertools.count(1)
        self._leased: tuple[SnapshotId, ...] = ()
        self._quarantined_log: tuple[int, LogQuarantinedError] | None = None

    # ------------------------------------------------------------------ current state

    def voter_versions(self) -> Mapping[NodeId, Sequence[VersionRange] | None]:
        """Return each voter's supported versions, on the leader; None while unknown."""
        return {each.key.id: each.supported for each in self.node.replicas() if each.is_voter}

    @property
    def is_delivery_due(self) -> bool:
        """Whether new commits gather for ``deliver``; not for the rest of many older ones."""
        return self._deferred is not None and self._deferred.is_due

    @property
    def has_delivery_left(self) -> bool:
        """Whether older commits are left that take more turns of ``deliver``."""
        return self._deferred is not None and self._deferred.has_rest

    # ------------------------------------------------------------------ entry points

    def prepare(self, state: DurableState, *, delivered_end: int, last_timestamp: int) -> None:
        """Take the recovered state.

        Args:
            state: As recovery left it.
            delivered_end: The listener's image contains everything below this; the rest up to
                the stored high watermark is delivered before the core starts.
            last_timestamp: Stamp of the newest checkpoint or record, for an empty log.
        """
        self._delivery.restart_at(delivered_end)
        self.controls.newest_stamp_ms = last_timestamp
        self.tail.reset(state.log_end.offset)

    def replay(self, state: DurableState) -> bool:
        """Deliver one turn's worth up to the stored high watermark; return whether more is left."""
        self._delivery.deliver_some(state.high_watermark, self._host.delivery_turn_bytes)
        return self._delivery.end_offset < state.high_watermark

    def start(self, state: DurableState) -> None:
        """Start the core, after everything up to the stored high watermark was delivered."""
        self._delivery.deliver_to(state.high_watermark)
        self._carry_out(self.node.start(self._now(), state))

    def receive(self, sender: NodeId, message: Received) -> None:
        """Process a message from a peer. Records are verified before the core sees them."""
        incoming: Incoming
        if isinstance(message, FetchResponse | FetchSnapshotResponse):
            incoming, refused = proven(message, self.node.log_end_offset)
            if refused is not None:
                is_violation = type(message) is FetchSnapshotResponse
                self._host.on_event(
                    MessageIgnored(sender, type(message).__name__, *refused, is_violation)
                )
                self.on_local_event(RequestFailed(sender, message.request_id))
                return
        else:
            incoming = self._chain.arriving(message)
        self._carry_out(self.node.receive(self._now(), sender, incoming))

    def propose(self, batches: Sequence[bytes], headers: Sequence[BatchHeader]) -> int:
        """Append batches as one write and return its end. Leader only.

        They were encoded for the log's end in this epoch, and ``headers`` are theirs.
        """
        now_ms = self._now()
        node = self.node
        end_offset = checked_end(batches, headers, node.log_end_offset, node.epoch)
        payload = batches[0] if len(batches) == 1 else b"".join(batches)
        self._carry_out(
            node.propose(now_ms, end_offset=end_offset, payload=payload, headers=headers)
        )
        return end_offset

    def read(self, token: int) -> None:
        """Confirm that this replica leads; the listener gets the outcome."""
        self._carry_out(self.node.read(self._now(), token))

    def ask_position(self, token: int) -> None:
        """Request a linearizable read position, here or from the leader, for the listener."""
        self._carry_out(self.node.ask_position(self._now(), token))

    def resign(self) -> None:
        """Resign if this replica leads."""
        self.on_local_event(Resign())

    def on_local_event(self, event: LocalEvent) -> None:
        """Pass a local event or an operator's request to the core."""
        self._carry_out(self.node.on_local_event(self._now(), event))

    def ask(self, request: OperatorRequest, on_settled: OnSettled) -> None:
        """Send an operator's request, with a token drawn here, to the core.

        ``on_settled`` is called once, perhaps before this returns, unless the process ends first.
        """
        token = next(self._tokens)
        self._notifications.asked[token] = on_settled
        self.on_local_event(replace(request, token=token))

    def tick(self) -> None:
        """Handle a deadline; an early call does nothing."""
        self.armed_ms = NEVER_MS
        now_ms = self._now()
        leased = self._snapshots.leased(now_ms)
        if leased != self._leased:
            self._leased = leased
            self._carry_out(self.node.on_local_event(now_ms, LeaseChanged(leased)))
        self._carry_out(self.node.tick(now_ms))

    def write_done(self, done: WriteDone) -> None:
        """Release the promises and effects up to ``done.ticket``, which is durable."""
        self._durable_ticket = done.ticket
        if self._promises:
            self._release_promises()
        self._carry_out(self.node.persisted(self._now(), done.ticket))
        self.tail.evict_below(self.node.flushed_end_offset)
        for event in done.local_events:
            self.on_local_event(event)
        if (ended := self._quarantined_log) is not None and done.ticket >= ended[0]:
            self._quarantined_log = None
            self._host.on_failure(ended[1])

    # ------------------------------------------------------------------ reading records

    def read_records(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        """Return whole batches from ``offset`` on and below ``end_offset``; at least one.

        Raises:
            StorageError: The log file could not be read.
        """
        data = self.tail.read(offset, max_bytes, end_offset)
        if data is None:
            data = self._log.read(
                offset, max_bytes, end_offset=min(end_offset, self.tail.start_offset)
            )
        return data

    # ------------------------------------------------------------------ carrying out

    def wake_by(self, deadline_ms: int) -> None:
        """Request a ``tick`` by ``deadline_ms``; the earliest since the last tick counts."""
        if deadline_ms < self.armed_ms:
            self.armed_ms = deadline_ms
            self._host.on_deadline(deadline_ms)

    def _now(self) -> int:
        """Return the time of an entry. If it is late for the core's last deadline, the process
        was paused; report that to the core first (``quorum.core.liveness.process_pause``).
        """
        self.now_ms = now_ms = self._host.clock.now_ms()
        due_ms = self._due_ms
        if due_ms is not None and 0 < self._process_pause_ms < now_ms - due_ms:
            self._due_ms = None
            self._carry_out(self.node.process_paused(now_ms, now_ms - due_ms))
        return now_ms

    def deliver(self) -> None:
        """Deliver deferred progress; a replica that does not lead ``delivery_turn_bytes`` of it."""
        deferred = self._deferred
        if deferred is None or self.node.is_leader:
            self._deliver_all()
            return
        deferred.delivered()
        self._drain_progress(self._host.delivery_turn_bytes)
        if self._progress and not self._is_draining:
            # The host is asked for another call; messages of peers come in between.
            deferred.leave_rest()

    def _deliver_all(self) -> None:
        if self._deferred is not None:
            self._deferred.delivered()
        self._drain_progress()

    def _carry_out(self, output: Output) -> None:
        if self._later is not None or (
            output.persist
            and self._progress
            and not self._is_draining
            and not _REMOVE_NOTHING.issuperset(map(type, output.persist))
        ):
            self._carry_out_in_order(output)
            return
        if output.persist:
            self._submit(output.ticket, output.persist)
        if output.after_persist:
            self._promise(output.after_persist)
        for send in output.immediate:
            message = self._serving.message(send.message)
            if type(message) is not FetchResponse:
                message = self._chain.leaving(message)
            self._host.network.send(send.to, message)
        for event in output.events:
            self._host.on_event(event)
        self._due_ms = deadline_ms = output.next_deadline_ms
        if deadline_ms is not None and deadline_ms < self.armed_ms:
            self.wake_by(deadline_ms)
        if output.progress:
            self._progress.extend(output.progress)
        if self._progress:
            # Deliver at once, or after this turn's messages; if it writes, after the write.
            if self._deferred is None or self.node.is_leader:
                self._drain_progress()
            elif not output.persist:
                self._deferred.note(self._progress, self._delivery.end_offset)

    def _carry_out_in_order(self, output: Output) -> None:
        """Deliver deferred records, then carry out an output that may remove them from the log.

        A listener may enter the core meanwhile. Its outputs wait, because their tickets are later.
        """
        if self._later is not None:
            self._later.append(output)
            return
        self._later = later = [output]
        self._deliver_all()
        self._later = None
        self._is_draining = True
        for each in later:
            self._carry_out(each)
        self._is_draining = False
        if self.node.is_leader:
            self._drain_progress()

    def _promise(self, promises: Iterable[Promise]) -> None:
        for promise in promises:
            message = self._serving.message(promise.message)
            self._promises.append((promise.ticket, promise.to, message))
        self._release_promises()

    def _release_promises(self) -> None:
        """Send the promises whose writes are done, in order."""
        promises = self._promises
        while promises and promises[0][0] <= self._durable_ticket:
            _, to, message = promises.popleft()
            self._host.network.send(to, self._chain.leaving(message))

    def _submit(self, ticket: int, effects: Sequence[Effect]) -> None:
        prepared: list[Effect] = []
        for effect in effects:
            if type(effect) is Append:
                if effect.payload is None:
                    encoded = self.controls.encode(effect, self.node.log_start.offset)
                    effect = replace(effect, payload=encoded)
                payload = effect.payload or b""
                if not payload:
                    raise violation("an append has bytes", base=effect.base_offset)
                self.tail.append(payload, effect.base_offset, effect.end_offset, effect.headers)
            elif type(effect) is Truncate:
                self.tail.truncate_to(effect.end_offset)
            elif type(effect) is ReplaceLogWith:
                self.tail.reset(effect.snapshot_id.offset)
            elif type(effect) is QuarantineLog:
                reason = LogQuarantinedError(effect.cause, offset=effect.first_offset)
                self._quarantined_log = (ticket, reason)
            prepared.append(effect)
        self._host.writer.submit(WriteGroup(ticket, tuple(prepared)))

    # ------------------------------------------------------------------ notifications

    def _drain_progress(self, bytes_max: int | None = None) -> None:
        # A listener may propose from inside a call; the resulting progress is queued here.
        if self._is_draining:
            return
        self._is_draining = True
        try:
            while self._progress:
                first = self._progress[0]
                if bytes_max is not None and type(first) is HighWatermarkAdvanced:
                    if bytes_max <= 0:
                        break
                    end = first.high_watermark
                    bytes_max -= self._delivery.deliver_some(end, bytes_max)
                    if self._delivery.end_offset >= end:
                        self._progress.popleft()
                    continue
                self._notifications.notify(self._progress.popleft())
        finally:
            self._is_draining = False
