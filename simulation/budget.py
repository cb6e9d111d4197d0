"""The budget of storage faults: which disks lack data, and which more may be damaged.

At any time at most a minority of the voters may lack data that they had completed. This holds for
*every* voter set that may be asked for a majority: the committed one; those in force on any node,
running or not, uncommitted voter records included; the set before it, which a truncation restores;
and the set that a pending change would produce.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorum.core.node.raft_node import RaftNode
from quorum.types import NodeId, ReplicaKey, Voter
from simulation.member import Member
from simulation.population import Population


class Budget:
    """One per cluster. Every fault that may destroy completed data asks it first."""

    def __init__(self, cluster: Population) -> None:
        self._cluster = cluster
        self._damaged: set[NodeId] = set()
        """Whose disks have lost something, and may not have all of it back."""

    def spend(self, member: Member) -> None:
        """Record that this disk has lost data."""
        self._damaged.add(member.id)

    def allows(self, member: Member) -> bool:
        """Return whether this disk may lose data now."""
        key = member.key
        return all(
            self._is_minority({*self._lacking(voters), key}, voters)
            for voters in self.sets()
            if key in voters
        )

    def allows_voters(self, voters: Iterable[ReplicaKey]) -> bool:
        """Return whether this voter set may come into force now."""
        wanted = frozenset(voters)
        return self._is_minority(self._lacking(wanted), wanted)

    def is_gone(self, key: ReplicaKey) -> bool:
        """Return whether no disk with this key will ever vote again."""
        member = self._cluster.members.get(key.id)
        return member is None or member.key != key or member.disk.has_lost_its_vote

    def lacking(self) -> set[NodeId]:
        """Return the nodes whose disks lack completed data or never vote again."""
        self._damaged = {each for each in self._damaged if not self._is_whole(each)}
        members = self._cluster.members.values()
        return self._damaged | {each.id for each in members if each.disk.has_lost_its_vote}

    def _lacking(self, voters: frozenset[ReplicaKey]) -> set[ReplicaKey]:
        self._damaged = {each for each in self._damaged if not self._is_whole(each)}
        return {key for key in voters if key.id in self._damaged or self.is_gone(key)}

    def _is_whole(self, node_id: NodeId) -> bool:
        """Return whether the disk has all its lost data back."""
        member = self._cluster.members[node_id]
        disk = member.disk
        is_intact = member.is_up and not disk.has_lost_its_vote and not disk.files.is_latent
        return is_intact and self._cluster.run_observer.is_repaired(node_id)

    @staticmethod
    def _is_minority(lacking: set[ReplicaKey], voters: frozenset[ReplicaKey]) -> bool:
        return len(lacking) <= (len(voters) - 1) // 2

    def sets(self) -> set[frozenset[ReplicaKey]]:
        """Return every voter set that any node may ask for a majority."""
        cluster = self._cluster
        found = {_keys(cluster.bootstrap_voters)} if not cluster.run_observer.nodes else set()
        for seen in cluster.run_observer.nodes.values():
            # A stopped node keeps the voter sets of its last incarnation: its disk has no others.
            node = seen.replica.node
            found.add(_keys(node.voters))
            found.add(_keys(node.voter_set_at(node.voters_offset).voters))
            found.add(_keys(node.voter_set_at(node.high_watermark).voters))
            if cluster.members[seen.id].is_up:
                found.add(_after_change(node))
        found.discard(frozenset())
        return found


def _keys(voters: Iterable[Voter]) -> frozenset[ReplicaKey]:
    return frozenset(voter.key for voter in voters)


def _after_change(node: RaftNode) -> frozenset[ReplicaKey]:
    """Return the set that this leader's pending change would produce."""
    keys, change = _keys(node.voters), node.pending_change
    if change is None:
        return keys
    if change.kind == "remove":
        return keys - {change.voter.key}
    return frozenset(key for key in keys if key.id != change.voter.key.id) | {change.voter.key}
