"""Refusals about producers, with what the state still knows of the producer (360.6).

A client that lost its producer decides from these values whether its id was ever assigned, which
process replaced it, and which of its commands was applied last.
"""

from __future__ import annotations

from typing import NamedTuple

from quorum.errors import CommandError, ErrorCode
from statemachine.sections.producers import ProducersView

NONE = -1


class KnownProducer(NamedTuple):
    """What the state knows of a producer id; -1 and the empty text stand for nothing."""

    producer_id: int
    """As the refused command named it."""
    producer_epoch: int = NONE
    """Newest epoch of that id; -1 if the producer is not known, or is another principal's."""
    was_assigned: bool = False
    """Whether the id was ever assigned. If it was and is not known, it has expired."""
    last_sequence: int = NONE
    """Highest sequence that was applied in the newest epoch."""
    oldest_open: int = 0
    """Answers to lower sequences are not kept any more."""
    transactional_id: str = ""
    """Name that holds the id, or the id that replaced it."""
    current_producer_id: int = NONE
    """Id that the producer has now: the same one, the one that replaced it, or its name's."""
    current_producer_epoch: int = NONE
    """Newest epoch of that id."""


class ProducerError(CommandError):
    """A command that was refused because of its producer."""

    def __init__(self, code: ErrorCode, message: str, known: KnownProducer) -> None:
        super().__init__(code, message)
        self.known = known


def known_producer(producers: ProducersView, producer_id: int) -> KnownProducer:
    """Return what is known of a producer id, for a caller that may know it."""
    was_assigned = 0 <= producer_id < producers.next_id
    state = producers.states.get(producer_id)
    current = producer_id
    if state is not None and state.successor_id != NONE:
        current = state.successor_id
    name = producers.names.get(current, "")
    named = producers.transactional_ids.get(name)
    now = producers.states.get(current)
    if now is not None:
        current_epoch = now.epoch
    elif named is not None:
        current_epoch = named.producer_epoch
    else:
        current, current_epoch = NONE, NONE
    if state is None:
        return KnownProducer(
            producer_id,
            was_assigned=was_assigned,
            transactional_id=name,
            current_producer_id=current,
            current_producer_epoch=current_epoch,
        )
    return KnownProducer(
        producer_id,
        state.epoch,
        was_assigned,
        state.last_sequence,
        state.oldest_open,
        name,
        current,
        current_epoch,
    )


def hidden_producer(producers: ProducersView, producer_id: int) -> KnownProducer:
    """Return what a principal may know of another one's producer: that the id is assigned."""
    return KnownProducer(producer_id, was_assigned=0 <= producer_id < producers.next_id)
