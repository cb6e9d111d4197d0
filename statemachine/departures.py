"""Cut the departure of a broker into events that each change few partitions (ADR 74).

Leader only. What each event changes follows from the log alone (``statemachine.derivation``); how
many there are is the leader's choice and may change.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

from quorum.types import ZERO_UUID, Uuid
from statemachine.derivation import DerivationView
from statemachine.records import (
    BrokerFencedEvent,
    BrokerLeavingEvent,
    BrokerShutdownEvent,
    MetadataRecord,
)

DepartureEvent: TypeAlias = BrokerFencedEvent | BrokerShutdownEvent
DEPARTURE_EVENTS: frozenset[type[MetadataRecord]] = frozenset(
    {BrokerFencedEvent, BrokerShutdownEvent}
)


def leaving_events(
    view: DerivationView, event: DepartureEvent, partitions_max: int
) -> list[BrokerLeavingEvent]:
    """Return the events to write before ``event``; none if it concerns few partitions.

    Each concerns about ``partitions_max`` partitions that the broker is in sync in, more only where
    a topic has more of them. As many are left to ``event`` itself. A shutdown keeps one that the
    broker leads: the broker may stop only when the others know that its leaderships moved.
    """
    topics = view.topics
    # Partitions that it leads or may lead without being in sync are few: they need no bounds.
    in_sync = topics.in_isr_of(event.broker_id)
    count = len(in_sync)
    if count <= partitions_max:
        return []
    last: Uuid | None = None
    if isinstance(event, BrokerShutdownEvent):
        last = topics.led_by(event.broker_id).last_topic()
        if last is None:
            return []
    bounds = [ZERO_UUID, *in_sync.bounds(-(-count // -(-count // partitions_max)))]
    if last is not None:
        bounds = [each for each in bounds if each <= last]
    unclean = isinstance(event, BrokerFencedEvent) and event.unclean
    return [
        BrokerLeavingEvent(
            event.broker_id,
            event.broker_epoch,
            event.derivation_version,
            unclean,
            start,
            end,
        )
        for start, end in pairwise(bounds)
    ]
