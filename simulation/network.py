"""Simulated messages: lost, late, duplicated, reordered, or blocked by a cut or a dead process."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from quorum.core.contract.local_events import ConnectionRefused, RequestFailed
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest, EndQuorumEpochRequest
from quorum.core.messages.message_types import Message, Request
from quorum.types import NO_NODE, NodeId
from simulation.environment import Environment
from simulation.garbage import garbled
from simulation.harness.arrival import arrived
from simulation.member import Member
from simulation.stranger import ADDRESS, Stranger

_REQUESTS = frozenset(get_args(Request))
_UNMET = frozenset((BeginQuorumEpochRequest, EndQuorumEpochRequest))
"""Requests that a receiver treats as unproven before it has a session with their sender.

Fetches are accepted all the same, and state that only an unproven Fetch named is not always kept
(``trim-waits``).
"""
_UNMET_SHARE = 0.3


class Network:
    """All links of a cluster. Negative node ids name bootstrap servers."""

    def __init__(
        self, cluster: Environment, members: Mapping[NodeId, Member], rng: random.Random
    ) -> None:
        self._cluster = cluster
        self._members = members
        self._rng = rng
        self._cuts: set[tuple[NodeId, NodeId]] = set()
        self._slow: dict[frozenset[NodeId], int] = {}
        self._no_clients: frozenset[NodeId] = frozenset()
        self._aliases: dict[tuple[NodeId, int], NodeId] = {}
        self.stranger = Stranger(cluster, members, rng)
        self._astray: dict[tuple[NodeId, NodeId], int] = {}
        """Which member takes the stranger for which node, and in which incarnation."""

    def cut(self, side: Sequence[NodeId], rest: Sequence[NodeId], *, both_ways: bool) -> None:
        """Lose everything from ``side`` to ``rest``."""
        for one in side:
            for other in rest:
                self._cuts.add((one, other))
                if both_ways:
                    self._cuts.add((other, one))
        self._cluster.note(0, "cut", f"{side}->{rest} both={both_ways}")

    def slow(self, one: NodeId, other: NodeId, by_us: int) -> None:
        """Delay everything between two nodes by ``by_us``."""
        self._slow[frozenset((one, other))] = by_us
        self._cluster.note(0, "slow", f"{one}--{other} by {by_us}us")

    def cut_clients(self, nodes: Iterable[NodeId]) -> None:
        """Cut clients off from these nodes."""
        self._no_clients = frozenset(nodes)
        self._cluster.note(0, "cut", f"clients from {sorted(self._no_clients)}")

    def reaches_client(self, node_id: NodeId) -> bool:
        """Return whether messages between a node and any client arrive."""
        return node_id not in self._no_clients

    def heal(self) -> bool:
        """End all cuts; return False if there were none."""
        if not (self._cuts or self._slow or self._no_clients):
            return False
        self._cuts.clear()
        self._slow.clear()
        self._no_clients = frozenset()
        self._cluster.note(0, "heal", "")
        return True

    def set_hints(self, sender: NodeId, addresses: Mapping[NodeId, str]) -> None:
        """Set the addresses at which a node looks for others from now on."""
        for peer, address in addresses.items():
            if address == ADDRESS:
                self._astray[sender, peer] = self._members[sender].incarnation
            else:
                self._astray.pop((sender, peer), None)

    def send(self, sender: NodeId, to: NodeId, message: Message) -> None:
        """Send a message, which may get lost."""
        cluster, rng, plan = self._cluster, self._rng, self._cluster.plan
        if self._goes_astray(sender, to, message):
            return
        receiver = self._receiver(sender, to, message)
        if receiver is None:
            return
        target = receiver.id
        if (sender, target) in self._cuts:
            cluster.counts.cut += 1
            return
        if receiver.replica is None:
            self._find_down(self._members[sender], receiver, to)
            return
        if not cluster.is_healed:
            if rng.random() < plan.loss:
                cluster.counts.lost += 1
                if rng.random() < 0.5 and type(message) in _REQUESTS:
                    self._fail(sender, to, message.request_id)
                return
            if rng.random() < plan.duplication:
                cluster.counts.duplicated += 1
                cluster.scheduler.after(
                    self.delay(), self._arrive, sender, receiver, receiver.incarnation, message
                )
            if plan.garbage and rng.random() < plan.garbage:
                self._send_garbage(sender, receiver, message)
        delay = self.delay()
        if self._slow:
            delay += self._slow.get(frozenset((sender, target)), 0)
        cluster.scheduler.after(
            delay, self._arrive, sender, receiver, receiver.incarnation, message
        )

    def _receiver(self, sender: NodeId, to: NodeId, message: Message) -> Member | None:
        """Return the member that a message reaches; None where it reaches none."""
        if to >= 0:
            receiver = self._members.get(to)
            if receiver is None:
                # A forged replica at the address of a member: the member answers with its own
                # identity.
                self._fail(sender, to, message.request_id)
            return receiver
        target = self._cluster.node_behind(to)
        if target == NO_NODE:
            return None
        self._aliases[sender, message.request_id] = to
        return self._members[target]

    def _find_down(self, sender: Member, receiver: Member, to: NodeId) -> None:
        if receiver.is_refusing:
            self._cluster.scheduler.after(
                self.delay(), self._refused, sender, sender.incarnation, to
            )

    def _goes_astray(self, sender: NodeId, to: NodeId, message: Message) -> bool:
        """Return whether a message goes to the stranger.

        Sent to it, or an answer to its request.
        """
        if type(message) not in _REQUESTS:
            return self._cluster.is_foreign(to)
        is_astray = self._astray.get((sender, to)) == self._members[sender].incarnation
        if is_astray:
            self._cluster.scheduler.after(self.delay(), self.stranger.receive, sender, to, message)
        return is_astray

    def _send_garbage(self, sender: NodeId, receiver: Member, message: Message) -> None:
        made = garbled(message, self._rng)
        if made is not None:
            name, copy = made
            self._cluster.happened(f"garbage-{name}")
            self._cluster.scheduler.after(
                self.delay(), self._arrive, sender, receiver, receiver.incarnation, copy
            )

    def process_ended(self, node_id: NodeId) -> None:
        """Refuse the reconnects of a node's peers.

        Its process died on a machine that still runs.
        """
        for member in self._members.values():
            if member.is_up and member.id != node_id and (member.id, node_id) not in self._cuts:
                self._cluster.scheduler.after(
                    self.delay(), self._refused, member, member.incarnation, node_id
                )

    def delay(self) -> int:
        """Return how long a message takes, in microseconds."""
        plan, rng = self._cluster.plan, self._rng
        delay = rng.randint(plan.delay_min_us, plan.delay_max_us)
        if plan.straggle and not self._cluster.is_healed and rng.random() < plan.straggle:
            delay *= rng.randint(2, 50)
            self._cluster.counts.straggled += 1
        return delay

    def _fail(self, sender: NodeId, to: NodeId, request_id: int) -> None:
        member = self._members[sender]
        self._cluster.scheduler.after(
            self.delay(), self._failed, member, member.incarnation, to, request_id
        )

    def _failed(self, member: Member, incarnation: int, peer: NodeId, request_id: int) -> None:
        if member.incarnation == incarnation:
            member.notify(RequestFailed(peer, request_id))

    def _refused(self, member: Member, incarnation: int, peer: NodeId) -> None:
        is_down = not self._members[self._cluster.node_behind(peer)].is_up
        if member.incarnation == incarnation and is_down:
            self._cluster.counts.refused += 1
            member.notify(ConnectionRefused(peer))

    def _arrive(self, sender: NodeId, receiver: Member, incarnation: int, message: Message) -> None:
        # A connection ends with the process at either end of it.
        if receiver.incarnation != incarnation or (sender, receiver.id) in self._cuts:
            return
        if type(message) not in _REQUESTS:
            sender = self._aliases.get((receiver.id, message.request_id), sender)
        is_proven = type(message) not in _UNMET or self._is_met()
        receiver.receive(sender, arrived(message, is_proven=is_proven))

    def _is_met(self) -> bool:
        """Return whether the receiver knows the author (ADR 52); sometimes not, during faults."""
        cluster = self._cluster
        if not cluster.plan.garbage or cluster.is_healed or self._rng.random() >= _UNMET_SHARE:
            return True
        cluster.happened("unproven-caller")
        return False
