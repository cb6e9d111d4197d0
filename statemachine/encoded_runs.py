"""Encode records for one batch: what partitions have in common is encoded once.

The reverse of ``partition_runs``: most partitions of a topic's creation are alike but for their
topic and number. What the encoder made of one is used for all that are equal to it, with their own
topic and number in front.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from statemachine.codec import encode_record
from statemachine.partition_runs import HEAD_BYTES, NUMBER_ENDS, TOPIC_BYTES, UUID_HEAD
from statemachine.records import MetadataRecord, PartitionRecord

_KNOWN_MAX = 1 << 12
"""Most encodings that are remembered. When they are that many, all are forgotten."""
_NUMBERS = tuple(bytes([number]) for number in range(0x80))
"""Encoded numbers of partitions."""

_Frame: TypeAlias = tuple[bytes, bytes]
"""The bytes in front of a partition's number, and those behind its topic id."""

_known: dict[tuple[Any, ...], _Frame] = {}


def encode_records(records: Sequence[MetadataRecord]) -> list[bytes]:
    """Return the records in the native codec, each as ``encode_record`` does.

    Raises:
        UnknownRecordError, RecordCodecError: As ``encode_record``.
    """
    if len(records) == 1:
        return [encode_record(records[0])]
    return [
        _encode_partition(record) if type(record) is PartitionRecord else encode_record(record)
        for record in records
    ]


def _encode_partition(record: PartitionRecord) -> bytes:
    number, topic_id = record.partition_id, record.topic_id
    content = (
        record.replicas,
        record.isr,
        record.removing_replicas,
        record.adding_replicas,
        record.leader,
        record.leader_recovery_state,
        record.leader_epoch,
        record.partition_epoch,
        record.directories,
        record.eligible_leader_replicas,
        record.last_known_elr,
    )
    if (
        record.extra is not None
        or type(number) is not int
        or not 0 <= number < len(_NUMBERS)
        or type(topic_id) is not bytes
        or len(UUID_HEAD) + len(topic_id) != TOPIC_BYTES
    ):
        return encode_record(record)
    try:
        frame = _known.get(content)
    except TypeError:  # A list, where the encoder asks for a tuple.
        return encode_record(record)
    if frame is None:
        value = encode_record(record)
        if len(_known) >= _KNOWN_MAX:
            _known.clear()
        _known[content] = value[:HEAD_BYTES], value[NUMBER_ENDS[number] + TOPIC_BYTES :]
        return value
    return b"".join((frame[0], _NUMBERS[number], UUID_HEAD, topic_id, frame[1]))
