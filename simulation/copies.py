"""Run a copy of a voter's disk as a second process beside the original (a cloned machine).

The copy has the original's identity, so its votes and acknowledgements would count as the
original's. The transport keeps it out: of two live processes with one key, every peer that has a
session with the first refuses the second (``quorum.transport.peer_sessions``). Here every pair of
running nodes has an open stream, as voters keep them; the time of an answer is simulated.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from quorum.core.contract.local_events import RequestFailed
from quorum.core.messages.message_types import Message
from quorum.transport.peer_sessions import PeerSession, PeerSessions
from quorum.types import NodeId
from simulation.invariants.bounds import Bounds
from simulation.invariants.hooks import run_observer_for
from simulation.invariants.log_start_covered import LogStartCovered
from simulation.invariants.monotone import Monotone
from simulation.invariants.promises import Promises
from simulation.invariants.violation import Violation
from simulation.member import Member
from simulation.memory_filesystem import KEEP_ALL
from simulation.population import Population

NAME = "copy-noticed"
"""The invariant that violations found here are reported under."""
_OF_ONE_NODE = (Monotone, Bounds, Promises, LogStartCovered)
"""Invariants that apply to the copy by itself. It does not count in those of the cluster."""


class CopyLinks:
    """``Network`` for a copy: each message reaches the peer on a stream of the copy's own."""

    def __init__(self, cluster: Population, original: Member) -> None:
        self.copy: Member | None = None
        self.sent = 0
        self.refused_by: set[NodeId] = set()
        self._cluster = cluster
        self._original = original
        self._incarnation = original.incarnation
        self._peer_sessions: dict[tuple[NodeId, int], PeerSessions] = {}

    @property
    def is_alone(self) -> bool:
        """Return whether the original has ended, so that the copy is that replica."""
        return not self._original.is_up or self._original.incarnation != self._incarnation

    def send(self, sender: NodeId, to: NodeId, message: Message) -> None:
        """Send a message of the copy. Its stream may be refused, or the message lost."""
        if self.copy is not None:
            self.sent += 1
            self._after(self._claim, self.copy.incarnation, to, message.request_id)

    def set_hints(self, sender: NodeId, addresses: Mapping[NodeId, str]) -> None:
        """Ignore hints: nothing misleads a copy."""

    def process_ended(self, node_id: NodeId) -> None:
        """Ignore it: no node is connected to a copy."""

    def _after(self, call: object, *arguments: object) -> None:
        network, scheduler = self._cluster.network, self._cluster.scheduler
        scheduler.after(network.delay() + network.delay(), call, *arguments)  # type: ignore[arg-type]

    def _claim(self, incarnation: int, to: NodeId, request_id: int) -> None:
        copy, cluster = self.copy, self._cluster
        if copy is None or copy.incarnation != incarnation or self.is_alone:
            return
        receiver = cluster.members[cluster.node_behind(to)]
        if not receiver.is_up:
            return
        claimed = PeerSession(copy.key, b"copy", _ask)
        # To the original, the copy's hello carries its own identity.
        is_own = receiver is self._original
        if not is_own and self._sessions_of(receiver).conflict_of(claimed) is None:
            raise Violation(
                NAME,
                "a peer accepted a copy of a disk beside its original",
                node=copy.id,
                by=receiver.id,
            )
        self._after(self._refused, incarnation, to, receiver.id, request_id)

    def _sessions_of(self, receiver: Member) -> PeerSessions:
        where = (receiver.id, receiver.incarnation)
        if where not in self._peer_sessions:
            peer_sessions = self._peer_sessions[where] = PeerSessions()
            for each in self._cluster.members.values():
                if each.is_up and each is not receiver:
                    peer_sessions.take(PeerSession(each.key, b"run %d" % each.incarnation, _ask))
        return self._peer_sessions[where]

    def _refused(self, incarnation: int, to: NodeId, receiver_id: NodeId, request_id: int) -> None:
        copy = self.copy
        if copy is not None and copy.incarnation == incarnation and not self.is_alone:
            # The original has answered the probe, so it runs.
            self.refused_by.add(receiver_id)
            self._cluster.counts.copies_refused += 1
            self._cluster.note(receiver_id, "refuse", f"a copy of node {copy.id}")
            copy.notify(RequestFailed(to, request_id))


def _ask() -> None:
    """Ignore the probe: the simulator knows whether the original runs."""


def start_copy(cluster: Population, original: Member, rng: random.Random) -> CopyLinks:
    """Copy a disk as it is now, and start a second process on the copy."""
    links = CopyLinks(cluster, original)
    copy = Member(cluster, links, original.key, (), rng)
    copy.disk.take_copy_of(original.disk)
    copy.run_observer = run_observer_for(_OF_ONE_NODE)
    copy.run_observer.config = cluster.run_observer.config
    copy.run_observer.positions = cluster.run_observer.positions
    copy.run_observer.batches = cluster.run_observer.batches
    copy.run_observer.committed = cluster.run_observer.committed
    links.copy = copy
    copy.boot()
    return links


def end_copy(links: CopyLinks) -> None:
    """Stop the copy: somebody has found it and switched it off.

    Raises:
        Violation: It ran beside its original and no peer refused it.
    """
    copy, links.copy = links.copy, None
    if copy is None:
        return
    was_alone = links.is_alone
    copy.crash("kill", KEEP_ALL, is_refusing=False)
    if links.sent and not links.refused_by and not was_alone:
        raise Violation(NAME, "no peer refused a copy of a disk", node=copy.id)
