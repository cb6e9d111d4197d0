"""Who cannot do a leader's work does not keep the office (Raft dissertation 6.2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.message_types import Message
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest
from quorum.errors import ErrorCode
from quorum.types import NodeId, ReplicaKey
from simulation.invariants.invariant import Invariant
from simulation.invariants.seen import Seen
from simulation.invariants.witness import Witness


def _is_sign_of_life(seen: Seen, message: Message) -> bool:
    """Whether a message keeps followers from looking for another leader."""
    if type(message) is FetchResponse:
        return message.error == ErrorCode.NONE and message.leader_id == seen.id
    return type(message) is BeginQuorumEpochRequest


class HungDisk(Invariant):
    """A leader whose disk completes nothing does not go on to hold its followers.

    Twice the limit of the settings is allowed, by the leader's own clock, and a look after that:
    whoever was stopped for so long finds what its disk has done only when it runs again. A lone
    voter is excused; nobody could take over.
    """

    name = "hung-disk"
    sent_kinds = (FetchResponse, BeginQuorumEpochRequest)

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.late: dict[NodeId, tuple[int, int]] = {}
        """Since when a disk owes, and when its node was first seen to lead all the same."""

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if not seen.owed_count or not _is_sign_of_life(seen, message):
            return
        limit_ms, now_ms = self.witness.config.disk_stall_ms, seen.now_ms()
        waited_ms = now_ms - seen.owed_since_ms
        if waited_ms <= 2 * limit_ms or len(seen.replica.node.voters) < 2:
            return
        since, first_ms = self.late.get(seen.id, (-1, now_ms))
        if since != seen.owed_since_ms:
            first_ms = now_ms
        self.late[seen.id] = (seen.owed_since_ms, first_ms)
        self.require(
            now_ms - first_ms <= limit_ms // 2,
            "it leads on, and its disk does nothing",
            node=seen.id,
            waited_ms=waited_ms,
            limit_ms=limit_ms,
        )


class _Moment(NamedTuple):
    """By the leader's clock, which may jump, and truly; or how far two such moments are apart."""

    own_ms: int
    true_ms: int


@dataclass(slots=True)
class _Reign:
    life: int
    epoch: int
    voters_offset: int
    since: _Moment
    """From when on silence counts: the beginning, or the last change of the voters."""
    heard: dict[ReplicaKey, _Moment] = field(default_factory=dict)
    late_ms: int = -1
    """When a majority was first seen to be silent for too long."""
    overdue_ms: int = -1
    """When it should have been noticed; a clock that jumps there allows that very look."""
    heard_until_ms: int = -1
    """Until then no majority can have been silent for too long, whoever else is heard."""


class LeaderHeard(Invariant):
    """A leader from which no majority fetches gives up its office.

    Three times the fetch timeout is allowed, by the leader's own clock, which is twice what it
    should take, and half of that timeout to notice. A silence that is truly shorter than the
    timeout is none: a leader that stands still again and again excuses those it could not hear.
    """

    name = "leader-heard"
    sent_kinds = (FetchResponse, BeginQuorumEpochRequest)
    received_kinds = (FetchRequest, FetchSnapshotRequest)

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.reigns: dict[NodeId, _Reign] = {}

    def on_received(self, seen: Seen, sender: NodeId, message: Message) -> None:
        if type(message) is FetchRequest or type(message) is FetchSnapshotRequest:
            node = seen.replica.node
            if node.is_leader and message.epoch == node.epoch:
                reign, now = self._reign(seen), self._now(seen)
                reign.heard[message.replica] = now
                if reign.late_ms >= 0 and not self._is_unheard(self._silence(seen, reign, now)):
                    reign.late_ms = reign.overdue_ms = -1

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if not seen.replica.node.is_leader or not _is_sign_of_life(seen, message):
            return
        reign, now = self._reign(seen), self._now(seen)
        now_ms = now.own_ms
        if now_ms <= reign.heard_until_ms:
            return
        timeout_ms = self.witness.config.fetch_timeout_ms
        silence = self._silence(seen, reign, now)
        if not self._is_unheard(silence):
            reign.late_ms = reign.overdue_ms = -1
            reign.heard_until_ms = now_ms + self._limit_ms - silence.own_ms
            return
        if reign.late_ms < 0:
            reign.late_ms = now_ms
        if now_ms - reign.late_ms <= timeout_ms // 2:
            return
        if reign.overdue_ms < 0:
            reign.overdue_ms = now_ms
        self.require(
            now_ms == reign.overdue_ms,
            "it leads on, and no majority fetches",
            node=seen.id,
            epoch=reign.epoch,
            silent_ms=silence.own_ms,
            truly_ms=silence.true_ms,
            fetch_timeout_ms=timeout_ms,
        )

    @property
    def _limit_ms(self) -> int:
        return 3 * self.witness.config.fetch_timeout_ms

    def _is_unheard(self, silence: _Moment) -> bool:
        timeout_ms = self.witness.config.fetch_timeout_ms
        return silence.own_ms > self._limit_ms and silence.true_ms > timeout_ms

    def _now(self, seen: Seen) -> _Moment:
        own_ms, true_ms = seen.now_ms(), self.witness.true_ms
        return _Moment(own_ms, own_ms if true_ms is None else true_ms())

    @staticmethod
    def _silence(seen: Seen, reign: _Reign, now: _Moment) -> _Moment:
        """For how long the leader has not been heard of by any majority that it is part of."""
        voters = [voter.key for voter in seen.replica.node.voters]
        reign.heard[seen.replica.key] = now
        heard = sorted((reign.heard.get(key, reign.since) for key in voters), reverse=True)
        last = heard[len(voters) // 2]
        return _Moment(now.own_ms - last.own_ms, now.true_ms - last.true_ms)

    def _reign(self, seen: Seen) -> _Reign:
        node, reign = seen.replica.node, self.reigns.get(seen.id)
        if reign is None or reign.life != seen.life or reign.epoch != node.epoch:
            reign = _Reign(seen.life, node.epoch, node.voters_offset, self._now(seen))
            self.reigns[seen.id] = reign
        elif reign.voters_offset != node.voters_offset:
            reign.voters_offset, reign.since = node.voters_offset, self._now(seen)
            reign.heard.clear()
            reign.heard_until_ms = -1
        return reign
