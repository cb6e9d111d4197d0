"""Runs of partitions: the partition records of one topic that follow one another.

Most records of a large checkpoint and of a topic's creation are partitions, and most of these are
alike but for their topic and number: brokers hold partitions in far fewer ways than there are
partitions. So what follows the topic id of a native partition record is decoded once, and equal
bytes give the same state again. Every byte counts, so a record that the decoder would refuse is
never taken for a known one. Loading and replay both take a run at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from quorum.errors import RecordCodecError, UnknownRecordError
from quorum.types import Uuid
from statemachine.codec import DecodeRecord
from statemachine.records import MetadataRecord, PartitionRecord
from statemachine.sections.partitions import PartitionState, state_of

HEAD_BYTES = 3
"""The length of the array, the api key and the version, one byte each."""
_ARRAY_FIRST, _ARRAY_END = b"\x90", b"\xa0"
"""The first byte of msgpack's short arrays."""
PARTITION_KEY = bytes([PartitionRecord.API_KEY])
NUMBER_ENDS = {**dict.fromkeys(range(0x80), 4), 0xCC: 5, 0xCD: 6}
"""Where a partition's number ends, by its first byte: below 128, below 256, below 65,536."""
UUID_HEAD = b"\xc4\x10"
"""msgpack's bytes of length 16."""
TOPIC_BYTES = len(UUID_HEAD) + 16
_BYTES_MIN = HEAD_BYTES + max(NUMBER_ENDS.values()) + TOPIC_BYTES

_SHARED_MAX = 1 << 12
_shared: dict[tuple[Any, ...], PartitionState] = {}


class PartitionRun:
    """Partitions of one topic, each with its state, in the order of their records.

    Each number occurs once and is not negative; no record has unknown fields.
    """

    __slots__ = ("states", "topic_id")

    def __init__(self, topic_id: Uuid, states: dict[int, PartitionState]) -> None:
        self.topic_id = topic_id
        self.states = states


Step: TypeAlias = MetadataRecord | PartitionRun
"""What replay takes at once: a record, or several."""


def runs_of(records: Sequence[Step]) -> list[Step]:
    """Return the records with partitions of one topic that follow one another as runs."""
    steps: list[Step] = []
    topic_id: Uuid | None = None
    states: dict[int, PartitionState] = {}
    for record in records:
        if (
            type(record) is not PartitionRecord
            or record.extra is not None
            or record.partition_id < 0
        ):
            topic_id = None
            steps.append(record)
            continue
        if record.topic_id != topic_id or record.partition_id in states:
            topic_id, states = record.topic_id, {}
            steps.append(PartitionRun(topic_id, states))
        # The tuple that the state is, without what makes its parts shared: mostly it is known.
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
            record.eligible_leader_replicas or (),
            record.last_known_elr or (),
        )
        states[record.partition_id] = _shared.get(content) or _share(state_of(record))
    return steps


def _share(state: PartitionState) -> PartitionState:
    """Let partitions that are alike have one state."""
    if len(_shared) >= _SHARED_MAX:
        _shared.clear()
    return _shared.setdefault(state, state)


class RunReader:
    """Reads runs from encoded records. For one decoder.

    Invariants:
        1. The state under a head and a tail is what the decoder made of a record with these bytes,
           without unknown fields.
    """

    __slots__ = (
        "_count",
        "_decode",
        "_hits_min",
        "_is_worthwhile",
        "_known",
        "_known_max",
        "_read",
    )

    def __init__(self, decode: DecodeRecord, *, known_max: int, hits_min: int) -> None:
        """``known_max`` states are remembered; when they are that many, all are forgotten.

        If fewer than ``hits_min`` records were alike until then, nothing is remembered any more.
        """
        self._decode = decode
        self._known_max = known_max
        self._hits_min = hits_min
        self._known: dict[bytes, dict[bytes, PartitionState]] = {}
        """By a record's head: the state by what follows the topic id."""
        self._count = 0
        """States remembered since all were last forgotten."""
        self._read = 0
        """Records read since then."""
        self._is_worthwhile = True

    def read(self, values: Sequence[bytes], start: int) -> PartitionRun | None:
        """Return the run that begins at ``values[start]``; None if none does.

        No part of a run, but to be decoded and replayed alone, are records that are damaged, have
        unknown fields or another encoding than ours.
        """
        if not self._is_worthwhile:
            return None
        all_known = self._known
        topic = b""
        states: dict[int, PartitionState] = {}
        for at in range(start, len(values)):
            value = values[at]
            known = all_known.get(value[:HEAD_BYTES])
            if known is None:
                known = self._known_of(value)
            if known is None or len(value) < _BYTES_MIN:
                break
            number = value[HEAD_BYTES]
            end = NUMBER_ENDS.get(number, 0)
            if not end:
                break
            if end != HEAD_BYTES + 1:
                number = int.from_bytes(value[HEAD_BYTES + 1 : end], "big")
            tail = end + TOPIC_BYTES
            if not topic:
                topic = value[end:tail]
                if not topic.startswith(UUID_HEAD):
                    break
            elif not value.startswith(topic, end):
                break
            state = known.get(value[tail:]) or self._decoded(value, topic, known, tail)
            if state is None or number in states:
                break
            states[number] = state
        if not states:
            return None
        self._read += len(states)
        return PartitionRun(topic[len(UUID_HEAD) :], states)

    def _known_of(self, value: bytes) -> dict[bytes, PartitionState] | None:
        """The states known for a record's head, which is new; None if it is of another type."""
        if not _ARRAY_FIRST <= value[:1] < _ARRAY_END or value[1:2] != PARTITION_KEY:
            return None
        return self._known.setdefault(value[:HEAD_BYTES], {})

    def _decoded(
        self, value: bytes, topic: bytes, known: dict[bytes, PartitionState], tail: int
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
            or record.topic_id != topic[len(UUID_HEAD) :]
        ):
            return None
        state = state_of(record)
        if self._count >= self._known_max:
            self._is_worthwhile = self._read - self._count >= self._hits_min
            for each in self._known.values():
                each.clear()
            self._count = self._read = 0
        known[value[tail:]] = state
        self._count += 1
        return state
