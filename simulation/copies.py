"""A copy of a voter's disk in a process of its own, beside the original (a cloned machine).

Its identity is the original's, and so are the votes and acknowledgements that it would give. What
keeps it out is the rule of the transport: of two live processes with one key, the second is
refused by everybody who hears the first (``quorum.transport.peer_sessions``). Here the streams
of all nodes are open where both ends run, as voters keep them; how long an answer takes is
simulated.
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
"""What a violation found here is called."""
_OF_ONE_NODE = (Monotone, Bounds, Promises, LogStartCovered)
"""What holds for a copy by itself. It is no second voice in what holds for the cluster."""


class CopyLinks:
    """``Network`` for a copy: what it sends comes to every peer on a stream of its own."""

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
        """Whether the original has ended: whoever runs then is that replica, with an old disk."""
        return not self._original.is_up or self._original.incarnation != self._incarnation

    def send(self, sender: NodeId, to: NodeId, message: Message) -> None:
        """Take a message of the copy; its stream is refused, or nobody may hear of it."""
        if self.copy is not None:
            self.sent += 1
            self._after(self._claim, self.copy.incarnation, to, message.request_id)

    def found_at(self, sender: NodeId, addresses: Mapping[NodeId, str]) -> None:
        """Nobody leads a copy astray."""

    def door_closed(self, node_id: NodeId) -> None:
        """Nobody is connected to a copy."""

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
        # To the original the copy's hello is its own.
        is_own = receiver is self._original
        if not is_own and self._heard_by(receiver).conflict_of(claimed) is None:
            raise Violation(
                NAME, "a copy of a disk is heard beside its original", node=copy.id, by=receiver.id
            )
        self._after(self._refused, incarnation, to, receiver.id, request_id)

    def _heard_by(self, receiver: Member) -> PeerSessions:
        where = (receiver.id, receiver.incarnation)
        if where not in self._peer_sessions:
            peer_sessions = self._peer_sessions[where] = PeerSessions()
            for each in self._cluster.members.values():
                if each.is_up and each is not receiver:
                    peer_sessions.take(PeerSession(each.key, b"life %d" % each.incarnation, _ask))
        return self._peer_sessions[where]

    def _refused(self, incarnation: int, to: NodeId, receiver_id: NodeId, request_id: int) -> None:
        copy = self.copy
        if copy is not None and copy.incarnation == incarnation and not self.is_alone:
            # The original has answered the probe.
            self.refused_by.add(receiver_id)
            self._cluster.counts.copies_refused += 1
            self._cluster.note(receiver_id, "refuse", f"a copy of node {copy.id}")
            copy.notify(RequestFailed(to, request_id))


def _ask() -> None:
    """Whether the original lives is known here."""


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
    """The copy is found and switched off.

    Raises:
        Violation: It has run beside its original, and nobody has noticed.
    """
    copy, links.copy = links.copy, None
    if copy is None:
        return
    was_alone = links.is_alone
    copy.crash("kill", KEEP_ALL, is_refusing=False)
    if links.sent and not links.refused_by and not was_alone:
        raise Violation(NAME, "nobody has refused a copy of a disk", node=copy.id)
