"""Partition changes that follow when a broker leaves or comes back.

With the native codec only the event is written, and every replica derives the partition changes
(630.17). With Kafka's codec event and changes are both written, in the order that Kafka's readers
expect, because a replay may be cut between them. Both codecs use the same election rules
(statemachine/DESIGN.md).
"""

from __future__ import annotations

from quorum.types import NodeId, Uuid
from statemachine.election import Election, ElectionRules, WantedChange, build_change
from statemachine.prepare.replicas import election_rules
from statemachine.prepare.view import View, allows_unclean_election
from statemachine.records import (
    BrokerFencedEvent,
    BrokerRegistrationChangeRecord,
    BrokerShutdownEvent,
    BrokerUnfencedEvent,
    MetadataRecord,
)
from statemachine.sections.cluster import FENCE, UNFENCE, BrokerRegistration
from statemachine.sections.partition_index import PartitionSet


def fence_records(
    view: View, broker: BrokerRegistration, *, uses_native_codec: bool
) -> list[MetadataRecord]:
    """Return the records of fencing: the broker leaves every ISR but those it is the last of."""
    if uses_native_codec:
        return [BrokerFencedEvent(broker.id, broker.epoch)]
    change = BrokerRegistrationChangeRecord(broker.id, broker.epoch, fenced=FENCE)
    return [*departure_changes(view, broker.id), change]


def unfence_records(
    view: View, broker: BrokerRegistration, *, uses_native_codec: bool
) -> list[MetadataRecord]:
    """Return the records of unfencing: the broker may lead partitions without a leader.

    ISRs do not grow; their leaders do that (AlterPartition).
    """
    if uses_native_codec:
        return [BrokerUnfencedEvent(broker.id, broker.epoch)]
    records: list[MetadataRecord] = [
        BrokerRegistrationChangeRecord(broker.id, broker.epoch, fenced=UNFENCE)
    ]
    records.extend(_changes(view, view.topics.without_leader(), always=broker.id))
    return records


def shutdown_records(
    view: View, broker: BrokerRegistration, *, uses_native_codec: bool
) -> list[MetadataRecord]:
    """Return the records of a controlled shutdown: leaderships move, the broker leaves its ISRs."""
    if uses_native_codec:
        return [BrokerShutdownEvent(broker.id, broker.epoch)]
    change = BrokerRegistrationChangeRecord(broker.id, broker.epoch, in_controlled_shutdown=1)
    return [change, *departure_changes(view, broker.id)]


def removal_records(
    view: View, broker: BrokerRegistration, *, is_unclean: bool, uses_native_codec: bool
) -> list[MetadataRecord]:
    """Return the records of a registration that will not come back; empty if nothing changes.

    With ``is_unclean`` the broker's data may be lost, so it leaves every ELR as well.
    """
    topics = view.topics
    has_elr = is_unclean and bool(topics.eligible_of(broker.id))
    has_isr = bool(topics.in_isr_of(broker.id)) and (is_unclean or not broker.fenced)
    if uses_native_codec:
        if broker.fenced and not has_elr and not has_isr:
            return []
        return [BrokerFencedEvent(broker.id, broker.epoch, unclean=is_unclean)]
    return departure_changes(view, broker.id, is_unclean=is_unclean)


def departure_changes(
    view: View, broker_id: NodeId, *, is_unclean: bool = False
) -> list[MetadataRecord]:
    """Return the changes of every partition whose ISR contains the broker or that it leads."""
    topics = view.topics
    affected = topics.in_isr_of(broker_id) | topics.led_by(broker_id)
    if is_unclean:
        affected |= topics.eligible_of(broker_id)
    lost = frozenset((broker_id,)) if is_unclean else frozenset()
    return _changes(view, affected, never=broker_id, lost=lost)


def _changes(
    view: View,
    affected: PartitionSet,
    *,
    never: NodeId | None = None,
    always: NodeId | None = None,
    lost: frozenset[NodeId] = frozenset(),
) -> list[MetadataRecord]:
    records: list[MetadataRecord] = []
    policies: dict[Uuid, tuple[ElectionRules, Election]] = {}
    for topic_id, partition_id in affected:
        state = view.topics.partition(topic_id, partition_id)
        if state is None:
            continue
        if topic_id not in policies:
            name = view.topics.name_of(topic_id) or ""
            policies[topic_id] = (
                election_rules(view, name, never=never, always=always),
                Election.UNCLEAN if allows_unclean_election(view, name) else Election.ONLINE,
            )
        rules, election = policies[topic_id]
        change = build_change(
            state,
            WantedChange(
                isr=tuple(member for member in state.isr if member != never),
                unclean_replicas=lost,
                election=election,
            ),
            rules,
            topic_id=topic_id,
            partition_id=partition_id,
        )
        if change is not None:
            records.append(change)
    return records
