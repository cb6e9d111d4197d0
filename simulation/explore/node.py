"""One node of a model at work: the real core, a disk, and what waits for that disk.

An event changes it and leaves messages in ``sent``; ``settle`` then brings it into the form in
which equal situations are equal. What leaves is held against what the disk has, there and then.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from quorum.config import QuorumConfig
from quorum.core.contract.events import TruncationRefused
from quorum.core.contract.local_events import SnapshotSealed
from quorum.core.contract.output import (
    Append,
    Effect,
    Output,
    SaveElectionState,
    SealDownload,
    Truncate,
)
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.message_types import Message, Request
from quorum.core.messages.read_messages import NO_ROUND
from quorum.core.messages.received_records import ReceivedRecords
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.core.messages.vote_messages import VoteResponse
from quorum.core.node.raft_node import RaftNode
from quorum.core.state.core_state import CoreState
from quorum.core.state.roles import Follower
from quorum.types import NO_NODE, ElectionState, NodeId, ReplicaKey, SnapshotId
from simulation.explore import slots
from simulation.explore.disk import Disk, Log, entries_of, epochs_of, voters_in
from simulation.invariants.violation import Violation

CLUSTER = "model"


def key_of(node_id: NodeId) -> ReplicaKey:
    """The replica key of a node in a model."""
    return ReplicaKey(node_id, bytes([node_id]) * 16)


@cache
def config_of(*, tells_commits: bool) -> QuorumConfig:
    """What the nodes of a model are set to."""
    return QuorumConfig(high_watermark_delay_ms=0 if tells_commits else 10, append_delay_ms=0)


def _plain(effect: Effect) -> Effect:
    """An append as the records that it leaves on disk, whoever wrote them."""
    if not isinstance(effect, Append):
        return effect
    entries: Any = entries_of(effect)
    return replace(effect, payload=entries, controls=())


def _without_vote(state: ElectionState) -> ElectionState:
    if state.leader_id == NO_NODE:
        return state
    return replace(state, voted=key_of(state.leader_id))


class NoChance(random.Random):
    """Decides nothing. Pauses before a node stands again are the longest there are, so that none is
    over while time stands still: its timer, which may fire at any moment, stands for their end.
    """

    def randrange(self, *_: Any, **__: Any) -> int:
        return 0

    def randint(self, a: int, b: int) -> int:
        return b

    def choice(self, seq: Any) -> Any:
        return seq[0]

    def getrandbits(self, k: int, /) -> int:
        return slots.RAW_FROM

    def __reduce__(self) -> Any:
        return (NoChance, ())


@dataclass
class Working:
    """A node between two states."""

    raft: RaftNode
    disk: Disk
    """What is durable."""
    pending: list[tuple[int, tuple[Effect, ...]]]
    promises: list[tuple[int, NodeId, Message]]
    crashes: int
    """How often it may still crash."""
    checkpoints: dict[SnapshotId, Log]
    last_pass: bool = False
    """Whether its disk completes nothing more before it crashes."""
    stored: int = 0
    """What it knew to be committed before its disk was given anything to do."""
    sent: list[tuple[NodeId, Message]] = field(default_factory=list)
    killed: frozenset[int] = frozenset()
    before: frozenset[int] = frozenset()

    @classmethod
    def opened(
        cls,
        node_id: NodeId,
        disk: Disk,
        crashes: int,
        checkpoints: dict[SnapshotId, Log],
        high_watermark: int,
        *,
        tells_commits: bool,
    ) -> Working:
        """A process that has just started on ``disk``."""
        config = config_of(tells_commits=tells_commits)
        me = key_of(node_id)
        raft = RaftNode(config=config, cluster_id=CLUSTER, me=me, rng=NoChance(), bootstrap=())
        node = cls(raft, disk, [], [], crashes, checkpoints)
        node.take(raft.start(slots.NOW_MS, disk.durable_state(high_watermark)))
        return node

    @property
    def core(self) -> CoreState:
        """The state of the core."""
        return self.raft._core

    @property
    def written(self) -> Disk:
        """What the disk will hold once it has done all that was handed to it."""
        disk = self.disk
        for _, effects in self.pending:
            for effect in effects:
                disk = disk.after(effect, self.checkpoints)
        return disk

    def take(self, output: Output) -> None:
        """Let the output of an entry point take effect."""
        for event in output.events:
            if isinstance(event, TruncationRefused):
                self._fail("committed-stays", "told to cut what is committed")
        if output.persist:
            for effect in output.persist:
                if isinstance(effect, Truncate) and effect.end_offset < self.raft.high_watermark:
                    self._fail("committed-stays", "a cut below the high watermark")
            self.pending.append((output.ticket, tuple(map(_plain, output.persist))))
        for promise in output.after_persist:
            if not self._is_search(promise.to, promise.message):
                filled = self._filled(promise.message)
                self.promises.append((promise.ticket, promise.to, filled))
        for send in output.immediate:
            if not self._is_search(send.to, send.message):
                self._leave(send.to, self._filled(send.message))

    def persist(self) -> None:
        """The disk completes the oldest group handed to it."""
        ticket, effects = self.pending.pop(0)
        for effect in effects:
            before = self.disk.election
            self.disk = self.disk.after(effect, self.checkpoints)
            if isinstance(effect, SaveElectionState):
                self._check_vote(before.epoch, before.voted)
        due = [each for each in self.promises if each[0] <= ticket]
        self.promises = [each for each in self.promises if each[0] > ticket]
        self.take(self.raft.persisted(slots.NOW_MS, ticket))
        for _, to, message in due:
            self._leave(to, message)
        for effect in effects:
            if isinstance(effect, SealDownload):
                prefix = self.checkpoints[effect.snapshot_id]
                voters = voters_in(prefix, 0)
                fact = SnapshotSealed(effect.snapshot_id, voters, 1)
                self.take(self.raft.on_local_event(slots.NOW_MS, fact))

    def _check_vote(self, epoch: int, voted: ReplicaKey | None) -> None:
        now = self.disk.election
        if now.epoch < epoch:
            self._fail("monotone", "the epoch fell", before=epoch, now=now.epoch)
        if now.epoch == epoch and voted is not None and now.voted != voted:
            self._fail("one-vote", "a second vote in an epoch", before=voted, now=now.voted)

    def _is_search(self, to: NodeId, message: Message) -> bool:
        """Whether it only asks a peer who leads; those are lost in every model."""
        role = self.core.role
        is_fetch = isinstance(message, FetchRequest | FetchSnapshotRequest)
        return is_fetch and not (isinstance(role, Follower) and role.leader_id == to)

    def _filled(self, message: Message) -> Message:
        """Put in what the runtime would read from files, and leave out what no model needs."""
        log = self.written.log
        if isinstance(message, FetchResponse):
            received = None
            if message.serve_bytes_max > 0:
                base, end = message.serve_offset, min(message.serve_end_offset, len(log))
                entries: Any = log[base:end]
                received = ReceivedRecords(
                    base,
                    end,
                    epochs_of(log[:end], base),
                    voters_in(log[:end], base),
                    entries,
                )
            message = replace(
                message,
                received=received,
                serve_bytes_max=0,
                serve_offset=-1,
                serve_end_offset=-1,
                leader_age_ms=-1,
            )
        elif isinstance(message, FetchSnapshotResponse) and message.serve_bytes_max > 0:
            message = replace(message, size=1, chunk=b"c", file_digest=b"d", serve_bytes_max=0)
        if isinstance(
            message, FetchRequest | FetchSnapshotRequest | FetchResponse | FetchSnapshotResponse
        ):
            message = replace(message, read_round=NO_ROUND)
        if isinstance(message, FetchRequest) and self.core.config.high_watermark_delay_ms:
            # Only a leader that tells commits at once looks at it.
            message = replace(message, high_watermark=0)
        return message

    def _leave(self, to: NodeId, message: Message) -> None:
        """A message goes on its way; what it promises must be durable."""
        disk = self.disk
        if isinstance(message, FetchRequest):
            offset = message.fetch_offset
            is_held = len(disk.log) >= offset and (
                offset == 0 or disk.log[offset - 1][0] == message.last_fetched_epoch
            )
            if not is_held:
                self._fail(
                    "promises",
                    "records were acknowledged before they were durable",
                    fetch_offset=offset,
                    durable_end=len(disk.log),
                )
        elif isinstance(message, VoteResponse) and message.granted:
            is_vote = message.request_id < slots.PRE_BALLOT
            kept = disk.election
            is_held = kept.epoch > message.epoch or (
                kept.epoch == message.epoch and kept.voted is not None and kept.voted.id == to
            )
            if is_vote and not is_held:
                self._fail("promises", "a vote left before it was durable", durable=kept)
        self.sent.append((to, message))

    def _fail(self, name: str, message: str, /, **evidence: object) -> None:
        raise Violation(name, message, node=self.raft.me.id, **evidence)

    def settle(self, *, hears_of_begins: bool, has_pre_votes: bool) -> None:
        """Bring it into the form in which equal situations are equal."""
        core = self.core
        slots.forget_idle(core, has_pre_votes=has_pre_votes)
        self._forget_votes()
        names = slots.rename(core, hears_of_begins=hears_of_begins)
        fresh = {number for raw, number in names.items() if raw > slots.RAW_FROM}
        live = slots.live_numbers(core)
        self.killed = (self.before - live) | (self.before & fresh)
        self.sent = [(to, self._renamed(names, each)) for to, each in self.sent]
        base = slots.shift_tickets(core)
        self.pending = [(ticket - base, effects) for ticket, effects in self.pending]
        self.promises = sorted(
            (
                (max(0, ticket - base), to, self._renamed(names, each))
                for ticket, to, each in self.promises
            ),
            key=repr,
        )

    def _forget_votes(self) -> None:
        """Once a leader of an epoch is known, whom it was given the vote for decides nothing."""
        self.core.election = _without_vote(self.core.election)
        self.disk = replace(self.disk, election=_without_vote(self.disk.election))

    def _renamed(self, names: dict[int, int], message: Message) -> Message:
        if not isinstance(message, Request):
            return message
        request_id = message.request_id
        if request_id > slots.RAW_FROM:
            return replace(message, request_id=names.get(request_id, slots.DEAD))
        if request_id in self.killed:
            return replace(message, request_id=slots.DEAD)
        return message

    def forget(self, peer: NodeId, numbers: frozenset[int]) -> None:
        """``peer`` no longer waits for these answers: do not prepare them."""
        self.promises = [
            (ticket, to, each)
            for ticket, to, each in self.promises
            if isinstance(each, Request) or to != peer or each.request_id not in numbers
        ]
        role: Any = self.core.role
        held = getattr(role, "held", None)
        if held is not None:
            for fetch in held.take_all():
                if fetch.sender != peer or fetch.request.request_id not in numbers:
                    held.hold(fetch)
