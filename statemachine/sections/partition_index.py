"""Indexes by broker: the partitions whose ISR or ELR contains it, and those it leads.

They make the cost of fencing a broker proportional to its own partitions, not to the cluster's.
The partitions determine them fully, so they are never compared or dumped.
"""

from __future__ import annotations

from typing import TypeAlias

from immutables import Map

from quorum.types import Uuid
from statemachine.sections.map_delta import NestedMapDelta
from statemachine.sections.partitions import PartitionState

PartitionKey: TypeAlias = tuple[Uuid, int]
"""Topic id and partition number."""

BrokerPartitions: TypeAlias = Map[int, Map[PartitionKey, None]]


class PartitionIndexDelta:
    """The three indexes being changed together with the partitions."""

    __slots__ = ("elr", "isr", "leader")

    def __init__(
        self, isr: BrokerPartitions, leader: BrokerPartitions, elr: BrokerPartitions
    ) -> None:
        self.isr: NestedMapDelta[int, PartitionKey, None] = NestedMapDelta(isr)
        self.leader: NestedMapDelta[int, PartitionKey, None] = NestedMapDelta(leader)
        self.elr: NestedMapDelta[int, PartitionKey, None] = NestedMapDelta(elr)

    def added(self, key: PartitionKey, state: PartitionState) -> None:
        """Add a new partition to the indexes."""
        for broker in state.isr:
            self.isr.open_group(broker).set(key, None)
        self.leader.open_group(state.leader).set(key, None)
        for broker in state.elr:
            self.elr.open_group(broker).set(key, None)

    def removed(self, key: PartitionKey, state: PartitionState) -> None:
        """Remove a deleted partition from the indexes."""
        for broker in set(state.isr):
            self.isr.open_group(broker).pop(key)
        self.leader.open_group(state.leader).pop(key)
        for broker in set(state.elr):
            self.elr.open_group(broker).pop(key)

    def changed(self, key: PartitionKey, old: PartitionState, new: PartitionState) -> None:
        """Replace a partition's state in the indexes."""
        if old.isr != new.isr:
            _move(self.isr, key, old.isr, new.isr)
        if old.leader != new.leader:
            self.leader.open_group(old.leader).pop(key)
            self.leader.open_group(new.leader).set(key, None)
        if old.elr != new.elr:
            _move(self.elr, key, old.elr, new.elr)


def _move(
    index: NestedMapDelta[int, PartitionKey, None],
    key: PartitionKey,
    old: tuple[int, ...],
    new: tuple[int, ...],
) -> None:
    for broker in set(old).difference(new):
        index.open_group(broker).pop(key)
    for broker in new:
        if broker not in old:
            index.open_group(broker).set(key, None)
