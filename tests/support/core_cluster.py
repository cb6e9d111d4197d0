"""Several RaftNodes controlled step by step: queued messages, a slow or instant disk, one clock.

For unit tests of the core. Every step is a call: ``deliver`` delivers queued messages,
``persist`` completes a disk's work, ``settle`` repeats both, ``advance`` moves the clock. Payloads
stay empty; a Fetch response is filled with the records that the serving node has appended.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from quorum.config import QuorumConfig
from quorum.core.contract.output import Output
from quorum.core.messages.fetch_messages import ServeRecords
from quorum.core.messages.message_types import Message
from quorum.core.messages.received_records import ReceivedRecords
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.core.node.raft_node import RaftNode
from quorum.types import NodeId, SnapshotId
from simulation.harness.core_disk import Disk
from simulation.harness.core_node import CoreNode
from tests.support.core_disk import key, voter
from tests.support.wire_node import WireNode

CLUSTER = "cluster"
Sent = TypeVar("Sent")


@dataclass
class Member(CoreNode):
    """One node with its disk, and all its outputs."""

    cluster: CoreCluster
    progress: list[object] = field(default_factory=list)
    events: list[object] = field(default_factory=list)
    effects: list[object] = field(default_factory=list)
    deadline_ms: int | None = None
    is_up: bool = True

    @property
    def now_ms(self) -> int:
        return self.cluster.now_ms

    def add_snapshot(self, snapshot_id: SnapshotId, size: int = 40) -> None:
        """Put a snapshot on the disk without a local event."""
        self.disk = self.disk.with_snapshot(snapshot_id, size)

    def read(self, offset: int, end_offset: int) -> ReceivedRecords:
        return super().read(offset, min(end_offset, offset + self.cluster.records_per_answer))

    def filled(self, decided: Any) -> Message:
        asked: Any = getattr(decided, "records", None)
        if not isinstance(asked, ServeRecords):
            return super().filled(decided)
        records: Any = self.read(asked.offset, asked.end_offset)
        return replace(decided, records=records)

    def leave(self, to: NodeId, message: Message) -> None:
        self.cluster.post(self.raft.me.id, to, message)

    def take(self, output: Output) -> None:
        self.events += output.events
        self.progress += output.progress
        self.effects += output.persist
        self.deadline_ms = output.next_deadline_ms
        super().take(output)
        if self.raft.me.id not in self.cluster.slow_disks:
            self.catch_up()

    def catch_up(self) -> None:
        """Complete all submitted work of the disk."""
        while self.pending:
            self.persist()


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
        # Commits are sent at once, so that every node knows them when ``settle`` ends.
        self.config = config or QuorumConfig(high_watermark_delay_ms=0, append_delay_ms=0)
        self.voters = tuple(voter(each) for each in voters)
        self.bootstrap = tuple(voters)
        self.seed = seed
        self.now_ms = 1000
        self.queue: list[tuple[NodeId, NodeId, Message]] = []
        self.sent: list[tuple[NodeId, NodeId, Message]] = []
        """Every message that a node has sent, delivered or not."""
        self.cut: set[tuple[NodeId, NodeId]] = set()
        self.hold: set[tuple[NodeId, NodeId]] = set()
        """Links whose messages are held until the link is removed from this set."""
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
        raft = WireNode(
            config=self.config,
            cluster_id=CLUSTER,
            me=key(node_id),
            rng=random.Random(self.seed * 1000 + node_id),
            bootstrap=self.bootstrap,
        )
        return Member(raft, disk, self)

    def __getitem__(self, node_id: NodeId) -> RaftNode:
        return self.members[node_id].raft

    # Moving things.

    def start(self, node_id: NodeId) -> Output:
        state = replace(self.members[node_id].disk, first_voters=self.voters).durable_state()
        return self.call(node_id, lambda raft: raft.start(self.now_ms, state))

    def call(self, node_id: NodeId, entry: Callable[[RaftNode], Output]) -> Output:
        """Call one entry point and let its output take effect."""
        member = self.members[node_id]
        output = entry(member.raft)
        member.take(output)
        return output

    def post(self, sender: NodeId, to: NodeId, message: Message) -> None:
        """Queue a message that a node has sent, unless its link is cut."""
        self.sent.append((sender, to, message))
        if (sender, to) not in self.cut and to in self.members:
            self.queue.append((sender, to, message))

    def persist(self, node_id: NodeId) -> None:
        """Complete all work submitted to the node's disk so far."""
        self.members[node_id].catch_up()

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
        """Make ``node_id`` campaign and win: only its timer expires."""
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
            if member.is_up and member.raft.is_leader
        ]
