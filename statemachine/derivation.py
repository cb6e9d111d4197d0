"""Derive partition changes from a broker event; frozen and versioned.

A broker with 30,000 partitions goes offline as one record; every replica, and the exporter,
derives the same partition changes from it (630.17). So these rules must never change: a change
is a new version beside the old one, and each event names its version. The rules read the image
alone: no configuration, no clock, no set or hash order.

They share no code with ``statemachine.election``, whose rules may change; a test compares both
as long as they are meant to agree. Kafka's records 7, 8 and 17 derive nothing: their log contains
the partition changes.

Rules of version 1: statemachine/DESIGN.md (fence, unfence, controlled shutdown),
KIP-455 for completing a reassignment, KIP-966 for ELR.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from quorum.errors import ReplayError, UnknownRecordError
from quorum.types import NO_NODE, Uuid
from statemachine.records import (
    ELR_VERSION,
    LEADER_UNCHANGED,
    RECOVERING,
    BrokerFencedEvent,
    BrokerShutdownEvent,
    BrokerUnfencedEvent,
    MetadataRecord,
    PartitionChangeRecord,
)
from statemachine.sections.cluster import DIRECTORY_UNASSIGNED, ClusterView
from statemachine.sections.configs import ConfigsView
from statemachine.sections.features import FeaturesView
from statemachine.sections.partition_index import PartitionSet
from statemachine.sections.partitions import PartitionState
from statemachine.sections.topics import TopicsView

DERIVATION_VERSION = 1
"""The version that new events name."""

DERIVATION_VERSIONS = frozenset({1})

BrokerEvent: TypeAlias = BrokerFencedEvent | BrokerUnfencedEvent | BrokerShutdownEvent

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


def derive(view: DerivationView, event: BrokerEvent) -> list[PartitionChangeRecord]:
    """Return the partition changes that follow from ``event``, by topic id and partition.

    ``view`` is the state before the event.

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
    rules = _RulesV1(view, event)
    topics = view.topics
    changes = []
    for topic_id, index in _affected(topics, event):
        state = topics.partition(topic_id, index)
        if state is not None:
            change = rules.change(topic_id, index, state)
            if change is not None:
                changes.append(change)
    return changes


def _affected(topics: TopicsView, event: BrokerEvent) -> PartitionSet:
    if isinstance(event, BrokerUnfencedEvent):
        return topics.without_leader()
    broker_id = event.broker_id
    found = topics.in_isr_of(broker_id) | topics.led_by(broker_id)
    if isinstance(event, BrokerFencedEvent) and event.unclean:
        found |= topics.eligible_of(broker_id)
    return found


_EPOCHS_AT = PartitionState._fields.index("leader_epoch")


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


class _RulesV1:
    """Derivation version 1 over one view and event. Frozen: a fix needs a new version."""

    def __init__(self, view: DerivationView, event: BrokerEvent) -> None:
        self._view = view
        joins = isinstance(event, BrokerUnfencedEvent)
        self._joining = event.broker_id if joins else NO_NODE
        self._leaving = NO_NODE if joins else event.broker_id
        self._is_unclean = isinstance(event, BrokerFencedEvent) and event.unclean
        self._has_elr = view.features.level(ELR_VERSION) > 0
        self._shrink_bumps = view.features.metadata_version < _ISR_SHRINK_LEVEL
        self._topic_settings: dict[Uuid, tuple[int, bool]] = {}
        self._known: dict[tuple[object, ...], PartitionChangeRecord | None] = {}

    def change(
        self, topic_id: Uuid, index: int, state: PartitionState
    ) -> PartitionChangeRecord | None:
        """Return the change of one partition, or None if there is none."""
        settings = self._settings(topic_id)
        # Partitions placed alike change alike: all but the two epochs decides, and thousands of
        # partitions of a broker share it.
        alike = (*state[:_EPOCHS_AT], *state[_EPOCHS_AT + 2 :], settings)
        if alike in self._known:
            found = self._known[alike]
        else:
            found = self._known[alike] = self._change(state, settings)
        if found is None:
            return None
        return PartitionChangeRecord(
            index,
            topic_id,
            found.isr,
            found.leader,
            found.replicas,
            found.removing_replicas,
            found.adding_replicas,
            found.leader_recovery_state,
            found.directories,
            found.eligible_leader_replicas,
            found.last_known_elr,
        )

    def _change(
        self, state: PartitionState, settings: tuple[int, bool]
    ) -> PartitionChangeRecord | None:
        """Return the change of every partition in this state; it names no partition."""
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
        if self._has_elr:
            if outcome.leader != NO_NODE:
                outcome.last_known_elr = ()
            elif state.leader != NO_NODE and not outcome.isr:
                outcome.last_known_elr = (state.leader,)
        return self._difference(state, outcome)

    def _settings(self, topic_id: Uuid) -> tuple[int, bool]:
        """Return min.insync.replicas and whether unclean election is allowed, from the image."""
        found = self._topic_settings.get(topic_id)
        if found is None:
            name = self._view.topics.name_of(topic_id) or ""
            text = self._view.configs.topic_value(name, _MIN_ISR_CONFIG)
            is_number = text is not None and text.isascii() and text.isdecimal()
            min_isr = max(1, int(text)) if text is not None and is_number else 1
            unclean = self._view.configs.topic_value(name, _UNCLEAN_CONFIG) == "true"
            found = self._topic_settings[topic_id] = (min_isr, unclean)
        return found

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
