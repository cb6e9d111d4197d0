"""One node of a model: the production core, a disk, and what waits for that disk.

An event changes the node and leaves messages in ``sent``. ``settle`` then converts the node to a
form in which equal situations are equal. Each sent message is checked against the disk at once.
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
    BeginDownload,
    Effect,
    Output,
    Promise,
    Send,
    StoreHighWatermark,
    Truncate,
    WriteChunk,
)
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.message_types import Message, Outgoing, Request
from quorum.core.messages.read_messages import NO_ROUND
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.core.messages.vote_messages import VoteResponse
from quorum.core.node.raft_node import RaftNode
from quorum.core.state.core_state import CoreState
from quorum.core.state.roles import Follower
from quorum.types import NO_NODE, ElectionState, NodeId, ReplicaKey, SnapshotId
from simulation.explore import slots
from simulation.explore.model import key_of
from simulation.harness.core_disk import Disk, Log, entries_of, voters_in
from simulation.harness.core_node import CoreNode, Promised
from simulation.invariants.violation import Violation

CLUSTER = "model"
_NOT_IN_A_MODEL = (StoreHighWatermark, BeginDownload, WriteChunk)
"""A crash may leave any watermark, and a checkpoint arrives in one step."""


@cache
def config_of(*, announces_commits: bool) -> QuorumConfig:
    """Return the configuration of the nodes of a model."""
    return QuorumConfig(high_watermark_delay_ms=0 if announces_commits else 10, append_delay_ms=0)


def _plain(effect: Effect) -> Effect:
    """Return an append as the records that it leaves on disk, whoever wrote them."""
    if not isinstance(effect, Append):
        return effect
    entries: Any = entries_of(effect)
    return replace(effect, payload=entries, controls=())


def _without_vote(state: ElectionState) -> ElectionState:
    if state.leader_id == NO_NODE:
        return state
    return replace(state, voted=key_of(state.leader_id))


class NoChance(random.Random):
    """A random generator whose pauses before a campaign are the longest possible.

    No pause ends while time stands still: the node's timer, which may expire at any moment, ends
    it.
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
class Working(CoreNode):
    """A node between two states."""

    crashes: int
    """How often it may still crash."""
    checkpoints: dict[SnapshotId, Log]
    last_pass: bool = False
    """Whether its disk completes nothing more before it crashes."""
    stored: int = 0
    """Its high watermark before its disk got work to do."""
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
        announces_commits: bool,
    ) -> Working:
        """Return a process that has just started on ``disk``."""
        config = config_of(announces_commits=announces_commits)
        me = key_of(node_id)
        raft = RaftNode(config=config, cluster_id=CLUSTER, me=me, rng=NoChance(), bootstrap=())
        node = cls(raft, disk, crashes, checkpoints)
        found = replace(disk, high_watermark=max(high_watermark, disk.start.offset))
        node.take(raft.start(slots.NOW_MS, found.durable_state()))
        return node

    @property
    def core(self) -> CoreState:
        """The state of the core."""
        return self.raft._core

    @property
    def now_ms(self) -> int:
        return slots.NOW_MS

    def take(self, output: Output) -> None:
        for event in output.events:
            if isinstance(event, TruncationRefused):
                self._fail("committed-stays", "asked to truncate committed records")
        for effect in output.persist:
            if isinstance(effect, Truncate) and effect.end_offset < self.raft.high_watermark:
                self._fail("committed-stays", "a truncation below the high watermark")
        output.persist = [_plain(each) for each in output.persist]
        output.after_persist = [each for each in output.after_persist if not self._is_search(each)]
        output.immediate = [each for each in output.immediate if not self._is_search(each)]
        super().take(output)

    def after(self, disk: Disk, effect: Effect) -> Disk:
        if isinstance(effect, _NOT_IN_A_MODEL):
            return disk
        return disk.after(effect, self.checkpoints)

    def persist(self) -> None:
        before = self.disk.election
        super().persist()
        self._check_vote(before.epoch, before.voted)

    def sealed(self, snapshot_id: SnapshotId) -> SnapshotSealed:
        return SnapshotSealed(snapshot_id, voters_in(self.checkpoints[snapshot_id], 0), 1)

    def _check_vote(self, epoch: int, voted: ReplicaKey | None) -> None:
        now = self.disk.election
        if now.epoch < epoch:
            self._fail("monotone", "the epoch fell", before=epoch, now=now.epoch)
        if now.epoch == epoch and voted is not None and now.voted != voted:
            self._fail("one-vote", "a second vote in an epoch", before=voted, now=now.voted)

    def _is_search(self, send: Send | Promise) -> bool:
        """Return whether the message only asks a peer for the leader; models lose those."""
        role = self.core.role
        is_fetch = isinstance(send.message, FetchRequest | FetchSnapshotRequest)
        return is_fetch and not (isinstance(role, Follower) and role.leader_id == send.to)

    def filled(self, decided: Outgoing) -> Message:
        """As ``CoreNode.filled``, without what no model needs."""
        message = super().filled(decided)
        if isinstance(message, FetchResponse):
            message = replace(message, leader_age_ms=-1)
        if isinstance(
            message, FetchRequest | FetchSnapshotRequest | FetchResponse | FetchSnapshotResponse
        ):
            message = replace(message, read_round=NO_ROUND)
        if isinstance(message, FetchRequest) and self.core.config.high_watermark_delay_ms:
            # Only a leader that announces commits at once reads it.
            message = replace(message, high_watermark=0)
        return message

    def leave(self, to: NodeId, message: Message) -> None:
        """Send a message; the state that it promises must be durable."""
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
                self._fail("promises", "a vote was sent before it was durable", durable=kept)
        self.sent.append((to, message))

    def _fail(self, name: str, message: str, /, **evidence: object) -> None:
        raise Violation(name, message, node=self.raft.me.id, **evidence)

    def settle(self, *, has_begin_answers: bool, has_pre_votes: bool) -> None:
        """Convert the node to the form in which equal situations are equal."""
        core = self.core
        slots.forget_idle(core, has_pre_votes=has_pre_votes)
        self._forget_votes()
        names = slots.rename(core, has_begin_answers=has_begin_answers)
        fresh = {number for raw, number in names.items() if raw > slots.RAW_FROM}
        live = slots.live_numbers(core)
        self.killed = (self.before - live) | (self.before & fresh)
        self.sent = [(to, self._renamed(names, each)) for to, each in self.sent]
        base = slots.shift_tickets(core)
        self.pending = [(ticket - base, effects) for ticket, effects in self.pending]
        self.promises = sorted(
            (
                Promised(max(0, each.ticket - base), each.to, self._renamed(names, each.message))
                for each in self.promises
            ),
            key=repr,
        )

    def _forget_votes(self) -> None:
        """Drop the vote of an epoch once its leader is known: it decides nothing then."""
        self.core.election = _without_vote(self.core.election)
        self.disk = replace(self.disk, election=_without_vote(self.disk.election))

    def _renamed(self, names: dict[int, int], message: Message) -> Message:
        if not isinstance(message, Request):
            return message
        request_id = message.request_id
        if request_id > slots.RAW_FROM:
            return replace(message, request_id=names.get(request_id, slots.LATE))
        if request_id in self.killed:
            return replace(message, request_id=slots.LATE)
        return message

    def forget(self, peer: NodeId, numbers: frozenset[int]) -> None:
        """Drop answers that ``peer`` no longer waits for."""
        self.promises = [
            each
            for each in self.promises
            if isinstance(each.message, Request)
            or each.to != peer
            or each.message.request_id not in numbers
        ]
        role: Any = self.core.role
        held = getattr(role, "held", None)
        if held is not None:
            for fetch in held.take_all():
                if fetch.sender != peer or fetch.request.request_id not in numbers:
                    held.hold(fetch)
