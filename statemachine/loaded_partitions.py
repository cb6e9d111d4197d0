"""Partitions of a checkpoint, loaded run by run.

Most records of a large checkpoint are partitions, and most of these are alike but for their topic
and number: brokers hold partitions in far fewer ways than there are partitions. So what follows
the topic id of a native partition record is decoded once, and equal bytes give the same state
again. Every byte counts, so a record that the decoder would refuse is never taken for a known one.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorum.errors import RecordCodecError, UnknownRecordError
from statemachine.codec import DecodeRecord
from statemachine.delta import ImageDelta
from statemachine.records import PartitionRecord
from statemachine.sections.partitions import PartitionState, state_of

KNOWN_MAX = 1 << 16
"""Most states that are remembered. When they are that many, all are forgotten."""
HITS_MIN = KNOWN_MAX // 2
"""Fewer records than this that were alike until then, and nothing is remembered any more."""
_HEAD_BYTES = 3
"""The length of the array, the api key and the version, one byte each."""
_ARRAY_FIRST, _ARRAY_END = b"\x90", b"\xa0"
"""The first byte of msgpack's short arrays."""
_API_KEY = bytes([PartitionRecord.API_KEY])
_NUMBER_ENDS = {**dict.fromkeys(range(0x80), 4), 0xCC: 5, 0xCD: 6}
"""Where a partition's number ends, by its first byte: below 128, below 256, below 65,536."""
_UUID_HEAD = b"\xc4\x10"
"""msgpack's bytes of length 16."""
_TOPIC_BYTES = len(_UUID_HEAD) + 16
_BYTES_MIN = _HEAD_BYTES + max(_NUMBER_ENDS.values()) + _TOPIC_BYTES


class PartitionRuns:
    """Loads runs of partition records into one delta. For one checkpoint and one decoder.

    Invariants:
        1. The state under a head and a tail is what the decoder made of a record with these bytes,
           without unknown fields.
    """

    __slots__ = ("_count", "_decode", "_delta", "_is_worthwhile", "_known", "_taken")

    def __init__(self, delta: ImageDelta, decode: DecodeRecord) -> None:
        self._delta = delta
        self._decode = decode
        self._known: dict[bytes, dict[bytes, PartitionState]] = {}
        """By a record's head: the state by what follows the topic id."""
        self._count = 0
        """States remembered since all were last forgotten."""
        self._taken = 0
        """Records loaded since then."""
        self._is_worthwhile = True

    def take(self, values: Sequence[bytes], start: int) -> int:
        """Load partitions from ``values[start]`` on; returns the index of the first that is left.

        Left to be decoded and replayed alone are records that are damaged, contradict the image,
        have unknown fields or another encoding than ours, and those of topics that
        ``TopicsDelta.may_load`` refuses.
        """
        if not self._is_worthwhile:
            return start
        all_known = self._known
        topics = self._delta.open_topics()
        topic_id = b""
        states: dict[int, PartitionState] = {}
        at = start
        for at in range(start, len(values)):
            value = values[at]
            known = all_known.get(value[:_HEAD_BYTES])
            if known is None:
                known = self._known_of(value)
            if known is None or len(value) < _BYTES_MIN:
                break
            number = value[_HEAD_BYTES]
            end = _NUMBER_ENDS.get(number, 0)
            if end != _HEAD_BYTES + 1:
                number = int.from_bytes(value[_HEAD_BYTES + 1 : end], "big")
            tail = end + _TOPIC_BYTES
            topic = value[end + len(_UUID_HEAD) : tail]
            state = known.get(value[tail:]) or self._decoded(value, topic, known, tail)
            if state is None or not value.startswith(_UUID_HEAD, end):
                break
            if topic != topic_id:
                if states:
                    topics.load_partitions(topic_id, states)
                    states = {}
                if not topics.may_load(topic):
                    break
                topic_id = topic
            states[number] = state
        else:
            at = max(start, len(values))
        if states:
            topics.load_partitions(topic_id, states)
        self._taken += at - start
        return at

    def _known_of(self, value: bytes) -> dict[bytes, PartitionState] | None:
        """The states known for a record's head, which is new; None if it is of another type."""
        if not _ARRAY_FIRST <= value[:1] < _ARRAY_END or value[1:2] != _API_KEY:
            return None
        return self._known.setdefault(value[:_HEAD_BYTES], {})

    def _decoded(
        self, value: bytes, topic_id: bytes, known: dict[bytes, PartitionState], tail: int
    ) -> PartitionState | None:
        """Decode a record and remember its state; None if it has to be replayed alone.

        If its topic id is where our encoding has it, the number in front of it is its number.
        """
        try:
            record = self._decode(value)
        except (RecordCodecError, UnknownRecordError):
            return None  # It is decoded once more, by the one who says which record it was.
        if (
            type(record) is not PartitionRecord
            or record.extra is not None
            or record.topic_id != topic_id
        ):
            return None
        state = state_of(record)
        if self._count >= KNOWN_MAX:
            self._is_worthwhile = self._taken - self._count >= HITS_MIN
            for each in self._known.values():
                each.clear()
            self._count = self._taken = 0
        known[value[tail:]] = state
        self._count += 1
        return state
