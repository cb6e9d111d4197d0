"""Committed records are on the disks of a majority of the voters in force (Raft 5.3, 5.4.2)."""

from __future__ import annotations

from quorum.types import ReplicaKey
from simulation.invariants.invariant import Invariant
from simulation.invariants.mirror import Batch
from simulation.invariants.seen import Seen


class CommittedOnMajority(Invariant):
    """When a node first reports a record as committed, a majority of the voters has it on disk.

    The record is of the epoch of the leader that reports it, or below such a record. A record of an
    older epoch is never committed by counting replicas.
    """

    name = "committed-on-majority"

    def on_committed(self, seen: Seen, batches: list[Batch], end_offset: int) -> None:
        node = seen.replica.node
        voters = [voter.key for voter in node.voters]
        chain = self.run_observer.committed.chain
        holders = [each for each in voters if self._has_held(each, end_offset, chain)]
        self.require(
            2 * len(holders) > len(voters),
            "committed without a majority of disks",
            node=seen.id,
            end_offset=end_offset,
            voters=voters,
            holders=holders,
        )
        self.require(
            not batches or batches[-1].epoch == node.epoch or not node.is_leader,
            "an older epoch's record was committed by counting",
            node=seen.id,
            epoch=node.epoch,
            end_offset=end_offset,
            record_epoch=batches[-1].epoch if batches else 0,
        )

    def _has_held(self, key: ReplicaKey, end_offset: int, chain: int) -> bool:
        seen = self.run_observer.nodes.get(key.id)
        if seen is None or seen.replica.key != key:
            seen = self.run_observer.replaced.get(key)
        if seen is None:
            return False
        # Corruption took records that were acknowledged before; the vote floor covers them.
        was_damaged = seen.damaged_at is not None and seen.damaged_at >= end_offset
        return was_damaged or seen.durable.chain_at(end_offset) == chain
