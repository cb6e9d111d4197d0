"""Derive partition changes from a broker event; frozen and versioned.

A broker with 30,000 partitions goes offline as one record; every replica, and the exporter,
derives the same partition changes from it (630.17). So these rules must never change: a change
is a new version beside the old one, and each event names its version. The rules read the image
alone: no configuration, no clock, no set or hash order.

They share no code with ``statemachine.election``, whose rules may change; a test compares both
as long as they are meant to agree. Kafka's records 7, 8 and 17 derive nothing: their log contains
the partition changes.

Rules of version 1: statemachine/DESIGN.md (fence, unfence, controlled shutdown), ADR 74 (leaving),
KIP-455 for completing a reassignment, KIP-966 for ELR.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from quorum.errors import ReplayError, UnknownRecordError
from quorum.types import NO_NODE, Uuid
from statemachine.records import (
    ELR_VERSION,
    LEADER_UNCHANGED,
    RECOVERING,
    BrokerFencedEvent,
    BrokerLeavingEvent,
    BrokerShutdownEvent,
    BrokerUnfencedEvent,
    MetadataRecord,
    PartitionChangeRecord,
)
from statemachine.sections.cluster import DIRECTORY_UNASSIGNED, ClusterView
from statemachine.sections.configs import ConfigsView, ResourceType
from statemachine.sections.features import FeaturesView
from statemachine.sections.partition_index import PartitionSet, union
from statemachine.sections.partitions import AlikeChange, PartitionState, alike_key
from statemachine.sections.topics import TopicsView

DERIVATION_VERSION = 1
"""The version that new events name."""

DERIVATION_VERSIONS = frozenset({1})

BrokerEvent: TypeAlias = (
    BrokerFencedEvent | BrokerUnfencedEvent | BrokerShutdownEvent | BrokerLeavingEvent
)

_MIN_ISR_CONFIG = "min.insync.replicas"
_UNCLEAN_CONFIG = "unclean.leader.election.enable"
_ISR_SHRINK_LEVEL = 12
"""Below metadata.version 3.6-IV0 brokers expect a new leader epoch when an ISR shrinks."""


class DerivationView(Protocol):
    """The parts of an image or delta that the rules read."""

    @property
    def features(self) -> FeaturesView:
        """Finalised levels."""

    @property
    def cluster(self) -> ClusterView:
        """Broker registrations."""

    @property
    def topics(self) -> TopicsView:
        """Topics and partitions."""

    @property
    def configs(self) -> ConfigsView:
        """Configuration values."""


def check_derivable(record: MetadataRecord) -> None:
    """Refuse an event whose rules this release does not have; other records pass.

    Raises:
        UnknownRecordError: Replay must stop before this record.
    """
    if isinstance(record, BrokerEvent) and record.derivation_version not in DERIVATION_VERSIONS:
        raise UnknownRecordError(
            f"{type(record).__name__} for broker {record.broker_id} names derivation version "
            f"{record.derivation_version}, known are {sorted(DERIVATION_VERSIONS)}",
            api_key=record.API_KEY,
            version=record.derivation_version,
        )


_Settings: TypeAlias = tuple[int, bool]
"""The least size of the ISR, and whether the election may be unclean, of a topic."""


def derive(view: DerivationView, event: BrokerEvent) -> list[PartitionChangeRecord]:
    """Return the partition changes that follow from ``event``, by topic id and partition.

    ``view`` is the state before the event.

    Raises:
        ReplayError: The broker is not registered, or with another epoch.
        UnknownRecordError: The event names a derivation version this release does not have.
    """
    return list(derivation_of(view, event).records())


def derivation_of(view: DerivationView, event: BrokerEvent) -> Derivation:
    """Return the changes that follow from ``event`` without making a record of each.

    ``view`` is the state before the event. Its partitions may change while they are derived,
    because the change of one depends on no other; the rest of it must not.

    Raises:
        ReplayError: The broker is not registered, or with another epoch.
        UnknownRecordError: The event names a derivation version this release does not have.
    """
    check_derivable(event)
    broker = view.cluster.broker(event.broker_id)
    if broker is None or broker.epoch != event.broker_epoch:
        raise ReplayError(
            f"{type(event).__name__} for broker {event.broker_id} epoch {event.broker_epoch}, "
            f"registered: {'none' if broker is None else broker.epoch}"
        )
    return Derivation(view, affected_by(view.topics, event), _RulesV1(view, event))


class Derivation:
    """What one event does to partitions, found topic by topic.

    Invariants:
        1. Nothing that it refers to refers back, so the changes of tens of thousands of partitions
           are freed at once, without a search for cycles.
    """

    def __init__(self, view: DerivationView, affected: PartitionSet, rules: _RulesV1) -> None:
        self._view = view
        self.affected = affected
        """Every partition that may change, and some that do not."""
        self._rules = rules
        self._by_settings: dict[_Settings, TopicChanges] = {}

    def changes_in(self, topic_id: Uuid) -> TopicChanges:
        """Return a topic's changes, to be asked for the state of each partition."""
        settings = self._rules.settings_of(topic_id)
        found = self._by_settings.get(settings)
        if found is None:
            found = self._by_settings[settings] = TopicChanges(self._rules, settings)
        return found

    def records(self) -> Iterator[PartitionChangeRecord]:
        """Yield the changes as records, by topic id and partition."""
        topics = self._view.topics
        for topic_id, index in self.affected:
            state = topics.partition(topic_id, index)
            alike = None if state is None else self.changes_in(topic_id).of(state)
            if alike is not None:
                yield alike.record(topic_id, index)


