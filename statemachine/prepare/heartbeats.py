"""Evaluate heartbeats: a broker's states from fenced to serving to controlled shutdown.

The controller records the contact before it evaluates a heartbeat, so that a queue never fences a
live broker. See statemachine/DESIGN.md, KIP-631.
"""

from __future__ import annotations

from enum import Enum

from quorum.types import NodeId, Uuid
from statemachine.commands import BrokerHeartbeat
from statemachine.election import WantedChange, build_change
from statemachine.prepare.brokers import check_generation
from statemachine.prepare.context import EvaluationContext, Prepared
from statemachine.prepare.directories import cordon_records
from statemachine.prepare.lifecycle import (
    departure_changes,
    fence_records,
    shutdown_records,
    unfence_records,
)
from statemachine.prepare.replicas import CORDONS_LEVEL, election_rules
from statemachine.prepare.view import View, registered_brokers, topic_name
from statemachine.records import BrokerRegistrationChangeRecord, MetadataRecord
from statemachine.sections.cluster import BrokerRegistration
from statemachine.sessions import UNKNOWN_OFFSET, BrokerSession, SessionUpdate


class BrokerState(Enum):
    """State of a broker as the controller decides it."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"


def current_state(broker: BrokerRegistration) -> BrokerState:
    """Return the state in the registration."""
    if broker.fenced:
        return BrokerState.FENCED
    if broker.in_controlled_shutdown:
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.UNFENCED


def next_state(
    current: BrokerState,
    command: BrokerHeartbeat,
    *,
    is_caught_up: bool,
    leads_any: bool,
    moves_are_known: bool,
) -> BrokerState:
    """Return the next state: the transition table of heartbeats.

    The broker ``is_caught_up`` when it has applied its own registration; ``moves_are_known``
    when every active broker has applied the records that moved its leaderships away.
    """
    if current is BrokerState.FENCED:
        if command.want_shutdown:
            return BrokerState.SHUTDOWN_NOW
        is_ready = not command.want_fence and is_caught_up
        return BrokerState.UNFENCED if is_ready else BrokerState.FENCED
    if current is BrokerState.UNFENCED:
        if command.want_fence:
            return BrokerState.SHUTDOWN_NOW if command.want_shutdown else BrokerState.FENCED
        if command.want_shutdown:
            return BrokerState.CONTROLLED_SHUTDOWN if leads_any else BrokerState.SHUTDOWN_NOW
        return BrokerState.UNFENCED
    # A controlled shutdown cannot be cancelled by the broker.
    is_done = not leads_any and moves_are_known
    return BrokerState.SHUTDOWN_NOW if is_done else BrokerState.CONTROLLED_SHUTDOWN


def prepare_broker_heartbeat(
    view: View, command: BrokerHeartbeat, context: EvaluationContext
) -> Prepared:
    """Return the records of a state transition, if any, and the broker's instructions.

    Raises:
        CommandError: STALE_BROKER_EPOCH for any other registration (380.2, 380.4).
    """
    broker = check_generation(view, command.broker_id, command.broker_epoch)
    session = context.sessions.get(broker.id, broker.epoch)
    current = current_state(broker)
    # A batch is applied whole, so its first offset suffices for the registration in it.
    registered_at = context.sessions.registration_offset(broker.id, broker.epoch)
    is_caught_up = command.metadata_offset >= registered_at
    state = next_state(
        current,
        command,
        is_caught_up=is_caught_up,
        leads_any=view.topics.leads_any(broker.id),
        moves_are_known=_moves_are_known(view, broker, session, context),
    )
    records = _transition_records(view, broker, current, state, context)
    if state is BrokerState.UNFENCED and current is BrokerState.UNFENCED:
        records.extend(_offline_directory_records(view, broker, command.offline_log_dirs))
    if command.cordoned_log_dirs is not None and view.features.metadata_version >= CORDONS_LEVEL:
        own = set(command.cordoned_log_dirs).intersection(broker.log_dirs)
        records.extend(cordon_records(broker, own))
    result: dict[str, object] = {
        "is_caught_up": is_caught_up,
        "is_fenced": state in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW),
        "should_shut_down": state is BrokerState.SHUTDOWN_NOW,
    }
    update = SessionUpdate(
        broker.id,
        broker.epoch,
        command.metadata_offset,
        _shutdown_offset(state, session, context, record_count=len(records)),
        is_over=state is BrokerState.SHUTDOWN_NOW,
    )
    return Prepared(records, result, update)


def _transition_records(
    view: View,
    broker: BrokerRegistration,
    current: BrokerState,
    state: BrokerState,
    context: EvaluationContext,
) -> list[MetadataRecord]:
    native = context.uses_native_codec
    match state:
        case BrokerState.UNFENCED if current is BrokerState.FENCED:
            return unfence_records(view, broker, uses_native_codec=native)
        case BrokerState.FENCED | BrokerState.SHUTDOWN_NOW if not broker.fenced:
            return fence_records(view, broker, uses_native_codec=native)
        case BrokerState.CONTROLLED_SHUTDOWN if current is BrokerState.UNFENCED:
            return shutdown_records(view, broker, uses_native_codec=native)
        case BrokerState.CONTROLLED_SHUTDOWN if view.topics.leads_any(broker.id):
            # No broker could take over when the shutdown began; one may be able to now.
            return departure_changes(view, broker.id)
        case _:
            return []


def _shutdown_offset(
    state: BrokerState,
    session: BrokerSession | None,
    context: EvaluationContext,
    *,
    record_count: int,
) -> int | None:
    if state is not BrokerState.CONTROLLED_SHUTDOWN:
        return None
    if record_count == 0 and session is not None and session.shutdown_offset is not None:
        return session.shutdown_offset
    # This leader does not know when another leader moved the leaderships, so it takes the end
    # of everything written so far.
    return context.next_offset + record_count - 1


def _moves_are_known(
    view: View,
    broker: BrokerRegistration,
    session: BrokerSession | None,
    context: EvaluationContext,
) -> bool:
    if not broker.in_controlled_shutdown or session is None or session.shutdown_offset is None:
        return False
    return session.shutdown_offset <= min(
        (
            _known_offset(context, other.id, other.epoch)
            for other in registered_brokers(view)
            if other.is_active
        ),
        default=session.shutdown_offset,
    )


def _known_offset(context: EvaluationContext, broker_id: NodeId, broker_epoch: int) -> int:
    session = context.sessions.get(broker_id, broker_epoch)
    return UNKNOWN_OFFSET if session is None else session.metadata_offset


def _offline_directory_records(
    view: View, broker: BrokerRegistration, offline: tuple[Uuid, ...]
) -> list[MetadataRecord]:
    """Return the changes for replicas in directories that went offline (KIP-858)."""
    lost = set(offline).intersection(broker.log_dirs)
    if not lost:
        return []
    records: list[MetadataRecord] = []
    for topic_id, partition_id in view.topics.in_isr_of(broker.id):
        state = view.topics.partition(topic_id, partition_id)
        name = topic_name(view, topic_id)
        if state is None or name is None or state.directory(broker.id) not in lost:
            continue
        change = build_change(
            state,
            WantedChange(isr=tuple(member for member in state.isr if member != broker.id)),
            election_rules(view, name, never=broker.id),
            topic_id=topic_id,
            partition_id=partition_id,
        )
        if change is not None:
            records.append(change)
    remaining = tuple(directory for directory in broker.log_dirs if directory not in lost)
    if remaining:
        # An empty list would mean "unchanged"; a broker without a directory stops by itself.
        records.append(BrokerRegistrationChangeRecord(broker.id, broker.epoch, log_dirs=remaining))
    return records
