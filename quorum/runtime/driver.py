"""The driver: feeds the pure core and carries out what it answers, in the order it demands.

Synchronous and free of threads, sockets and clocks of its own, so that the very same object
runs in production (under ``quorum.runtime.shell``) and in the simulator. It owns the tail of
the log in memory: records are served to replicas from there while the writer is still busy,
and read from the disk only for replicas that are far behind.

Invariants, of which DESIGN.md has more:
    1. ``persist`` of an output is submitted before any of its messages leaves.
    2. A promise leaves only when its ticket was reported durable.
    3. The bytes of a Fetch answer are read when the core decided on them, never later, so a
       truncation in between cannot change what the answer says.
    4. Listeners see committed ranges once, contiguous and in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from quorum.batch import with_position
from quorum.core.contract.events import MessageIgnored
from quorum.core.contract.local_events import (
    DurableState,
    LeaseChanged,
    LocalEvent,
    RequestFailed,
    Resign,
    SnapshotRemoved,
)
from quorum.core.contract.output import (
    Append,
    Effect,
    HighWatermarkAdvanced,
    LeaderEndpoints,
    LeadershipChanged,
    LogTruncated,
    Output,
    PeerEndpoints,
    Progress,
    QuarantineLog,
    ReadConfirmed,
    ReadFailed,
    ReplaceLogWith,
    RequestSettled,
    SnapshotInstalled,
    Truncate,
    VerifyLog,
    VoterChangeAnswered,
    VotersChanged,
)
from quorum.core.messages.message_types import Message
from quorum.core.messages.snapshot_messages import FetchSnapshotResponse
from quorum.core.node.raft_node import RaftNode
from quorum.errors import LogQuarantinedError, invariant
from quorum.ports import LogStore, SnapshotStore
from quorum.runtime.addresses import addresses_in
from quorum.runtime.chain import ChainDigests
from quorum.runtime.control_batches import ControlBatches
from quorum.runtime.deferred_delivery import DeferredDelivery
from quorum.runtime.delivery import Delivery
from quorum.runtime.flushed_end import FlushedEnd
from quorum.runtime.operator_requests import OnSettled, OperatorRequests
from quorum.runtime.pause_detector import PauseDetector
from quorum.runtime.ports import Host, Listener, WriteDone, WriteGroup
from quorum.runtime.promises import Promises
from quorum.runtime.received import proven
from quorum.runtime.serving import Serving
from quorum.runtime.tail import TailCache
from quorum.runtime.voter_changes import VoterChanges
from quorum.types import NO_NODE, NodeId, SnapshotId, VersionRange


class Driver:
    """One replica's turning wheel. Every method is called from one thread.

    Life-cycle: construct, ``start``, then any of the entry points until dropped.
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
        """Connect everything; nothing runs before ``start``.

        ``on_verify`` reads the log's files again and reports ``LogVerified``. Coming
        ``process_pause_ms`` late to a deadline is reported to the core; 0: never.
        """
        self.node = node
        self.log = log
        self.snapshots = snapshots
        self.tail = TailCache()
        self.voter_changes = VoterChanges(self.on_local_event)
        self.leader_endpoints: tuple[NodeId, tuple[str, ...]] = (NO_NODE, ())
        """The leader last heard of and the addresses it announced, peers' listener first."""
        self._host = host
        self._listener = listener
        self._deferred = DeferredDelivery(host.on_delivery_due) if host.defers_delivery else None
        self._on_verify = on_verify
        self._quarantined_log: tuple[int, LogQuarantinedError] | None = None
        self._chain = ChainDigests(log)
        self._promises = Promises(
            lambda each: host.network.send(each.to, self._chain.leaving(each.message))
        )
        self._pause_detector = PauseDetector(process_pause_ms)
        self._flushed = FlushedEnd()
        self._progress: deque[Progress | LocalEvent] = deque()
        self._is_draining = False
        self._delivery = Delivery(self.read_records, listener)
        self._serving = Serving(self.read_records, snapshots, self._progress.append)
        self._requests = OperatorRequests()
        self.controls = ControlBatches(host.clock, self.read_records)
        self._leased: tuple[SnapshotId, ...] = ()

    # ------------------------------------------------------------------ what is so now

    @property
    def is_leader(self) -> bool:
        """Whether this replica leads its epoch, durably."""
        return self.node.is_leader

    @property
    def can_write(self) -> bool:
        """Whether it leads and has committed a record of its own epoch."""
        return self.node.can_write

    @property
    def epoch(self) -> int:
        """The current epoch."""
        return self.node.epoch

    @property
    def leader_id(self) -> NodeId:
        """Who leads the epoch, ``NO_NODE`` when unknown."""
        return self.node.leader_id

    @property
    def log_end(self) -> int:
        """Next offset to be given out."""
        return self.node.log_end_offset

    @property
    def high_watermark(self) -> int:
        """Everything below is committed."""
        return self.node.high_watermark

    @property
    def flushed_end(self) -> int:
        """Everything below is durable on this replica's own disk."""
        return self._flushed.offset

    @property
    def stamp_floor_ms(self) -> int:
        """Newest stamp of what is applied, and of control batches this replica has appended."""
        return self.controls.newest_stamp_ms

    def voter_versions(self) -> Mapping[NodeId, Sequence[VersionRange] | None]:
        """What each voter says that it can run with, to its leader; None while that is unknown."""
        return {each.key.id: each.supported for each in self.node.replicas() if each.is_voter}

    @property
    def is_delivery_due(self) -> bool:
        """Whether anything waits for ``deliver``."""
        return self._deferred is not None and self._deferred.is_due

    # ------------------------------------------------------------------ entry points

    def start(self, state: DurableState, *, delivered_end: int, last_timestamp: int) -> None:
        """Begin as what was found on disk.

        Args:
            state: As recovery left it.
            delivered_end: The listener's image already contains everything below this; the
                rest up to the stored high watermark is delivered before the core starts.
            last_timestamp: Stamp of the newest checkpoint or record, for an empty log.
        """
        self._delivery.restart_at(delivered_end)
        self.controls.newest_stamp_ms = last_timestamp
        self._flushed.replaced(state.log_end.offset)
        self.tail.reset(state.log_end.offset)
        self._delivery.deliver_to(state.high_watermark)
        self._carry_out(self.node.start(self._now(), state))

    def receive(self, sender: NodeId, message: Message) -> None:
        """Take a message from a peer. Records are verified before the core sees them."""
        message, refused = proven(message, self.node.log_end_offset)
        if refused:
            is_violation = type(message) is FetchSnapshotResponse
            self._host.on_event(
                MessageIgnored(sender, type(message).__name__, refused, is_violation)
            )
            self.on_local_event(RequestFailed(sender, message.request_id))
            return
        message = self._chain.arriving(message)
        self._carry_out(self.node.receive(self._now(), sender, message))

    def propose(self, batches: Sequence[bytes], record_counts: Sequence[int]) -> int:
        """Leader only: give each batch its offsets, append all as one write, return its end."""
        now_ms = self._now()
        offset = self.node.log_end_offset
        epoch = self.node.epoch
        stamped = []
        for batch, count in zip(batches, record_counts, strict=True):
            stamped.append(with_position(batch, offset, epoch))
            offset += count
        payload = stamped[0] if len(stamped) == 1 else b"".join(stamped)
        self._carry_out(self.node.propose(now_ms, end_offset=offset, payload=payload))
        return offset

    def read(self, token: int) -> None:
        """Confirm that this replica leads; the listener hears the outcome."""
        self._carry_out(self.node.read(self._now(), token))

    def ask_position(self, token: int) -> None:
        """Ask for a linearizable read position, here or at the leader; the listener hears it."""
        self._carry_out(self.node.ask_position(self._now(), token))

    def resign(self, reason: str) -> None:
        """Give up leadership, if this replica has it."""
        self.on_local_event(Resign(reason))

    def on_local_event(self, fact: LocalEvent) -> None:
        """Tell the core a local fact or an operator's request."""
        self._carry_out(self.node.on_local_event(self._now(), fact))

    def ask(self, request: Callable[[int], LocalEvent], on_settled: OnSettled) -> None:
        """Make an operator's request, which carries the token given to it; answered once."""
        self.on_local_event(request(self._requests.add(on_settled)))

    def tick(self) -> None:
        """The deadline has come (or earlier: a tick too many does nothing)."""
        leased = self.snapshots.leased(self._host.clock.now_ms())
        if leased != self._leased:
            self._leased = leased
            self._carry_out(self.node.on_local_event(self._now(), LeaseChanged(leased)))
        self._carry_out(self.node.tick(self._now()))

    def write_done(self, done: WriteDone) -> None:
        """Everything up to ``done.ticket`` is durable: promises may leave."""
        if self._flushed.durable(done.ticket):
            self.tail.evict_below(self._flushed.offset)
        self._promises.durable(done.ticket)
        self._carry_out(self.node.persisted(self._now(), done.ticket))
        for fact in done.facts:
            self.on_local_event(fact)
        if (ended := self._quarantined_log) is not None and done.ticket >= ended[0]:
            self._quarantined_log = None
            self._host.on_failure(ended[1])

    # ------------------------------------------------------------------ reading records

    def read_records(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        """Whole batches from ``offset`` on and below ``end_offset``; at least one.

        Raises:
            StorageError: The log file could not be read.
        """
        data = self.tail.read(offset, max_bytes, end_offset)
        if data is None:
            data = self.log.read(
                offset, max_bytes, end_offset=min(end_offset, self.tail.start_offset)
            )
        return data

    # ------------------------------------------------------------------ carrying out

    def _now(self) -> int:
        """The time of an entry; if it comes late, the core hears of that first."""
        now_ms = self._host.clock.now_ms()
        late_ms = self._pause_detector.late_by(now_ms)
        if late_ms:
            self._carry_out(self.node.process_paused(now_ms, late_ms))
        return now_ms

    def deliver(self) -> None:
        """Tell the listener what has been put off; does nothing when there is nothing."""
        if self._deferred is not None:
            self._deferred.told()
        self._drain_progress()

    def _carry_out(self, output: Output) -> None:
        if output.persist:
            if self._progress and any(type(effect) is not Append for effect in output.persist):
                # What was put off is read from the log as it is now.
                self.deliver()
            self._submit(output.ticket, output.persist)
        if output.after_persist:
            for promise in output.after_persist:
                message = self._serving.fill(promise.message)
                if message is not promise.message:
                    promise = replace(promise, message=message)
                self._promises.add(promise)
            self._promises.release()
        for send in output.immediate:
            message = self._chain.leaving(self._serving.fill(send.message))
            self._host.network.send(send.to, message)
        for event in output.events:
            self._host.on_event(event)
        self._pause_detector.due_ms = output.next_deadline_ms
        self._host.on_deadline(output.next_deadline_ms)
        if output.progress:
            self._progress.extend(output.progress)
        if self._progress:
            self._see_to_delivery(is_writing=bool(output.persist))

    def _submit(self, ticket: int, effects: Sequence[Effect]) -> None:
        prepared: list[Effect] = []
        for effect in effects:
            if type(effect) is Append:
                if effect.payload is None:
                    encoded = self.controls.encode(effect, self.node.log_start.offset)
                    effect = replace(effect, payload=encoded)
                payload = effect.payload or b""
                invariant(payload, "an append has bytes", base=effect.base_offset)
                self.tail.append(payload, effect.base_offset, effect.end_offset)
                self._flushed.appended(ticket, effect.end_offset)
            elif type(effect) is Truncate:
                self.tail.truncate_to(effect.end_offset)
                self._flushed.truncated(effect.end_offset)
            elif type(effect) is ReplaceLogWith:
                self.tail.reset(effect.snapshot_id.offset)
                self._flushed.replaced(effect.snapshot_id.offset)
            elif type(effect) is QuarantineLog:
                reason = LogQuarantinedError(effect.cause, offset=effect.first_offset)
                self._quarantined_log = (ticket, reason)
            prepared.append(effect)
        self._host.writer.submit(WriteGroup(ticket, tuple(prepared)))

    # ------------------------------------------------------------------ telling others

    def _see_to_delivery(self, *, is_writing: bool) -> None:
        """Deliver now, or after the messages of this turn; while writing, when that is done."""
        if self._deferred is None or self.node.is_leader:
            self._drain_progress()
        elif not is_writing:
            self._deferred.note(self._progress, self._delivery.end_offset)

    def _drain_progress(self) -> None:
        # A listener may propose from inside a call; what that brings about waits its turn here.
        if self._is_draining:
            return
        self._is_draining = True
        try:
            while self._progress:
                self._notify(self._progress.popleft())
        finally:
            self._is_draining = False

    def _notify(self, progress: Progress | LocalEvent) -> None:
        listener = self._listener
        match progress:
            case HighWatermarkAdvanced(high_watermark=high_watermark):
                self._delivery.deliver_to(high_watermark)
            case LeadershipChanged():
                listener.on_leadership(progress)
            case LogTruncated(end_offset=end_offset):
                listener.on_truncated(end_offset)
            case SnapshotInstalled(snapshot_id=snapshot_id):
                self._delivery.restart_at(snapshot_id.offset)
                listener.on_snapshot(snapshot_id)
            case ReadConfirmed(token=token, read_offset=read_offset):
                listener.on_read_confirmed(token, read_offset)
            case ReadFailed(token=token):
                listener.on_read_failed(token)
            case RequestSettled():
                self._requests.settle(progress)
            case VotersChanged() | LeaderEndpoints() | PeerEndpoints():
                if isinstance(progress, LeaderEndpoints):
                    self.leader_endpoints = (progress.leader.id, progress.addresses)
                is_hint = not isinstance(progress, VotersChanged)
                self._host.network.set_peers(addresses_in(progress), is_hint=is_hint)
            case VoterChangeAnswered():
                self.voter_changes.answered(progress)
            case _:
                self._notify_shell(progress)

    def _notify_shell(self, progress: Progress | LocalEvent) -> None:
        if type(progress) is VerifyLog:
            self._on_verify(progress)
        elif type(progress) is SnapshotRemoved:
            self.on_local_event(progress)