class TopicChanges:
    """The changes of one event, in topics with the same settings.

    Partitions placed alike change alike: all but the two epochs decides, and thousands of
    partitions of a broker share it.
    """

    __slots__ = ("_derive", "_settings", "known")

    def __init__(self, rules: _RulesV1, settings: _Settings) -> None:
        self._derive = rules.change
        self._settings = settings
        self.known: dict[tuple[object, ...], AlikeChange | None] = {}
        """By ``alike_key``; None for states that do not change."""

    def of(self, state: PartitionState) -> AlikeChange | None:
        """Return the change of a partition in this state, or None if there is none."""
        key = alike_key(state)
        known = self.known
        if key in known:
            return known[key]
        change = self._derive(state, self._settings)
        found = known[key] = None if change is None else AlikeChange(state, change)
        return found


def affected_by(topics: TopicsView, event: BrokerEvent) -> PartitionSet:
    """Return every partition that an event may change, and some that it does not."""
    if isinstance(event, BrokerUnfencedEvent):
        return topics.without_leader()
    broker_id = event.broker_id
    found = [topics.in_isr_of(broker_id), topics.led_by(broker_id)]
    if isinstance(event, BrokerFencedEvent | BrokerLeavingEvent) and event.unclean:
        found.append(topics.eligible_of(broker_id))
    if isinstance(event, BrokerLeavingEvent):
        start, end = event.start_topic_id, event.end_topic_id
        found = [each.between(start, end) for each in found]
    return union(found)


