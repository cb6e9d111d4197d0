"""Several RaftNodes driven by hand: queued messages, a slow or instant disk, one clock.

For unit tests of the core. Nothing moves unless the test says so: ``deliver`` moves queued
messages, ``persist`` lets a disk catch up, ``settle`` repeats both, ``advance`` moves time.
Payloads stay empty; a Fetch answer is filled from the serving node's own record of what it
appended, the way the runtime would fill it from its log.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from quorum.config import QuorumConfig
from quorum.core.contract.local_events import SnapshotSealed
from quorum.core.contract.output import (
    Output,
    Promise,
    SealDownload,
)
from quorum.core.messages.fetch_messages import FetchResponse
from quorum.core.messages.message_types import Message
from quorum.core.messages.received_records import ReceivedRecords
from quorum.core.messages.snapshot_messages import FetchSnapshotResponse
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.core.node.raft_node import RaftNode
from quorum.types import (
    EpochStart,
    NodeId,
)
from tests.support.core_disk import Disk, copy_of, key, payload_with, voter

CLUSTER = "cluster"
Sent = TypeVar("Sent")


@dataclass
class Member:
    """One node with its disk, the writes under way and the promises waiting for them."""

    node: RaftNode
    disk: Disk
    written: Disk
    pending: list[tuple[int, list[object]]] = field(default_factory=list)
    promises: list[Promise] = field(default_factory=list)
    progress: list[object] = field(default_factory=list)
    events: list[object] = field(default_factory=list)
    effects: list[object] = field(default_factory=list)
    deadline_ms: int | None = None
    is_up: bool = True


class CoreCluster:
    """Nodes 1..n with the same configuration; ``observers`` are not in the voter set."""

    def __init__(
        self,
        voters: Sequence[NodeId] = (1, 2, 3),
        observers: Sequence[NodeId] = (),
        *,
        config: QuorumConfig | None = None,
        seed: int = 1,
        disks: dict[NodeId, Disk] | None = None,
        autostart: bool = True,
    ) -> None:
        # Commits are told at once, so that ``settle`` ends with everybody knowing.
        self.config = config or QuorumConfig(high_watermark_delay_ms=0, append_delay_ms=0)
        self.voters = tuple(voter(each) for each in voters)
        self.bootstrap = tuple(voters)
        self.seed = seed
        self.now_ms = 1000
        self.queue: list[tuple[NodeId, NodeId, Message]] = []
        self.sent: list[tuple[NodeId, NodeId, Message]] = []
        """Everything that ever left a node, delivered or not."""
        self.cut: set[tuple[NodeId, NodeId]] = set()
        self.hold: set[tuple[NodeId, NodeId]] = set()
        """Links whose messages wait until they are taken out of here."""
        self.slow_disks: set[NodeId] = set()
        self.records_per_answer = 1 << 30
        self.members: dict[NodeId, Member] = {}
        for node_id in (*voters, *observers):
            disk = (disks or {}).get(node_id, Disk())
            self.members[node_id] = self._member(node_id, disk)
        if autostart:
            for node_id in self.members:
                self.start(node_id)

    def _member(self, node_id: NodeId, disk: Disk) -> Member:
        node = RaftNode(
            config=self.config,
            cluster_id=CLUSTER,
            me=key(node_id),
            rng=random.Random(self.seed * 1000 + node_id),
            bootstrap=self.bootstrap,
        )
        return Member(node, disk, copy_of(disk))

    def __getitem__(self, node_id: NodeId) -> RaftNode:
        return self.members[node_id].node

    # Moving things.

    def start(self, node_id: NodeId) -> Output:
        member = self.members[node_id]
        state = member.disk.durable_state(self.voters)
        return self._take(node_id, member.node.start(self.now_ms, state))

    def call(self, node_id: NodeId, entry: Callable[[RaftNode], Output]) -> Output:
        """Call one entry point and let its output take effect."""
        return self._take(node_id, entry(self[node_id]))

    def _take(self, node_id: NodeId, output: Output) -> Output:
        member = self.members[node_id]
        member.events += output.events
        member.progress += output.progress
        member.effects += output.persist
        member.deadline_ms = output.next_deadline_ms
        for effect in output.persist:
            member.written.apply(effect)
        if output.persist:
            member.pending.append((output.ticket, list(output.persist)))
        member.promises += output.after_persist
        for send in output.immediate:
            self._send(node_id, send.to, send.message)
        if node_id not in self.slow_disks:
            self.persist(node_id)
        return output

    def _send(self, sender: NodeId, to: NodeId, message: Message) -> None:
        self.sent.append((sender, to, message))
        if (sender, to) in self.cut or to not in self.members:
            return
        self.queue.append((sender, to, self._filled(sender, message)))

    def _filled(self, sender: NodeId, message: Message) -> Message:
        """Put into an answer what the runtime would read from files."""
        disk = self.members[sender].written
        if isinstance(message, FetchResponse) and message.serve_bytes_max > 0:
            wanted = [
                each
                for each in disk.records
                if message.serve_offset <= each[0] < message.serve_end_offset
            ][: self.records_per_answer]
            epochs: list[EpochStart] = []
            for offset, epoch in wanted:
                if not epochs or epochs[-1].epoch != epoch:
                    epochs.append(EpochStart(epoch, offset))
            base, end = wanted[0][0], wanted[-1][0] + 1
            voters = tuple(
                disk.voters[offset] for offset in sorted(disk.voters) if base <= offset < end
            )
            received = ReceivedRecords(base, end, tuple(epochs), voters, payload_with(voters))
            return replace(message, received=received, serve_bytes_max=0)
        if isinstance(message, FetchSnapshotResponse) and message.serve_bytes_max > 0:
            size = disk.snapshots[message.snapshot_id]
            chunk = bytes(min(message.serve_bytes_max, size - message.position))
            return replace(message, size=size, chunk=chunk, file_digest=b"d", serve_bytes_max=0)
        return message

    def persist(self, node_id: NodeId) -> None:
        """Let the node's disk catch up with everything handed out so far."""
        member = self.members[node_id]
        while member.pending:
            ticket, effects = member.pending.pop(0)
            for effect in effects:
                member.disk.apply(effect)
            self._take(node_id, member.node.persisted(self.now_ms, ticket))
            self._report_frozen(node_id, effects)
            due = [each for each in member.promises if each.ticket <= ticket]
            member.promises = [each for each in member.promises if each.ticket > ticket]
            for promise in due:
                self._send(node_id, promise.to, promise.message)

    def _report_frozen(self, node_id: NodeId, effects: Sequence[object]) -> None:
        disk = self.members[node_id].disk
        for effect in effects:
            if isinstance(effect, SealDownload):
                frozen = SnapshotSealed(effect.snapshot_id, (), disk.snapshots[effect.snapshot_id])
                self.call(node_id, lambda node, fact=frozen: node.on_local_event(self.now_ms, fact))

    def deliver(
        self, to: NodeId | None = None, kind: type[Message] | None = None, count: int = 1 << 30
    ) -> int:
        """Deliver queued messages in order, at most ``count``; returns how many."""
        chosen = [
            each
            for each in self.queue
            if (to is None or each[1] == to)
            and (kind is None or isinstance(each[2], kind))
            and each[:2] not in self.hold
        ][:count]
        for item in chosen:
            self.queue.remove(item)
            sender, receiver, message = item
            if self.members[receiver].is_up and (sender, receiver) not in self.cut:
                self.call(
                    receiver, lambda node, s=sender, m=message: node.receive(self.now_ms, s, m)
                )
        return len(chosen)

    def settle(self, rounds: int = 1000) -> None:
        """Deliver until the network is quiet; held Fetches stay held."""
        for _ in range(rounds):
            if not self.deliver():
                return
        raise AssertionError(f"not quiet after {rounds} rounds: {self.queue}")

    def tick(self, node_id: NodeId) -> None:
        self.call(node_id, lambda node: node.tick(self.now_ms))

    def advance(self, ms: int) -> None:
        """Move time, waking every node at its deadlines and delivering everything."""
        end_ms = self.now_ms + ms
        while True:
            due = [
                member.deadline_ms
                for member in self.members.values()
                if member.is_up and member.deadline_ms is not None
            ]
            next_ms = min([*due, end_ms])
            if next_ms >= end_ms:
                self.now_ms = end_ms
                self.settle()
                return
            self.now_ms = max(next_ms, self.now_ms)
            for node_id, member in self.members.items():
                deadline_ms = member.deadline_ms
                if member.is_up and deadline_ms is not None and deadline_ms <= self.now_ms:
                    self.tick(node_id)
            self.settle()

    # Common stories.

    def elect(self, node_id: NodeId) -> None:
        """Make ``node_id`` stand and win, by letting only its timer expire."""
        member = self.members[node_id]
        for _ in range(20):
            if self[node_id].is_leader:
                return
            assert member.deadline_ms is not None
            self.now_ms = max(self.now_ms, member.deadline_ms)
            self.tick(node_id)
            self.settle()
        raise AssertionError(f"node {node_id} was not elected: {self[node_id].role_name}")

    def elect_without_replicating(self, node_id: NodeId) -> None:
        """As ``elect``, but every Fetch is lost, so nothing of the new epoch is copied."""
        for _ in range(20):
            if self[node_id].is_leader:
                self.queue.clear()
                return
            deadline_ms = self.members[node_id].deadline_ms
            assert deadline_ms is not None
            self.now_ms = max(self.now_ms, deadline_ms)
            self.tick(node_id)
            for _ in range(10):
                self.queue = [
                    item for item in self.queue if isinstance(item[2], VoteRequest | VoteResponse)
                ]
                self.deliver()
                for each in self.members:
                    self.persist(each)
        raise AssertionError(f"node {node_id} was not elected: {self[node_id].role_name}")

    def propose(self, node_id: NodeId, count: int = 1) -> Output:
        end_offset = self[node_id].log_end.offset + count
        return self.call(
            node_id,
            lambda node: node.propose(self.now_ms, end_offset=end_offset, payload=b"x"),
        )

    def crash(self, node_id: NodeId) -> None:
        """Stop the node; what its disk had not reported durable is lost."""
        self.members[node_id].is_up = False
        self.queue = [item for item in self.queue if node_id not in item[:2]]

    def restart(self, node_id: NodeId) -> Output:
        self.members[node_id] = self._member(node_id, self.members[node_id].disk)
        self.seed += 1
        return self.start(node_id)

    def isolate(self, node_id: NodeId) -> None:
        others = [each for each in self.members if each != node_id]
        self.cut |= {(node_id, each) for each in others} | {(each, node_id) for each in others}

    def heal(self) -> None:
        self.cut.clear()

    def sent_by(self, sender: NodeId, kind: type[Sent]) -> list[Sent]:
        """Every message of ``kind`` that ``sender`` ever sent."""
        return [each for by, _, each in self.sent if by == sender and isinstance(each, kind)]

    def leaders(self) -> list[NodeId]:
        return [
            node_id
            for node_id, member in self.members.items()
            if member.is_up and member.node.is_leader
        ]
