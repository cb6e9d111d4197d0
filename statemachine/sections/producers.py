"""Producer ids, producers and transactional ids: image, lookups, delta and replay.

One counter assigns every producer id: blocks for brokers (record 15) and single ids for our own
producers. The answers of a producer are kept from its oldest open sequence on, so that a retried
command gets its first answer, also from another leader (360.8).

Invariants:
    1. The next producer id never falls.
    2. A producer's ``applied`` is ascending by sequence, holds nothing below ``oldest_open``,
       and at most ``PRODUCER_WINDOW`` entries.
    3. ``names`` holds exactly the producer ids that the transactional ids hold now.
    4. ``requests`` has rows of known transactional ids only, each ascending by offset and of
       at most ``REQUESTS_MAX`` entries with different request ids.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from operator import attrgetter
from typing import Protocol

from immutables import Map

from quorum.errors import ReplayError
from statemachine.records import (
    AnsweredRequest,
    AnsweredRequestsRecord,
    InitProducerRecord,
    ProducerIdsRecord,
    ProducerStateRecord,
    TransactionalIdRecord,
)
from statemachine.sections.map_delta import EMPTY_MAP, MapDelta, ReadMap
from statemachine.sections.producer_state import (
    NO_SUCCESSOR,
    Applied,
    ProducerState,
    inserted,
)
from statemachine.sections.tracking import ChangeTracker

_PRODUCER_IDS = ProducerIdsRecord.API_KEY
_PRODUCER = ProducerStateRecord.API_KEY
_TRANSACTIONAL = TransactionalIdRecord.API_KEY
_REQUESTS = AnsweredRequestsRecord.API_KEY

EPOCH_MAX = 32_767
"""Reserved for fencing: never assigned to a client."""

PRODUCER_WINDOW = 32
"""W of ADR 10: commands that one producer may have in flight, and answers kept for it."""

REQUESTS_MAX = 1_000
"""Request ids that are kept of a named writer, with their answers; the newest count."""

_sequence_of = attrgetter("sequence")
_new_tuple = tuple.__new__
"""Makes a ``ProducerState`` in half the time: one per command."""


class ProducersView(Protocol):
    """What the producers image and a delta over it have alike."""

    @property
    def next_id(self) -> int:
        """Every lower producer id has been assigned."""

    @property
    def states(self) -> ReadMap[int, ProducerState]:
        """State by producer id; none if it was never assigned or has expired."""

    @property
    def transactional_ids(self) -> ReadMap[str, TransactionalIdRecord]:
        """State by transactional id."""

    @property
    def names(self) -> ReadMap[int, str]:
        """Transactional id by the producer id that it holds; from ``transactional_ids``."""

    @property
    def requests(self) -> ReadMap[str, tuple[AnsweredRequest, ...]]:
        """First answers by transactional id; they outlive its epochs and producer ids."""


def answered_request(
    producers: ProducersView, transactional_id: str, request_id: str
) -> AnsweredRequest | None:
    """Return the first answer to a request of that writer, if it is still kept."""
    kept = producers.requests.get(transactional_id, ())
    return next((each for each in reversed(kept) if each.request_id == request_id), None)


@dataclass(frozen=True, slots=True)
class ProducersImage:
    """Producers at one position; see ``ProducersView``."""

    next_id: int = 0
    states: Map[int, ProducerState] = EMPTY_MAP
    transactional_ids: Map[str, TransactionalIdRecord] = EMPTY_MAP
    names: Map[int, str] = EMPTY_MAP
    requests: Map[str, tuple[AnsweredRequest, ...]] = EMPTY_MAP


class ProducersDelta:
    """Producers under change.

    Nearly every command changes ``states``; the maps of transactional ids are opened when one
    changes.
    """

    __slots__ = ("_tracker", "names", "next_id", "requests", "states", "transactional_ids")

    def __init__(self, base: ProducersImage, tracker: ChangeTracker) -> None:
        self.next_id = base.next_id
        self.states: MapDelta[int, ProducerState] = MapDelta(base.states)
        self.transactional_ids: ReadMap[str, TransactionalIdRecord] = base.transactional_ids
        self.names: ReadMap[int, str] = base.names
        self.requests: ReadMap[str, tuple[AnsweredRequest, ...]] = base.requests
        self._tracker = tracker

    def settle(self) -> ProducersImage:
        """Return the image as of now; the delta stays usable."""
        ids, names, requests = self.transactional_ids, self.names, self.requests
        return ProducersImage(
            self.next_id,
            self.states.settle(),
            ids.settle() if isinstance(ids, MapDelta) else ids,
            names.settle() if isinstance(names, MapDelta) else names,
            requests.settle() if isinstance(requests, MapDelta) else requests,
        )

    def replay_ids(self, record: ProducerIdsRecord) -> None:
        """Assign all ids below the record's next producer id.

        Raises:
            ReplayError: The counter would not rise.
        """
        if record.next_producer_id <= self.next_id:
            raise ReplayError(
                f"next producer id {record.next_producer_id} is not above {self.next_id}"
            )
        existed = self.next_id != 0
        self._raise_next_id(record.next_producer_id)
        self._tracker.stored((_PRODUCER_IDS,), record.extra, existed=existed)

    def replay_init(self, record: InitProducerRecord, timestamp_ms: int, owner: bytes) -> None:
        """Assign a producer id, or a newer epoch of one; its sequences start at 0.

        ``owner`` is the digest of the principal that requested it, empty for none.

        Raises:
            ReplayError: The id was assigned as part of a block, the epoch is not newer, or the id
                that it replaces is unknown or has been replaced.
        """
        producer_id, epoch = record.producer_id, record.producer_epoch
        if record.previous_producer_id >= 0:
            self._replace(record.previous_producer_id, producer_id, timestamp_ms)
        old = self.states.get(producer_id)
        if old is None:
            if producer_id < self.next_id:
                raise ReplayError(f"producer id {producer_id} is below {self.next_id}")
            self._raise_next_id(producer_id + 1)
        else:
            if epoch <= old.epoch:
                raise ReplayError(f"producer {producer_id}: epoch {epoch} is not above {old.epoch}")
            self._tracker.modified((_PRODUCER, producer_id))
        self.states.set(producer_id, ProducerState(epoch, -1, 0, timestamp_ms, (), owner))

    def _replace(self, producer_id: int, successor_id: int, timestamp_ms: int) -> None:
        """Fence an id whose epochs are used up; its row names the id that replaces it."""
        old = self.states.get(producer_id)
        if old is None or old.successor_id >= 0:
            raise ReplayError(f"producer {producer_id} cannot be replaced: {old}")
        fenced = ProducerState(EPOCH_MAX, -1, 0, timestamp_ms, (), old.owner, successor_id)
        self.states.set(producer_id, fenced)
        self._tracker.modified((_PRODUCER, producer_id))

    def replay_expiry(self, producer_id: int) -> None:
        """Remove an expired producer.

        Raises:
            ReplayError: The producer is unknown.
        """
        if producer_id not in self.states:
            raise ReplayError(f"expiry of unknown producer {producer_id}")
        self.states.pop(producer_id)
        self._tracker.deleted((_PRODUCER, producer_id))

    def replay_state(self, record: ProducerStateRecord) -> None:
        """Set the full state of a producer from a checkpoint.

        Raises:
            ReplayError: The numbers of fingerprints and answers differ.
        """
        key = (_PRODUCER, record.producer_id)
        prints = record.fingerprints or (b"",) * len(record.applied)
        if len(prints) != len(record.applied):
            raise ReplayError(
                f"producer {record.producer_id}: {len(prints)} fingerprints of "
                f"{len(record.applied)} commands"
            )
        new = ProducerState(
            record.producer_epoch,
            record.last_sequence,
            record.oldest_open,
            record.last_timestamp_ms,
            tuple(
                Applied(entry.sequence, entry.offset, entry.epoch, entry.answer, fingerprint)
                for entry, fingerprint in zip(record.applied, prints)
            ),
            record.owner,
            record.successor_id,
        )
        old = self.states.get(record.producer_id)
        if old is not None and old != new:
            self._tracker.modified(key)
        self.states.set(record.producer_id, new)
        self._tracker.stored(key, record.extra, existed=old is not None)

    def replay_command(
        self, producer_id: int, epoch: int, applied: Applied, oldest_open: int, timestamp_ms: int
    ) -> None:
        """Record the answer of an applied command; drop answers below ``oldest_open``.

        Raises:
            ReplayError: The producer is unknown, its epoch is older than the stored one, or
                the sequence was applied already or lies below the window.
        """
        old = self.states.get(producer_id)
        if old is None:
            raise ReplayError(f"batch of unknown producer {producer_id}")
        sequence = applied.sequence
        kept: tuple[Applied, ...]
        if epoch == old.epoch:
            last, floor = old.last_sequence, old.oldest_open
            if oldest_open > floor:
                floor = oldest_open
                kept = old.applied[bisect_left(old.applied, floor, key=_sequence_of) :]
            else:
                kept = old.applied
        elif epoch > old.epoch:
            last, floor, kept = -1, max(oldest_open, 0), ()
        else:
            raise ReplayError(f"producer {producer_id}: epoch {epoch} is below {old.epoch}")
        if sequence > last:
            last = sequence
            kept = (*kept, applied)
        else:
            kept = inserted(producer_id, kept, applied)
        if sequence < floor:
            raise ReplayError(f"producer {producer_id}: sequence {sequence} is below {floor}")
        if len(kept) > PRODUCER_WINDOW:
            kept = kept[-PRODUCER_WINDOW:]
            floor = max(floor, kept[0].sequence)
        new = (epoch, last, floor, timestamp_ms, kept, old.owner, NO_SUCCESSOR)
        self.states.set(producer_id, _new_tuple(ProducerState, new))
        self._tracker.modified((_PRODUCER, producer_id))

    def replay_transactional(self, record: TransactionalIdRecord) -> None:
        """Set the full state of a transactional id.

        Raises:
            ReplayError: Another transactional id holds its producer id.
        """
        name = record.transactional_id
        ids, names = self._open_transactional()
        holder = names.get(record.producer_id, name)
        if holder != name:
            raise ReplayError(f"producer {record.producer_id} belongs to {holder!r}")
        old = ids.get(name)
        if old is not None and old != record:
            self._tracker.modified((_TRANSACTIONAL, name))
            _unname(names, old)
        ids.set(name, record)
        names.set(record.producer_id, name)

    def replay_transactional_removal(self, name: str) -> None:
        """Remove a transactional id.

        Raises:
            ReplayError: The transactional id is unknown.
        """
        ids, names = self._open_transactional()
        old = ids.get(name)
        if old is None:
            raise ReplayError(f"removal of unknown transactional id {name!r}")
        ids.pop(name)
        _unname(names, old)
        self._tracker.deleted((_TRANSACTIONAL, name))
        if name in self.requests:
            self._open_requests().pop(name)
            self._tracker.deleted((_REQUESTS, name))

    def replay_request(self, name: str, answered: AnsweredRequest) -> None:
        """Keep the first answer to a request of that writer, in place of its oldest one."""
        if answered_request(self, name, answered.request_id) is not None:
            return
        kept = self.requests.get(name, ())
        if kept:
            self._tracker.modified((_REQUESTS, name))
        self._open_requests().set(name, (*kept[-REQUESTS_MAX + 1 :], answered))

    def replay_requests(self, record: AnsweredRequestsRecord) -> None:
        """Set the requests of a writer from a checkpoint.

        Raises:
            ReplayError: The writer is unknown.
        """
        name = record.transactional_id
        if name not in self.transactional_ids:
            raise ReplayError(f"requests of unknown transactional id {name!r}")
        old = self.requests.get(name)
        if old is not None and old != record.requests:
            self._tracker.modified((_REQUESTS, name))
        self._open_requests().set(name, record.requests)
        self._tracker.stored((_REQUESTS, name), record.extra, existed=old is not None)

    def _open_requests(self) -> MapDelta[str, tuple[AnsweredRequest, ...]]:
        requests = self.requests
        if not isinstance(requests, MapDelta):
            requests = self.requests = MapDelta(requests)
        return requests

    def _open_transactional(
        self,
    ) -> tuple[MapDelta[str, TransactionalIdRecord], MapDelta[int, str]]:
        ids, names = self.transactional_ids, self.names
        if not isinstance(ids, MapDelta):
            ids = self.transactional_ids = MapDelta(ids)
        if not isinstance(names, MapDelta):
            names = self.names = MapDelta(names)
        return ids, names

    def _raise_next_id(self, next_id: int) -> None:
        if self.next_id:
            self._tracker.modified((_PRODUCER_IDS,))
        self.next_id = next_id


def _unname(names: MapDelta[int, str], old: TransactionalIdRecord) -> None:
    if names.get(old.producer_id) == old.transactional_id:
        names.pop(old.producer_id)
