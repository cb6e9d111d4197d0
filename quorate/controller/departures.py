"""Brokers that leave their partitions step by step, and what waits until they have (ADR 74).

An event that moves thousands of partitions would occupy the event loop of every node. So a few
partitions move per batch before it, and the next batch follows when the one before is committed.
Requests and Fetches are answered meanwhile. Nothing here must survive the leadership term: each
step is complete in itself, and the event that was to follow is evaluated anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol

from quorate.controller.requests import NO_PRODUCER, PendingCommand, RequestContext
from statemachine.delta import ImageDelta
from statemachine.departures import DEPARTURE_EVENTS, DepartureEvent, leaving_events
from statemachine.records import BrokerLeavingEvent, MetadataRecord
from statemachine.sessions import BrokerGeneration, BrokerSessions


class StepWriter(Protocol):
    """The group that takes a step (``quorate.controller.group.GroupFormer``)."""

    delta: ImageDelta

    def add(self, records: list[MetadataRecord], context: RequestContext | None = None) -> bool:
        """Add a batch of the controller's own, on behalf of a request if there is one."""


@dataclass(slots=True)
class Departure:
    """The steps of one broker that are still to be written, and what waits for them."""

    generation: BrokerGeneration
    steps: deque[BrokerLeavingEvent]
    cause: RequestContext | None
    """The request because of which the broker leaves; None for an expired session."""
    commands: list[PendingCommand] = field(default_factory=list)


class Departures:
    """Departures of one leadership term, one after the other. Owned by the controller's thread."""

    def __init__(self, partitions_max: int) -> None:
        self._partitions_max = partitions_max
        self._departures: dict[BrokerGeneration, Departure] = {}
        self._awaited_end = 0
        """The next step is due when everything below this offset is committed."""
        self._waiting_producers: dict[int, BrokerGeneration] = {}
        self.released: deque[PendingCommand] = deque()
        """Commands that wait no longer, oldest first. They come before the queue, over as many
        groups as their number and size need."""

    @property
    def is_underway(self) -> bool:
        """Whether any broker is leaving."""
        return bool(self._departures)

    @property
    def waiting_count(self) -> int:
        """Commands that wait, and those released that no group has taken in."""
        return len(self.released) + sum(len(each.commands) for each in self._departures.values())

    def begin(
        self,
        delta: ImageDelta,
        records: list[MetadataRecord],
        cause: RequestContext | None = None,
    ) -> BrokerGeneration | None:
        """Return the broker that must leave before ``records`` may be written; None if none must.

        Its departure is underway then. ``records`` begin with a broker's event if they have one.
        """
        event = records[0]
        if type(event) not in DEPARTURE_EVENTS:
            return None
        assert isinstance(event, DepartureEvent)  # noqa: S101 - for the type checker
        generation = BrokerGeneration(event.broker_id, event.broker_epoch)
        if generation not in self._departures:
            steps = leaving_events(delta, event, self._partitions_max)
            if not steps:
                return None
            self._departures[generation] = Departure(generation, deque(steps), cause)
        return generation

    def wait(self, generation: BrokerGeneration, waiting: PendingCommand) -> None:
        """Keep a command until that broker has left its partitions."""
        self._departures[generation].commands.append(waiting)
        if waiting.context.producer_id != NO_PRODUCER:
            self._waiting_producers[waiting.context.producer_id] = generation

    def waits_behind(self, context: RequestContext) -> BrokerGeneration | None:
        """Return the departure that an earlier command of the same producer waits for."""
        return self._waiting_producers.get(context.producer_id)

    def is_due(self, committed_end: int) -> bool:
        """Whether the next step may be written, with everything below this offset committed."""
        return bool(self._departures) and committed_end >= self._awaited_end

    def advance(self, group: StepWriter, sessions: BrokerSessions, now_ms: int) -> Departure | None:
        """Add the next step to a group. Return a departure when it has none left; it is over.

        What waited for it is released then.
        A broker whose session had expired stops leaving when it is in contact again.
        """
        generation, departure = next(iter(self._departures.items()))
        broker = group.delta.cluster.broker(generation.broker_id)
        is_gone = broker is None or broker.epoch != generation.broker_epoch or broker.fenced
        is_wanted = departure.cause is not None or departure.commands
        is_back = sessions.is_valid(generation.broker_id, generation.broker_epoch, now_ms)
        if is_gone or (is_back and not is_wanted):
            departure.steps.clear()
        if departure.steps and group.add([departure.steps.popleft()], departure.cause):
            self._awaited_end = group.delta.end_offset
            return None
        del self._departures[generation]
        for waiting in departure.commands:
            self._waiting_producers.pop(waiting.context.producer_id, None)
        self.released.extend(departure.commands)
        return departure

    def take_waiting(self) -> Iterator[PendingCommand]:
        """End of the leadership term: forget all departures, return the commands that waited."""
        departures = list(self._departures.values())
        self._departures.clear()
        self._waiting_producers.clear()
        self._awaited_end = 0
        released, self.released = self.released, deque()
        waiting = (each for departure in departures for each in departure.commands)
        return chain(released, waiting)
