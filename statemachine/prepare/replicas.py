"""Eligibility of brokers: which may lead and which may hold replicas.

The rules read the image only; see statemachine/DESIGN.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from immutables import Map

from quorum.errors import CommandError, ErrorCode
from quorum.types import NodeId, Uuid
from statemachine.election import ElectionRules
from statemachine.placement import UsableBroker, UsableBrokers
from statemachine.prepare.context import EvaluationContext, KnownBrokers
from statemachine.prepare.view import (
    View,
    is_elr_enabled,
    min_insync_replicas,
)
from statemachine.records import MetadataRecord, PartitionRecord
from statemachine.sections.cluster import (
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
    BrokerRegistration,
)

DIRECTORIES_LEVEL = 17
"""metadata.version 3.7-IV2: partitions name the directory of each replica (KIP-858)."""
CORDONS_LEVEL = 30
"""metadata.version 4.3-IV0: registrations name the directories that are cordoned (KIP-1066)."""
ISR_SHRINK_LEVEL = 12
"""metadata.version 3.6-IV0: from here on an ISR change alone keeps the leader epoch."""

_FIRST_STATES_MAX = 1 << 12
"""First states of partitions that are remembered."""


def election_rules(
    view: View,
    topic_name: str,
    *,
    never: NodeId | None = None,
    always: NodeId | None = None,
) -> ElectionRules:
    """Return the rules for one topic's partitions.

    ``never`` is a broker that is about to leave and must not be chosen, ``always`` one that is
    about to be unfenced and may be.
    """

    def is_acceptable(broker_id: NodeId, directory: Uuid | None) -> bool:
        if broker_id == never:
            return False
        broker = view.cluster.broker(broker_id)
        return (
            broker is not None
            and not broker.in_controlled_shutdown
            and (not broker.fenced or broker_id == always)
            and broker.has_online(directory)
        )

    return ElectionRules(
        is_acceptable=is_acceptable,
        min_isr=min_insync_replicas(view, topic_name),
        is_elr_enabled=is_elr_enabled(view),
        isr_shrink_bumps_leader_epoch=view.features.metadata_version < ISR_SHRINK_LEVEL,
    )


def usable_brokers(view: View, context: EvaluationContext) -> UsableBrokers:
    """Return the brokers for new replicas: those with a log directory that is not cordoned.

    Computed again only if a registration has changed since ``context`` was last asked.
    """
    return _known_brokers(view, context).usable


def _known_brokers(view: View, context: EvaluationContext) -> KnownBrokers:
    known = context.known_brokers
    registered = view.cluster.brokers
    registrations = registered if isinstance(registered, Map) else registered.settle()
    if known.registrations is not registrations:
        known.usable = UsableBrokers(
            UsableBroker(broker.id, broker.rack, is_fenced=not broker.is_active)
            for broker in registrations.values()
            if broker.open_log_dirs or not broker.log_dirs
        )
        known.registrations = registrations
        known.first_states.clear()
    return known


def check_assignment(
    view: View, replicas: Sequence[NodeId], partition: int, replication_factor: int
) -> None:
    """Validate the replicas that a client assigned.

    Raises:
        CommandError: INVALID_REPLICA_ASSIGNMENT with the partition and the cause.
    """
    problem = None
    if not replicas:
        problem = "no replicas"
    elif len(set(replicas)) != len(replicas):
        problem = f"a broker twice in {list(replicas)}"
    elif len(replicas) != replication_factor:
        problem = f"{len(replicas)} replicas where the others have {replication_factor}"
    else:
        unknown = [broker for broker in replicas if view.cluster.broker(broker) is None]
        if unknown:
            problem = f"unregistered brokers {unknown}"
        elif not any(view.cluster.is_active(broker) for broker in replicas):
            problem = f"no active broker among {list(replicas)}"
    if problem is not None:
        raise CommandError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"partition {partition} is given {problem}"
        )


def new_partitions(
    view: View,
    context: EvaluationContext,
    topic_id: Uuid,
    first: int,
    placed: Sequence[tuple[NodeId, ...]],
) -> list[MetadataRecord]:
    """Return the first records of partitions from number ``first`` on, with these replicas.

    The active replicas are in sync, the first one of them leads.

    Raises:
        CommandError: INVALID_REPLICATION_FACTOR if none of a partition's replicas is active.
    """
    known = _known_brokers(view, context)
    level = view.features.metadata_version
    states = known.first_states
    if known.level != level or len(states) > _FIRST_STATES_MAX:
        known.level = level
        states.clear()
    records: list[MetadataRecord] = []
    for partition, replicas in enumerate(placed, first):
        state = states.get(replicas)
        if state is None:
            state = states[replicas] = _first_state(view, level, replicas)
        isr, directories = state
        if not isr:
            raise CommandError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"partition {partition}: none of the brokers {list(replicas)} is active",
            )
        records.append(
            PartitionRecord(
                partition, topic_id, replicas, isr, leader=isr[0], leader_epoch=0,
                partition_epoch=0, directories=directories,
            )
        )  # fmt: skip
    return records


def _first_state(
    view: View, level: int, replicas: tuple[NodeId, ...]
) -> tuple[tuple[NodeId, ...], tuple[Uuid, ...]]:
    """Return the ISR of a new partition and its directories."""
    registered = [view.cluster.broker(broker) for broker in replicas]
    isr = tuple([each.id for each in registered if each is not None and each.is_active])
    if level < DIRECTORIES_LEVEL:
        return isr, ()
    return isr, tuple([_default_directory(each) for each in registered])


def _default_directory(broker: BrokerRegistration | None) -> Uuid:
    """Return the only directory of a broker that takes replicas, else a reserved id (KIP-858).

    A broker with several chooses by itself, and reports its choice (AssignReplicasToDirs).
    """
    if broker is None or not broker.log_dirs:
        return DIRECTORY_MIGRATING
    # All are cordoned only if somebody has assigned the replica by hand.
    directories = broker.open_log_dirs or broker.log_dirs
    return directories[0] if len(directories) == 1 else DIRECTORY_UNASSIGNED
