"""Which partitions a replay is about, and the records of others, which it leaves out.

Nothing depends on partitions but the changes derived from broker events. So a question about one
topic need not replay the partitions of others, nor decode their records.

Runs on Spark executors: its imports must not reach an event loop, gRPC or protobuf.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from immutables import Map

from quorum.batch import Record
from quorum.types import Uuid
from statemachine.codec import decode_record
from statemachine.records import (
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from statemachine.sections.topics import TopicsImage

_OF_PARTITIONS = frozenset({PartitionRecord.API_KEY, PartitionChangeRecord.API_KEY})
_ARRAY_16 = 0xDC
"""Begins a msgpack array of more than fifteen elements; lower bytes begin shorter ones."""
_ONE_BYTE_END = 0x80
"""Both codecs write a lower api key as one byte, the second of the value."""


class ChosenPartitions:
    """The partitions of topics with these names, under any id that a topic of the name has had."""

    def __init__(self, names: Collection[str], before: TopicsImage) -> None:
        """``before`` are the topics that the replay begins with."""
        self._names = frozenset(names)
        found = map(before.id_of, self._names)
        self._ids: set[Uuid] = {each for each in found if each is not None}

    def of(self, topics: TopicsImage) -> TopicsImage:
        """Return all topics, with these partitions and without indexes by broker."""
        ids = [topic_id for topic_id in self._ids if topic_id in topics.partitions]
        partitions = Map((topic_id, topics.partitions[topic_id]) for topic_id in ids)
        count = sum(map(len, partitions.values()))
        return TopicsImage(topics.ids, topics.names, partitions, partition_count=count)

    def leaves_out(self, values: Sequence[bytes | None]) -> bool:
        """Whether all of these records are of other partitions."""
        return all(_is_of_partition(value) and not self._is_named_in(value) for value in values)

    def decode(
        self, found: Sequence[Record], decode: Callable[[Record], MetadataRecord]
    ) -> tuple[list[Record], list[MetadataRecord]]:
        """Decode the records that are not left out; return both."""
        kept, contents = [], []
        for record in found:
            is_of_partition = _is_of_partition(record.value)
            if is_of_partition and not self._is_named_in(record.value):
                continue
            content = decode(record)
            if isinstance(content, TopicRecord) and content.name in self._names:
                self._ids.add(content.topic_id)
            # The id may have stood in it by chance, as a directory's.
            if not is_of_partition or getattr(content, "topic_id", None) in self._ids:
                kept.append(record)
                contents.append(content)
        return kept, contents

    def _is_named_in(self, value: bytes | None) -> bool:
        return any(topic_id in (value or b"") for topic_id in self._ids)


def _is_of_partition(value: bytes | None) -> bool:
    """Return whether a value is a partition's record, or its change. Both codecs begin alike."""
    if not value or len(value) < 2:
        return False
    if value[0] < _ARRAY_16 and value[1] < _ONE_BYTE_END:
        return value[1] in _OF_PARTITIONS
    # A long array; one day, fields more than fifteen.
    return isinstance(decode_record(value), PartitionRecord | PartitionChangeRecord)
