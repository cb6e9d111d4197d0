"""Placement of new replicas: striped over racks and brokers, so that load spreads evenly.

Pure: brokers and random source are arguments. Rules (KIP-36): one replica per broker; the
first replica, the leader, is on an unfenced broker; racks are balanced before brokers; a fenced
broker gets a replica only if its rack has no unfenced one left.

Invariants:
    1. Every result has ``replication_factor`` distinct brokers, the first one unfenced.
    2. No rack holds two replicas of a partition while another usable rack holds none.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quorum.errors import CommandError, ErrorCode
from quorum.types import NodeId


@dataclass(frozen=True, slots=True)
class UsableBroker:
    """A registered broker that may hold new replicas. Rack None is a rack of its own."""

    id: NodeId
    rack: str | None = None
    is_fenced: bool = False


class UsableBrokers:
    """The brokers that may hold new replicas, by rack. Read only; made once for many topics."""

    __slots__ = ("count", "racks", "unfenced_count")

    def __init__(self, brokers: Iterable[UsableBroker]) -> None:
        by_rack: dict[str, tuple[list[NodeId], list[NodeId]]] = {}
        for broker in sorted(brokers, key=lambda broker: broker.id):
            # A prefix distinguishes "no rack" from a rack with an empty name.
            key = "" if broker.rack is None else "=" + broker.rack
            by_rack.setdefault(key, ([], []))[broker.is_fenced].append(broker.id)
        self.racks = [by_rack[name] for name in sorted(by_rack)]
        """Unfenced and fenced brokers of each rack, in ascending order."""
        self.unfenced_count = sum(len(unfenced) for unfenced, _ in self.racks)
        self.count = self.unfenced_count + sum(len(fenced) for _, fenced in self.racks)


class _Cycle:
    """Brokers of one rack and fence state, in turn; each partition starts one further on."""

    __slots__ = ("_dealt", "_ids", "_partition", "_start")

    def __init__(self, ids: Sequence[NodeId], rng: random.Random) -> None:
        self._ids = ids
        self._partition = 0
        self._dealt = 0
        self._start = rng.randrange(len(ids)) if ids else 0

    def deal(self, partition: int) -> NodeId | None:
        """Return the next broker not yet used for this partition; None when all were."""
        if not self._ids:
            return None
        if partition != self._partition:
            # Advancing lazily keeps racks that a small replication factor skips in step.
            self._partition = partition
            self._dealt = 0
            self._start = (self._start + 1) % len(self._ids)
        if self._dealt == len(self._ids):
            return None
        broker = self._ids[(self._start + self._dealt) % len(self._ids)]
        self._dealt += 1
        return broker

    def take(self, partition: int, count: int) -> tuple[NodeId, ...]:
        """Return what ``count`` calls of ``deal`` would, of a cycle with at least so many brokers.

        It was not dealt from for this partition yet.
        """
        ids, start = self._ids, self._start
        if partition != self._partition:
            self._partition = partition
            start = self._start = (start + 1) % len(ids)
        self._dealt = count
        end = start + count
        if end <= len(ids):
            return tuple(ids[start:end])
        return (*ids[start:], *ids[: end - len(ids)])

    def shuffle(self, rng: random.Random) -> None:
        self._ids = list(self._ids)
        rng.shuffle(self._ids)


class _Rack:
    __slots__ = ("fenced", "unfenced")

    def __init__(
        self, unfenced: Sequence[NodeId], fenced: Sequence[NodeId], rng: random.Random
    ) -> None:
        self.unfenced = _Cycle(unfenced, rng)
        self.fenced = _Cycle(fenced, rng)

    def deal(self, partition: int) -> NodeId | None:
        broker = self.unfenced.deal(partition)
        return self.fenced.deal(partition) if broker is None else broker


class _Stripes:
    """The racks in turn. Owned by one call of ``place_replicas``."""

    def __init__(self, brokers: UsableBrokers, rng: random.Random) -> None:
        self._racks = [_Rack(unfenced, fenced, rng) for unfenced, fenced in brokers.racks]
        self._offset = rng.randrange(len(self._racks))
        self._unfenced_count = brokers.unfenced_count
        self._since_shuffle = 0
        self._partition = 0
        self._rng = rng
        self._only = (
            self._racks[0].unfenced if len(self._racks) == 1 and not brokers.racks[0][1] else None
        )
        """All brokers, if they are unfenced and in one rack: then no rack has to be chosen."""

    def place(self, replication_factor: int) -> tuple[NodeId, ...]:
        """Return the replicas of the next partition; the caller has checked the counts."""
        if self._since_shuffle == self._unfenced_count and self._unfenced_count > 1:
            self._shuffle()
        self._since_shuffle += 1
        if self._only is not None:
            taken = self._only.take(self._partition, replication_factor)
            self._partition += 1
            return taken
        count = len(self._racks)
        replicas: list[NodeId] = []
        leader_rack = 0
        for step in range(count):
            leader_rack = (self._offset + step) % count
            leader = self._racks[leader_rack].unfenced.deal(self._partition)
            if leader is not None:
                replicas.append(leader)
                break
        step = 0
        while len(replicas) < replication_factor:
            rack = (self._offset + step) % count
            if rack != leader_rack or step >= count:
                broker = self._racks[rack].deal(self._partition)
                if broker is not None:
                    replicas.append(broker)
            step += 1
        self._offset = (self._offset + 1) % count
        self._partition += 1
        return tuple(replicas)

    def _shuffle(self) -> None:
        self._since_shuffle = 0
        self._rng.shuffle(self._racks)
        for rack in self._racks:
            rack.unfenced.shuffle(self._rng)
            rack.fenced.shuffle(self._rng)


def place_replicas(
    brokers: UsableBrokers,
    *,
    partition_count: int,
    replication_factor: int,
    rng: random.Random,
) -> list[tuple[NodeId, ...]]:
    """Choose the replicas of ``partition_count`` new partitions, the leader first.

    Raises:
        CommandError: INVALID_REPLICATION_FACTOR when the factor is not positive, exceeds the
            usable brokers, or no usable broker is unfenced.
    """
    if replication_factor <= 0:
        raise CommandError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor} is not above 0",
        )
    if not brokers.count:
        raise CommandError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "there are no usable brokers: none is registered, or all directories are cordoned",
        )
    if not brokers.unfenced_count:
        raise CommandError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"all {brokers.count} usable brokers are fenced; a leader needs an unfenced one",
        )
    if replication_factor > brokers.count:
        raise CommandError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor} exceeds the {brokers.count} usable brokers",
        )
    stripes = _Stripes(brokers, rng)
    return [stripes.place(replication_factor) for _ in range(partition_count)]
