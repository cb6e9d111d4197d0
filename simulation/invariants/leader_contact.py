"""A leader that cannot do its work resigns (Raft dissertation 6.2)."""

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
    """Return whether a message keeps followers from starting an election."""
    if type(message) is FetchResponse:
        return message.error == ErrorCode.NONE and message.leader_id == seen.id
    return type(message) is BeginQuorumEpochRequest


class HungDisk(Invariant):
    """A leader whose disk completes nothing stops keeping its followers from an election.

    Allowed is twice the configured limit by the leader's own clock, and one more check: a process
    that was paused for that long sees its disk's work only when it runs again. A lone voter is
    exempt, because no other node could take over.
    """

    name = "hung-disk"
    sent_kinds = (FetchResponse, BeginQuorumEpochRequest)

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.late: dict[NodeId, tuple[int, int]] = {}
        """Start of the disk's stall, and when the node was first seen leading beyond the limit."""

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
            "it still leads although its disk completes nothing",
            node=seen.id,
            waited_ms=waited_ms,
            limit_ms=limit_ms,
        )


class _Moment(NamedTuple):
    """A time, or a duration, by the leader's clock (which may jump) and in true time."""

    own_ms: int
    true_ms: int


@dataclass(slots=True)
class _LeadershipTerm:
    incarnation: int
    epoch: int
    voters_offset: int
    since: _Moment
    """Start of the silence: the start of the term, or the last change of the voter set."""
    contacts: dict[ReplicaKey, _Moment] = field(default_factory=dict)
    late_ms: int = -1
    """When a majority was first seen to be silent for too long."""
    overdue_ms: int = -1
    """When it should have been detected; a clock that jumps to it allows one more check."""
    contact_until_ms: int = -1
    """Until then no majority can have been silent for too long, whoever else fetches."""


class LeaderContact(Invariant):
    """A leader from which no majority fetches resigns.

    Allowed are three fetch timeouts by the leader's own clock, which is twice the specified time,
    and half a fetch timeout for detection. A silence shorter than the timeout in true time does not
    count: a leader that was paused repeatedly may excuse the time in which it received nothing.
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
                leadership_term.contacts[message.replica] = now
                if leadership_term.late_ms >= 0 and not self._is_silent(
                    self._silence(seen, leadership_term, now)
                ):
                    leadership_term.late_ms = leadership_term.overdue_ms = -1

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if not seen.replica.node.is_leader or not _is_sign_of_life(seen, message):
            return
        leadership_term, now = self._leadership_term(seen), self._now(seen)
        now_ms = now.own_ms
        if now_ms <= leadership_term.contact_until_ms:
            return
        timeout_ms = self.run_observer.config.fetch_timeout_ms
        silence = self._silence(seen, leadership_term, now)
        if not self._is_silent(silence):
            leadership_term.late_ms = leadership_term.overdue_ms = -1
            leadership_term.contact_until_ms = now_ms + self._limit_ms - silence.own_ms
            return
        if leadership_term.late_ms < 0:
            leadership_term.late_ms = now_ms
        if now_ms - leadership_term.late_ms <= timeout_ms // 2:
            return
        if leadership_term.overdue_ms < 0:
            leadership_term.overdue_ms = now_ms
        self.require(
            now_ms == leadership_term.overdue_ms,
            "it still leads although no majority fetches",
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
        """Return how long the leader has had no contact with any majority that includes it."""
        voters = [voter.key for voter in seen.replica.node.voters]
        leadership_term.contacts[seen.replica.key] = now
        last_contacts = sorted(
            (leadership_term.contacts.get(key, leadership_term.since) for key in voters),
            reverse=True,
        )
        last = last_contacts[len(voters) // 2]
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
            leadership_term.contacts.clear()
            leadership_term.contact_until_ms = -1
        return leadership_term
