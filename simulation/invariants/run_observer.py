"""Observes a cluster from outside: the harness reports events, and invariants check them.

It sees the effects submitted to each disk, the completed effects, the messages that each node sends
and the state that each node reports. It never looks at how a node decides. The cost of a check does
not grow with the length of the run.

For a node, the harness calls ``opened`` before ``Replica.start``; ``submitted`` with every group
that the driver gives to its writer; ``persisted`` when it is done; ``sent``; ``received`` before a
message is delivered; ``stepped`` after every entry point; ``checkpointed``; and ``stopped`` when
its process has ended. For clients, it calls ``acknowledged``, ``read_begins``, ``read_confirmed``
and ``watched``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quorate.controller.publishing import Published
from quorate.replica.replica import Replica
from quorum.config import QuorumConfig
from quorum.core.contract.output import (
    Append,
    ReplaceLogWith,
    SaveElectionState,
    SealDownload,
    StoreHighWatermark,
    Truncate,
)
from quorum.core.messages.message_types import Message, Received
from quorum.core.messages.vote_messages import VoteRequest
from quorum.core.state.roles import Leader
from quorum.runtime.ports import WriteGroup
from quorum.types import ElectionState, NodeId, ReplicaKey, SnapshotId
from simulation.invariants.listeners import Listeners
from simulation.invariants.mirror import Batch, LogMirror, Splitting
from simulation.invariants.seen import CommandKey, ReadBegun, Seen
from simulation.invariants.violation import Violation
from statemachine.commands import Command


class RunObserver:
    """One per cluster. Raises ``Violation`` from the call that shows it.

    It has no listeners until ``report_to``.
    """

    def __init__(self) -> None:
        self._followers: list[Callable[[list[Batch]], None]] = []
        splitting = Splitting()
        self.split = splitting.split
        """Splits whole, contiguous bytes of any log of this run into batches."""
        self.disguise = splitting.disguise
        """Treats a batch that a script has forged as the batch it replaced, in this run."""
        self._batches_of = splitting.batches_of
        self.nodes: dict[NodeId, Seen] = {}
        self.replaced: dict[ReplicaKey, Seen] = {}
        """Last incarnations on replaced disks; what those disks completed was acknowledged."""
        self.disks: dict[NodeId, int] = {}
        """How often each node's disk was replaced."""
        self.positions: dict[tuple[int, int], int] = {(0, 0): 0}
        """Chain of everything below, by (end offset, epoch of the batch before it)."""
        self.batches: dict[tuple[int, int], Batch] = {}
        self.committed = LogMirror()
        """All records that any node ever reported as committed."""
        self.committed_in: list[tuple[int, int]] = []
        """(epoch of the first node that reported it, committed end), ascending in both."""
        self.acknowledged_end = 0
        """Everything acknowledged to clients is below."""
        self.sequences: dict[tuple[int, int, int], int] = {}
        """Committed commands: producer id, epoch and sequence, to the end of the batch."""
        self.asked: set[tuple[int, int, int]] = set()
        """Commands that reached any node: producer id, epoch and sequence."""
        self.forged: set[NodeId] = set()
        """Nodes whose disk has a forged history with matching digests, written there or fetched."""
        self.reformatted_nodes: set[NodeId] = set()
        """Nodes whose disk was replaced by an empty one with the same directory id."""
        self.sent_count = 0
        """Messages sent by all nodes."""
        self.config = QuorumConfig()
        """Settings of the nodes, equal on all."""
        self.true_ms: Callable[[], int] | None = None
        """True time; None if every clock shows it."""
        self.is_chain_damaged = False
        """Whether corruption removed digests of the log from any disk."""
        self.is_pre_vote: dict[tuple[NodeId, int], bool] = {}
        self.invariants: Sequence[object] = ()
        """The invariants, for callers that read their counters at the end."""
        self._listeners = Listeners()

    def report_to(self, invariants: Sequence[object], listeners: Listeners) -> None:
        """Report all further events to ``listeners``, which belong to ``invariants``."""
        self.invariants = invariants
        self._listeners = listeners

    # ------------------------------------------------------------------ incarnations

    def opened(self, replica: Replica, now_ms: Callable[[], int] = lambda: 0) -> None:
        """Note that a process opened its directory and will start; ``now_ms`` is its clock."""
        stores = replica.stores
        start = stores.state.log_start
        node_id = replica.key.id
        before = self.nodes.get(node_id)
        written = LogMirror(start.offset, start.epoch, self._chain_of(start.offset, start.epoch))
        for batch in self._batches_of(stores.log, start.offset):
            written.append(batch)
            if batch.is_forged:
                self.forged.add(node_id)
        seen = Seen(
            node_id,
            before.incarnation + 1 if before is not None else 1,
            replica,
            written,
            written.copy(),
            stores.state.election,
            now_ms=now_ms,
        )
        if before is not None:
            if before.damaged_at is not None and written.end_offset < before.durable.end_offset:
                self.damaged(node_id)  # Records acknowledged after the corruption are lost too.
            seen.damaged_at = before.damaged_at
            seen.secured_end = min(before.secured_end, written.end_offset)
        self.nodes[node_id] = seen
        if node_id in self.forged:
            self.damaged(node_id)
        if before is not None and before.replica.key != replica.key:
            self.reformatted_nodes.discard(node_id)
        if self._listeners.on_published:
            replica.controller.subscribe(lambda published: self._published(seen, published))
        for hook in self._listeners.on_opened:
            hook(seen, before)

    def stopped(self, node_id: NodeId, *, keeps_mark: bool = False) -> None:
        """Note that the process has ended; see ``Seen.stop``."""
        self.nodes[node_id].stop(keeps_mark=keeps_mark)

    def damaged(self, node_id: NodeId) -> None:
        """Note that a disk lost completed work while its node was down."""
        seen = self.nodes[node_id]
        seen.damaged_at = max(seen.durable.end_offset, seen.damaged_at or 0)

    def wiped(self, node_id: NodeId) -> None:
        """Note that a node's disk was replaced while it was down: its past does not count."""
        seen = self.nodes.pop(node_id, None)
        self.reformatted_nodes.discard(node_id)
        self.forged.discard(node_id)
        if seen is not None:
            self.replaced[seen.replica.key] = seen

    def reformatted(self, node_id: NodeId, *, is_empty: bool) -> None:
        """Note that a disk of the same key replaced a node's disk while the node was down.

        The new disk is empty or has old content. The records of the replaced disk count as lost;
        its promises are still binding.
        """
        if is_empty:
            self.reformatted_nodes.add(node_id)
        else:
            self.reformatted_nodes.discard(node_id)
        self.damaged(node_id)
        seen = self.nodes[node_id]
        seen.durable = LogMirror()
        seen.election = ElectionState()
        self.disks[node_id] = self.disks.get(node_id, 0) + 1

    def is_repaired(self, node_id: NodeId) -> bool:
        """Return whether a damaged disk has all committed records again.

        From then on this disk or another may be damaged without a majority losing a record.
        """
        seen = self.nodes[node_id]
        is_repaired = seen.has_recovered(self.committed)
        if is_repaired:
            seen.damaged_at = None
        return is_repaired

    def _chain_of(self, offset: int, epoch: int) -> int:
        chain = self.positions.get((offset, epoch))
        if chain is None:
            raise Violation(
                "log-matching", "no log ever had this position", offset=offset, epoch=epoch
            )
        return chain

    # ------------------------------------------------------------------ the disk

    def submitted(self, node_id: NodeId, group: WriteGroup) -> None:
        """Note that the driver gave a group to its writer."""
        seen = self.nodes[node_id]
        if not seen.owed_count:
            seen.owed_since_ms = seen.now_ms()
        seen.owed_count += 1
        for on_submitted in self._listeners.on_submitted:
            on_submitted(seen, group)
        for effect in group.effects:
            if type(effect) is Append:
                batches = self.split(effect.payload or b"")
                for batch in batches:
                    seen.written.append(batch)
                    key = (batch.end_offset, batch.epoch)
                    if key not in self.positions:
                        self.positions[key] = seen.written.chain
                        self.batches[key] = batch
                for hook in self._listeners.on_appended:
                    hook(seen, batches)
            elif type(effect) is Truncate:
                cut = seen.written.cut(effect.end_offset)
                for on_cut in self._listeners.on_truncated:
                    on_cut(seen, cut)
            elif type(effect) is ReplaceLogWith:
                seen.written = self._replaced(effect)

    def _replaced(self, effect: ReplaceLogWith) -> LogMirror:
        snapshot_id = effect.snapshot_id
        chain = self._chain_of(snapshot_id.offset, snapshot_id.epoch)
        return LogMirror(snapshot_id.offset, snapshot_id.epoch, chain)

    def persisted(self, node_id: NodeId, groups: Sequence[WriteGroup]) -> None:
        """Note that the disk has completed these groups; called before the driver is notified."""
        seen = self.nodes[node_id]
        seen.owed_count -= len(groups)
        seen.owed_since_ms = seen.now_ms()
        flushed_before = seen.durable.end_offset
        for group in groups:
            for effect in group.effects:
                if type(effect) is Append:
                    self._flushed(seen, self.split(effect.payload or b""))
                elif type(effect) is Truncate:
                    seen.durable.cut(effect.end_offset)
                    seen.secured_end = min(seen.secured_end, effect.end_offset)
                elif type(effect) is ReplaceLogWith:
                    seen.durable = self._replaced(effect)
                elif type(effect) is SaveElectionState:
                    seen.election = effect.state
                    for on_vote in self._listeners.on_voted:
                        on_vote(seen, effect.state)
                elif type(effect) is SealDownload:
                    self.checkpointed(node_id, effect.snapshot_id)
                elif type(effect) is StoreHighWatermark:
                    seen.secured_end = min(flushed_before, seen.durable.end_offset)
                for hook in self._listeners.on_persisted:
                    hook(seen, effect)

    def _flushed(self, seen: Seen, batches: list[Batch]) -> None:
        for batch in batches:
            seen.durable.append(batch)
            if batch.is_forged:
                self.forged.add(seen.id)
                self.damaged(seen.id)

    def checkpointed(self, node_id: NodeId, snapshot_id: SnapshotId) -> None:
        """Note that a checkpoint was written or downloaded; readers detect later corruption."""
        seen = self.nodes[node_id]
        store = seen.replica.stores.snapshots
        if snapshot_id not in store.list() or seen.is_corrupt(store.path(snapshot_id)):
            return
        # Not by ``read_chunk``: an observer must not take a lease.
        file = store._open(snapshot_id)  # noqa: SLF001
        content = file.read_at(0, file.size())
        file.close()
        for hook in self._listeners.on_checkpoint:
            hook(seen, snapshot_id, content)

    # ------------------------------------------------------------------ messages and state

    def sent(self, node_id: NodeId, to: NodeId, message: Message) -> None:
        """Note that a node sent a message, delivered or not."""
        if type(message) is VoteRequest:
            self.is_pre_vote[node_id, message.request_id] = message.pre_vote
        self.sent_count += 1
        seen = self.nodes[node_id]
        for hook in self._listeners.on_sent[type(message)]:
            hook(seen, to, message)

    def received(self, node_id: NodeId, sender: NodeId, received: Received) -> None:
        """Note that a message is about to be delivered to a running node."""
        self._listeners.received(self.nodes[node_id], sender, received)

    def stepped(self, node_id: NodeId) -> None:
        """Note that an entry point of the node has returned."""
        seen = self.nodes[node_id]
        replica = seen.replica
        node = replica.node
        # Not by the node's properties: this runs after every call of every node.
        core = node._core  # noqa: SLF001
        log, role = core.log, core.role
        applied_end = replica.stores.machine.image.provenance.end_offset
        looked_at = (
            core.election,
            type(role) is Leader and role.established,
            log.start,
            core.high_watermark,
            log.end_offset,
            core.voters.latest_offset,
            applied_end,
            seen.written.ends[-1],
            seen.election,
        )
        if looked_at == seen.looked_at:
            # Most steps change nothing that an invariant on node state depends on.
            return
        high_watermark = self._note_commits(seen)
        for hook in self._listeners.on_stepped:
            hook(seen)
        seen.looked_at = looked_at
        seen.high_watermark = high_watermark
        seen.applied_end = applied_end
        seen.epoch = node.epoch
        seen.log_end = node.log_end_offset

    def cut_short(self, node_id: NodeId) -> None:
        """Note a power loss in the middle of a call: sent messages count, memory is lost.

        So no invariant checks a state that was between two consistent ones.
        """
        self._note_commits(self.nodes[node_id])

    def _published(self, seen: Seen, published: Published) -> None:
        # Subscribers are notified within a step, which may have advanced the watermark.
        self._note_commits(seen)
        for hook in self._listeners.on_published:
            hook(seen, published)

    def _note_commits(self, seen: Seen) -> int:
        high_watermark = seen.replica.node.high_watermark
        if high_watermark > self.committed.ends[-1]:
            self._commit(seen, high_watermark)
        return high_watermark

    def _commit(self, seen: Seen, high_watermark: int) -> None:
        committed = self.committed
        begin = committed.end_offset
        log = seen.written
        if log.chain_at(begin) != committed.chain:
            raise Violation(
                "committed-stays",
                "a longer committed log differs from the committed records",
                node=seen.id,
                committed=begin,
                high_watermark=high_watermark,
            )
        batches = []
        for boundary in log.boundaries_between(begin, high_watermark):
            batch = self.batches[boundary]
            committed.append(batch)
            batches.append(batch)
        if committed.end_offset != high_watermark:
            raise Violation(
                "bounds",
                "the high watermark is inside a batch or beyond the log",
                node=seen.id,
                high_watermark=high_watermark,
                log_end=log.end_offset,
            )
        self.committed_in.append((seen.replica.node.epoch, high_watermark))
        for hook in self._listeners.on_committed:
            hook(seen, batches, high_watermark)
        for follower in self._followers:
            follower(batches)

    def on_commit(self, hook: Callable[[list[Batch]], None]) -> None:
        """Call ``hook`` with everything that is committed from now on, once and in order."""
        self._followers.append(hook)

    # ------------------------------------------------------------------ clients

    def acknowledged(
        self, node_id: NodeId, offset: int, key: CommandKey = None, content: Command | None = None
    ) -> None:
        """Note an acknowledged write: this command under this number, where it has one."""
        # Answers are sent within a step, which may have advanced the high watermark.
        seen = self.nodes[node_id]
        self._note_commits(seen)
        for hook in self._listeners.on_acknowledged:
            hook(seen, offset, key, content)
        self.acknowledged_end = max(self.acknowledged_end, offset)

    def watched(self, node_id: NodeId, end_offset: int) -> None:
        """Note that a watcher is about to receive a state or changes that end at ``end_offset``."""
        for hook in self._listeners.on_watched:
            hook(self.nodes[node_id], end_offset)

    def read_begins(self) -> ReadBegun:
        """Return a token for a client's read that begins now, for ``read_confirmed``."""
        return ReadBegun(self.acknowledged_end, self.sent_count)

    def block_handed_out(
        self, node_id: NodeId, command: tuple[int, int, int], first: int, count: int
    ) -> None:
        """Note that a block of producer ids was allocated to a client."""
        seen = self.nodes[node_id]
        self._note_commits(seen)
        for hook in self._listeners.on_block:
            hook(seen, command, first, count)

    def read_confirmed(self, node_id: NodeId, begun: ReadBegun, offset: int) -> None:
        """Note that a read that began at ``begun`` was confirmed at ``offset``."""
        seen = self.nodes[node_id]
        self._note_commits(seen)
        for hook in self._listeners.on_read:
            hook(seen, begun, offset)
