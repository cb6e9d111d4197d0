"""Batches that do nothing but create and change partitions, read and replayed together.

Nearly all batches of a large log are such, and most of their records are alike but for their topic
and number: brokers hold partitions in far fewer ways than partitions change. So what follows the
topic id of a native record is decoded once, and equal bytes give the same record again. Every byte
counts, so a record that the decoder would refuse is never taken for a known one.

For readers of a log that need the state after every record. ``partition_runs`` serves those that
need the last one of each partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, cast

from quorum.errors import RecordCodecError, UnknownRecordError
from quorum.types import Uuid
from statemachine.codec import decode_record
from statemachine.partition_runs import HEAD_BYTES, NUMBER_ENDS, TOPIC_BYTES, UUID_HEAD
from statemachine.records import PartitionChangeRecord, PartitionRecord
from statemachine.sections.partitions import PartitionState
from statemachine.sections.topics_delta import TopicsDelta

PartitionUpdate: TypeAlias = PartitionRecord | PartitionChangeRecord

_KEYS = frozenset(
    bytes([0x90 + fields, record.API_KEY])
    for record in (PartitionRecord, PartitionChangeRecord)
    for fields in range(16)
)
"""How native records of these types begin: an array of up to fifteen elements, and the api key."""
_KEY_BYTES = 2
_ID = len(UUID_HEAD)


class PartitionUpdates:
    """The records of such a batch, in order: as many values, topic ids, numbers and records.

    A record is equal to the one in the log but for its topic and number, which stand beside it.
    """

    __slots__ = ("numbers", "records", "states", "topic_ids", "values")

    def __init__(self, values: Sequence[bytes | None]) -> None:
        self.values = values
        self.topic_ids: list[Uuid] = []
        self.numbers: list[int] = []
        self.records: list[PartitionUpdate] = []
        self.states: list[PartitionState] = []
        """The state of the partition after each record; appended by replay."""

    def chosen(self, places: Sequence[int]) -> PartitionUpdates:
        """Return the replayed records at these places, with their states."""
        found = PartitionUpdates([self.values[place] for place in places])
        found.topic_ids = [self.topic_ids[place] for place in places]
        found.numbers = [self.numbers[place] for place in places]
        found.records = [self.records[place] for place in places]
        found.states = [self.states[place] for place in places]
        return found

    def replay(self, topics: TopicsDelta) -> None:
        """Apply the records.

        Raises:
            ReplayError: A record contradicts the state; those before it are applied.
        """
        add = self.states.append
        create, change = topics.replay_partition, topics.replay_change
        for topic_id, number, record in zip(self.topic_ids, self.numbers, self.records):
            if type(record) is PartitionRecord:
                add(create(topic_id, number, record))
            else:
                add(change(topic_id, number, cast("PartitionChangeRecord", record)))


class UpdateReader:
    """Reads such batches from encoded records.

    Invariants:
        1. The record under a head and a tail is what the decoder made of a value with these bytes
           around some number and topic id.
    """

    __slots__ = ("_count", "_known", "_known_max")

    def __init__(self, *, known_max: int) -> None:
        """``known_max`` records are remembered; when they are that many, all are forgotten."""
        self._known_max = known_max
        self._known: dict[bytes, dict[bytes, PartitionUpdate]] = {}
        """By a value's head: the record by what follows the topic id."""
        self._count = 0

    def read(self, values: Sequence[bytes | None]) -> PartitionUpdates | None:
        """Return the updates; None if a value is anything else, or damaged: decode it to know."""
        found = PartitionUpdates(values)
        add_topic, add_number = found.topic_ids.append, found.numbers.append
        add_record = found.records.append
        all_known = self._known
        for value in values:
            if value is None or len(value) <= HEAD_BYTES:
                return None
            known = all_known.get(value[:HEAD_BYTES])
            end = 0 if known is None else NUMBER_ENDS.get(value[HEAD_BYTES], 0)
            tail = end + TOPIC_BYTES
            record = known.get(value[tail:]) if known is not None and end else None
            if record is None or not value.startswith(UUID_HEAD, end):
                record = self._decoded(value)
                if record is None:
                    return None
                add_topic(record.topic_id)
                add_number(record.partition_id)
            else:
                add_topic(value[end + _ID : tail])
                number = value[HEAD_BYTES]
                if end != HEAD_BYTES + 1:
                    number = int.from_bytes(value[HEAD_BYTES + 1 : end], "big")
                add_number(number)
            add_record(record)
        return found

    def _decoded(self, value: bytes) -> PartitionUpdate | None:
        """Decode a value, and remember its record if the value has our encoding."""
        try:
            record = decode_record(value)
        except (RecordCodecError, UnknownRecordError):
            return None  # It is decoded once more, by the one who says which record it was.
        if type(record) is not PartitionRecord and type(record) is not PartitionChangeRecord:
            return None
        end = NUMBER_ENDS.get(value[HEAD_BYTES], 0) if value[:_KEY_BYTES] in _KEYS else 0
        if end and value.startswith(UUID_HEAD + record.topic_id, end):
            # The topic id is where our encoding has it, so what is in front of it is the number.
            if self._count >= self._known_max:
                self._known.clear()
                self._count = 0
            known = self._known.setdefault(value[:HEAD_BYTES], {})
            known[value[end + TOPIC_BYTES :]] = record
            self._count += 1
        return record
