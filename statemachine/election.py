"""Elect a partition's leader after a change, and build the record of the change.

Every command that changes a partition calls ``build_change``. It takes the partition and the
wanted change, elects a leader and updates the ELR. It returns the smallest
``PartitionChangeRecord`` with that result, or None if nothing changes. Pure.

Rules: statemachine/DESIGN.md; KIP-455 (reassignment), KIP-966 (ELR).

Invariants:
    1. A leader is always a replica and, with the exception of an unclean election, was in the
       ISR or in the ELR.
    2. Without ELR the ISR is never emptied: the last member stays although it cannot lead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from quorum.types import NO_NODE, NodeId, Uuid
from statemachine.records import RECOVERING, PartitionChangeRecord
from statemachine.sections.cluster import DIRECTORY_UNASSIGNED
from statemachine.sections.partitions import PartitionState


class Election(Enum):
    """Preference when a leader is chosen."""

    PREFERRED = "preferred"
    ONLINE = "online"
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True)
class ElectionRules:
    """The cluster's requirements for leaders and in-sync replicas."""

    is_acceptable: Callable[[NodeId, Uuid | None], bool]
    """Whether a broker may lead with a replica in that directory (None: not recorded):
    registered, unfenced, not shutting down, the directory online."""
    min_isr: int = 1
    is_elr_enabled: bool = False
    isr_shrink_bumps_leader_epoch: bool = False
    """True below metadata.version 3.6-IV0, whose brokers expect it."""


@dataclass(frozen=True, slots=True)
class WantedChange:
    """The wanted values of a partition. None keeps the present value."""

    isr: tuple[NodeId, ...] | None = None
    replicas: tuple[NodeId, ...] | None = None
    removing: tuple[NodeId, ...] | None = None
    adding: tuple[NodeId, ...] | None = None
    leader_recovery_state: int | None = None
    unclean_replicas: frozenset[NodeId] = frozenset()
    """Replicas that may have lost data: neither ISR, ELR nor leader."""
    directories: tuple[Uuid, ...] | None = None
    """Of the present replicas, in their order."""
    election: Election = Election.ONLINE


@dataclass(slots=True)
class _Target:
    """The new state of a partition, filled in step by step."""

    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    removing: tuple[NodeId, ...]
    adding: tuple[NodeId, ...]
    elr: tuple[NodeId, ...]
    last_known_elr: tuple[NodeId, ...]
    recovery_state: int
    leader: NodeId
    is_unclean: bool = False


def build_change(
    partition: PartitionState,
    wanted: WantedChange,
    rules: ElectionRules,
    *,
    topic_id: Uuid,
    partition_id: int,
) -> PartitionChangeRecord | None:
    """Return the record that brings ``partition`` to the wanted state; None if it is there.

    A ``leader`` in the record raises the leader epoch on replay, also if it names the present
    leader. This fences removed replicas.
    """
    target = _Target(
        replicas=partition.replicas if wanted.replicas is None else wanted.replicas,
        isr=partition.isr if wanted.isr is None else wanted.isr,
        removing=partition.removing if wanted.removing is None else wanted.removing,
        adding=partition.adding if wanted.adding is None else wanted.adding,
        elr=partition.elr,
        last_known_elr=partition.last_known_elr,
        recovery_state=(
            partition.leader_recovery_state
            if wanted.leader_recovery_state is None
            else wanted.leader_recovery_state
        ),
        leader=partition.leader,
    )
    target.isr = _without(target.isr, wanted.unclean_replicas)
    _complete_reassignment(target)
    if not target.isr and not rules.is_elr_enabled:
        target.isr = partition.isr
    _keep_elr(partition, target, rules, wanted.unclean_replicas)
    moved = partition
    if wanted.directories is not None:
        moved = partition._replace(directories=wanted.directories)
    _elect(moved, target, rules, wanted)
    _remember_last_leader(partition, target, rules)
    return _difference(
        partition, moved, target, rules, topic_id=topic_id, partition_id=partition_id
    )


def _without(brokers: tuple[NodeId, ...], gone: Iterable[NodeId]) -> tuple[NodeId, ...]:
    removed = set(gone)
    return tuple(broker for broker in brokers if broker not in removed) if removed else brokers


def _complete_reassignment(target: _Target) -> None:
    """Drop the replicas to remove once all replicas to add are in the ISR."""
    if not target.adding and not target.removing:
        return
    isr = _without(target.isr, target.removing)
    replicas = _without(target.replicas, target.removing)
    if not isr or not set(target.adding) <= set(isr):
        return
    shrinks = len(target.removing) > len(target.adding)
    if shrinks and not set(replicas) <= set(isr):
        return
    target.isr, target.replicas = isr, replicas
    target.removing = target.adding = ()


