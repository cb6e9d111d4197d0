"""Which commands a broker process executes: those for the registration that it holds (380.3).

A bounced broker must not execute what was decided for its past life: the StopReplica of a
shutdown that is over, or a first LeaderAndIsr with the partitions of then (KAFKA-7235).
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.broker_agent.commands import BrokerCommand, LeaderAndIsr, StopReplica
from quorate.broker_agent.derivation import numbers_of
from quorum.errors import ErrorCode
from quorum.types import Uuid
from statemachine.sections.cluster import NO_EPOCH
from statemachine.sections.partition_index import PartitionKey


class Generation:
    """The registration of one process of a broker. Epochs only rise (380.1)."""

    def __init__(self) -> None:
        self.broker_epoch = NO_EPOCH
        """-1 until the process is registered: it executes nothing before."""

    def hold(self, broker_epoch: int) -> None:
        """Note a registration of this process; one that is older than another is ignored."""
        self.broker_epoch = max(self.broker_epoch, broker_epoch)

    def check(self, command: BrokerCommand) -> ErrorCode:
        """Return NONE for a command of this registration, else STALE_BROKER_EPOCH.

        A command for a newer registration is refused as well: that one belongs to another process,
        or this process has not learnt of it yet.
        """
        if command.tag.broker_epoch != self.broker_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        return ErrorCode.NONE


def stray_replicas(
    command: LeaderAndIsr, hosted: Iterable[tuple[PartitionKey, str]]
) -> StopReplica | None:
    """Return the deletion of hosted replicas that a full ``command`` does not have, or None.

    They were dropped while the broker was down, or belong to a deleted topic whose name another
    topic may have now. ``hosted`` are the replicas on the broker's disks with their topic names.
    """
    if not command.is_full:
        return None
    assigned = set(command.partition_keys())
    names: dict[Uuid, str] = {}
    strays = []
    for key, name in hosted:
        if key not in assigned:
            strays.append(key)
            names[key[0]] = name
    if not strays:
        return None
    topics = numbers_of(sorted(strays), names.__getitem__)
    return StopReplica(command.tag, topics, delete_partitions=True)
