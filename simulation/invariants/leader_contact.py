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
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen


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

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.late: dict[NodeId, tuple[int, int]] = {}
        """Since when a disk owes, and when its node was first seen to lead all the same."""

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if not seen.owed_count or not _is_sign_of_life(seen, message):
            return
        limit_ms, now_ms = self.run_observer.config.disk_stall_ms, seen.now_ms()
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
class _LeadershipTerm:
    incarnation: int
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


class LeaderContact(Invariant):
    """A leader from which no majority fetches gives up its office.

    Three times the fetch timeout is allowed, by the leader's own clock, which is twice what it
    should take, and half of that timeout to notice. A silence that is truly shorter than the
    timeout is none: a leader that stands still again and again excuses those it could not hear.
    """

    name = "leader-contact"
    sent_kinds = (FetchResponse, BeginQuorumEpochRequest)
    received_kinds = (FetchRequest, FetchSnapshotRequest)

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.leadership_terms: dict[NodeId, _LeadershipTerm] = {}

    def on_received(self, seen: Seen, sender: NodeId, message: Message) -> None:
        if type(message) is FetchRequest or type(message) is FetchSnapshotRequest:
            node = seen.replica.node
            if node.is_leader and message.epoch == node.epoch:
                leadership_term, now = self._leadership_term(seen), self._now(seen)
                leadership_term.heard[message.replica] = now
                if leadership_term.late_ms >= 0 and not self._is_silent(
                    self._silence(seen, leadership_term, now)
                ):
                    leadership_term.late_ms = leadership_term.overdue_ms = -1

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if not seen.replica.node.is_leader or not _is_sign_of_life(seen, message):
            return
        leadership_term, now = self._leadership_term(seen), self._now(seen)
        now_ms = now.own_ms
        if now_ms <= leadership_term.heard_until_ms:
            return
        timeout_ms = self.run_observer.config.fetch_timeout_ms
        silence = self._silence(seen, leadership_term, now)
        if not self._is_silent(silence):
            leadership_term.late_ms = leadership_term.overdue_ms = -1
            leadership_term.heard_until_ms = now_ms + self._limit_ms - silence.own_ms
            return
        if leadership_term.late_ms < 0:
            leadership_term.late_ms = now_ms
        if now_ms - leadership_term.late_ms <= timeout_ms // 2:
            return
        if leadership_term.overdue_ms < 0:
            leadership_term.overdue_ms = now_ms
        self.require(
            now_ms == leadership_term.overdue_ms,
            "it leads on, and no majority fetches",
            node=seen.id,
            epoch=leadership_term.epoch,
            silent_ms=silence.own_ms,
            truly_ms=silence.true_ms,
            fetch_timeout_ms=timeout_ms,
        )

    @property
    def _limit_ms(self) -> int:
        return 3 * self.run_observer.config.fetch_timeout_ms

    def _is_silent(self, silence: _Moment) -> bool:
        timeout_ms = self.run_observer.config.fetch_timeout_ms
        return silence.own_ms > self._limit_ms and silence.true_ms > timeout_ms

    def _now(self, seen: Seen) -> _Moment:
        own_ms, true_ms = seen.now_ms(), self.run_observer.true_ms
        return _Moment(own_ms, own_ms if true_ms is None else true_ms())

    @staticmethod
    def _silence(seen: Seen, leadership_term: _LeadershipTerm, now: _Moment) -> _Moment:
        """For how long the leader has not been heard of by any majority that it is part of."""
        voters = [voter.key for voter in seen.replica.node.voters]
        leadership_term.heard[seen.replica.key] = now
        heard = sorted(
            (leadership_term.heard.get(key, leadership_term.since) for key in voters), reverse=True
        )
        last = heard[len(voters) // 2]
        return _Moment(now.own_ms - last.own_ms, now.true_ms - last.true_ms)

    def _leadership_term(self, seen: Seen) -> _LeadershipTerm:
        node, leadership_term = seen.replica.node, self.leadership_terms.get(seen.id)
        if (
            leadership_term is None
            or leadership_term.incarnation != seen.incarnation
            or leadership_term.epoch != node.epoch
        ):
            leadership_term = _LeadershipTerm(
                seen.incarnation, node.epoch, node.voters_offset, self._now(seen)
            )
            self.leadership_terms[seen.id] = leadership_term
        elif leadership_term.voters_offset != node.voters_offset:
            leadership_term.voters_offset, leadership_term.since = (
                node.voters_offset,
                self._now(seen),
            )
            leadership_term.heard.clear()
            leadership_term.heard_until_ms = -1
        return leadership_term