def _keep_elr(
    partition: PartitionState, target: _Target, rules: ElectionRules, unclean: frozenset[NodeId]
) -> None:
    if not rules.is_elr_enabled:
        return
    if len(target.isr) >= min(rules.min_isr, len(target.replicas)):
        target.elr = target.last_known_elr = ()
        return
    gone = unclean.union(target.isr)
    members = dict.fromkeys((*partition.elr, *partition.isr))
    target.elr = tuple(
        broker for broker in members if broker not in gone and broker in target.replicas
    )


def _elect(
    partition: PartitionState, target: _Target, rules: ElectionRules, wanted: WantedChange
) -> None:
    eligible = target.isr or (target.elr if rules.is_elr_enabled else ())

    def may_lead(broker: NodeId) -> bool:
        return (
            broker in eligible
            and broker not in wanted.unclean_replicas
            and rules.is_acceptable(broker, partition.directory(broker))
        )

    candidates: list[NodeId] = []
    if wanted.election is Election.PREFERRED:
        candidates.extend(target.replicas[:1])
    if partition.leader in target.replicas:
        candidates.append(partition.leader)
    candidates.extend(target.replicas)
    leader = next((broker for broker in candidates if may_lead(broker)), NO_NODE)
    if leader == NO_NODE:
        leader = _elect_unclean(partition, target, rules, wanted)
        if leader != NO_NODE:
            target.is_unclean = True
            target.isr = (leader,)
            target.elr = target.last_known_elr = ()
            target.recovery_state = RECOVERING
    elif leader not in target.isr:
        target.isr = (leader,)
        target.elr = _without(target.elr, (leader,))
    target.leader = leader


def _elect_unclean(
    partition: PartitionState, target: _Target, rules: ElectionRules, wanted: WantedChange
) -> NodeId:
    """Return a leader that may lack records: the last known one, or any replica if allowed."""
    last_known = partition.last_known_elr
    if (
        rules.is_elr_enabled
        and not target.isr
        and not target.elr
        and len(last_known) == 1
        and last_known[0] in target.replicas
        and rules.is_acceptable(last_known[0], partition.directory(last_known[0]))
    ):
        return last_known[0]
    if wanted.election is Election.UNCLEAN:
        return next(
            (
                broker
                for broker in target.replicas
                if rules.is_acceptable(broker, partition.directory(broker))
            ),
            NO_NODE,
        )
    return NO_NODE


def _remember_last_leader(partition: PartitionState, target: _Target, rules: ElectionRules) -> None:
    """Keep the last leader of a partition that became leaderless, for ``_elect_unclean``."""
    if not rules.is_elr_enabled:
        return
    if target.leader != NO_NODE:
        target.last_known_elr = ()
    elif partition.leader != NO_NODE and not target.isr:
        target.last_known_elr = (partition.leader,)


def _difference(
    partition: PartitionState,
    moved: PartitionState,
    target: _Target,
    rules: ElectionRules,
    *,
    topic_id: Uuid,
    partition_id: int,
) -> PartitionChangeRecord | None:
    change = PartitionChangeRecord(partition_id=partition_id, topic_id=topic_id)
    if _bumps_leader_epoch(partition, target, rules):
        change.leader = target.leader
    # The order of an ISR has no meaning: equal members are no change.
    if set(target.isr) != set(partition.isr):
        change.isr = target.isr
    if target.elr != partition.elr:
        change.eligible_leader_replicas = target.elr
    if target.last_known_elr != partition.last_known_elr:
        change.last_known_elr = target.last_known_elr
    if moved.directories != partition.directories:
        change.directories = moved.directories
    if target.replicas != partition.replicas:
        change.replicas = target.replicas
        if moved.directories:
            change.directories = tuple(
                moved.directory(replica) or DIRECTORY_UNASSIGNED for replica in target.replicas
            )
    if target.removing != partition.removing:
        change.removing_replicas = target.removing
    if target.adding != partition.adding:
        change.adding_replicas = target.adding
    if target.recovery_state != partition.leader_recovery_state:
        change.leader_recovery_state = target.recovery_state
    untouched = PartitionChangeRecord(partition_id=partition_id, topic_id=topic_id)
    return None if change == untouched else change


def _bumps_leader_epoch(partition: PartitionState, target: _Target, rules: ElectionRules) -> bool:
    """Whether the record must contain the leader, which raises the leader epoch on replay."""
    if target.leader != partition.leader:
        return True
    if not set(partition.replicas) <= set(target.replicas):
        return True
    # An uncleanly elected leader may be the former leader, but its log may differ.
    if target.is_unclean:
        return True
    return rules.isr_shrink_bumps_leader_epoch and not set(partition.isr) <= set(target.isr)