@dataclass(slots=True)
class _Outcome:
    """The new state of a partition, filled in step by step."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing: tuple[int, ...]
    adding: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    leader: int = NO_NODE
    is_unclean: bool = False


def _settings(min_isr: str | None, unclean: str | None) -> _Settings:
    is_number = min_isr is not None and min_isr.isascii() and min_isr.isdecimal()
    wanted = max(1, int(min_isr)) if min_isr is not None and is_number else 1
    return wanted, unclean == "true"


class _RulesV1:
    """Derivation version 1 over one view and event. Frozen: a fix needs a new version."""

    def __init__(self, view: DerivationView, event: BrokerEvent) -> None:
        self._view = view
        joins = isinstance(event, BrokerUnfencedEvent)
        self._joining = event.broker_id if joins else NO_NODE
        self._leaving = NO_NODE if joins else event.broker_id
        self._is_unclean = (
            isinstance(event, BrokerFencedEvent | BrokerLeavingEvent) and event.unclean
        )
        self._needs_clean_leader = isinstance(event, BrokerLeavingEvent)
        self._has_elr = view.features.level(ELR_VERSION) > 0
        self._shrink_bumps = view.features.metadata_version < _ISR_SHRINK_LEVEL
        configs = view.configs
        self._default_min_isr = configs.value(ResourceType.BROKER, "", _MIN_ISR_CONFIG)
        self._default_unclean = configs.value(ResourceType.BROKER, "", _UNCLEAN_CONFIG)
        self._default = _settings(self._default_min_isr, self._default_unclean)

    def settings_of(self, topic_id: Uuid) -> _Settings:
        """Return what decides in a topic beside the states."""
        name = self._view.topics.name_of(topic_id) or ""
        values = self._view.configs.of(ResourceType.TOPIC, name)
        if not values:
            return self._default
        return _settings(
            values.get(_MIN_ISR_CONFIG, self._default_min_isr),
            values.get(_UNCLEAN_CONFIG, self._default_unclean),
        )

    def change(self, state: PartitionState, settings: _Settings) -> PartitionChangeRecord | None:
        """Return the change of every partition in this state, or None; it names no partition."""
        min_isr, unclean_allowed = settings
        outcome = _Outcome(
            state.replicas,
            tuple([broker for broker in state.isr if broker != self._leaving]),
            state.removing,
            state.adding,
            state.elr,
            state.last_known_elr,
        )
        _complete_reassignment(outcome)
        if not outcome.isr and not self._has_elr:
            outcome.isr = state.isr
        if self._has_elr:
            self._keep_elr(state, outcome, min_isr)
        self._elect(state, outcome, unclean_allowed=unclean_allowed)
        if self._needs_clean_leader and (outcome.leader == NO_NODE or outcome.is_unclean):
            return None
        if self._has_elr:
            if outcome.leader != NO_NODE:
                outcome.last_known_elr = ()
            elif state.leader != NO_NODE and not outcome.isr:
                outcome.last_known_elr = (state.leader,)
        return self._difference(state, outcome)

    def _keep_elr(self, state: PartitionState, outcome: _Outcome, min_isr: int) -> None:
        if len(outcome.isr) >= min(min_isr, len(outcome.replicas)):
            outcome.elr = outcome.last_known_elr = ()
            return
        members = dict.fromkeys((*state.elr, *state.isr))
        lost = self._leaving if self._is_unclean else NO_NODE
        outcome.elr = tuple(
            broker
            for broker in members
            if broker != lost and broker not in outcome.isr and broker in outcome.replicas
        )

    def _may_lead(self, broker_id: int, state: PartitionState) -> bool:
        if broker_id == self._leaving:
            return False
        broker = self._view.cluster.broker(broker_id)
        if broker is None or broker.in_controlled_shutdown:
            return False
        if broker.fenced and broker_id != self._joining:
            return False
        return broker.has_online(state.directory(broker_id))

    def _elect(self, state: PartitionState, outcome: _Outcome, *, unclean_allowed: bool) -> None:
        eligible = outcome.isr or (outcome.elr if self._has_elr else ())
        candidates = outcome.replicas
        if state.leader in candidates:
            candidates = (state.leader, *candidates)
        for broker in candidates:
            if broker in eligible and self._may_lead(broker, state):
                outcome.leader = broker
                if broker not in outcome.isr:
                    outcome.isr = (broker,)
                    outcome.elr = tuple(other for other in outcome.elr if other != broker)
                return
        winner = self._last_resort(state, outcome, unclean_allowed=unclean_allowed)
        if winner != NO_NODE:
            outcome.leader = winner
            outcome.is_unclean = True
            outcome.isr = (winner,)
            outcome.elr = outcome.last_known_elr = ()

    def _last_resort(
        self, state: PartitionState, outcome: _Outcome, *, unclean_allowed: bool
    ) -> int:
        if self._has_elr and not outcome.isr and not outcome.elr:
            last = state.last_known_elr
            if len(last) == 1 and last[0] in outcome.replicas and self._may_lead(last[0], state):
                return last[0]
        if unclean_allowed:
            for broker in outcome.replicas:
                if self._may_lead(broker, state):
                    return broker
        return NO_NODE

    def _difference(self, state: PartitionState, outcome: _Outcome) -> PartitionChangeRecord | None:
        isr_differs = outcome.isr != state.isr and set(outcome.isr) != set(state.isr)
        replicas_differ = outcome.replicas != state.replicas
        names_leader = (
            outcome.leader != state.leader
            or outcome.is_unclean
            or (replicas_differ and not set(state.replicas) <= set(outcome.replicas))
            or (self._shrink_bumps and isr_differs and not set(state.isr) <= set(outcome.isr))
        )
        change = PartitionChangeRecord(
            isr=outcome.isr if isr_differs else None,
            leader=outcome.leader if names_leader else LEADER_UNCHANGED,
            removing_replicas=outcome.removing if outcome.removing != state.removing else None,
            adding_replicas=outcome.adding if outcome.adding != state.adding else None,
            eligible_leader_replicas=outcome.elr if outcome.elr != state.elr else None,
            last_known_elr=(
                outcome.last_known_elr if outcome.last_known_elr != state.last_known_elr else None
            ),
        )
        if replicas_differ:
            change.replicas = outcome.replicas
            if state.directories:
                change.directories = tuple(
                    state.directory(replica) or DIRECTORY_UNASSIGNED for replica in outcome.replicas
                )
        if outcome.is_unclean and state.leader_recovery_state != RECOVERING:
            change.leader_recovery_state = RECOVERING
        if names_leader or isr_differs or change != PartitionChangeRecord():
            return change
        return None


def _complete_reassignment(outcome: _Outcome) -> None:
    """Drop what is being removed once everything that is being added is in sync (KIP-455)."""
    if not outcome.adding and not outcome.removing:
        return
    removing = set(outcome.removing)
    isr = tuple(broker for broker in outcome.isr if broker not in removing)
    replicas = tuple(broker for broker in outcome.replicas if broker not in removing)
    if not isr or not set(outcome.adding) <= set(isr):
        return
    if len(outcome.removing) > len(outcome.adding) and not set(replicas) <= set(isr):
        return
    outcome.isr, outcome.replicas = isr, replicas
    outcome.removing = outcome.adding = ()
