"""Partitions of an image, encoded as the records of a checkpoint.

Most records of a large image are partitions, and most of these are in the state of another one, but
for their topic and number: brokers hold partitions in far fewer ways than there are partitions. So
what follows the topic id is encoded once for each state, and no record is made of it, which is what
``encoded_runs`` begins with. The bytes are those of ``encode_native``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgpack

from quorum.errors import invariant
from quorum.types import Uuid
from statemachine.codec_native import encode_native
from statemachine.partition_runs import HEAD_BYTES, UUID_HEAD
from statemachine.records import MetadataRecord
from statemachine.sections.partitions import PartitionState, record_of

KNOWN_MAX: Final = 1 << 16
"""Most states that are remembered. When they are that many, all are forgotten."""
_NUMBERS: Final = tuple(msgpack.packb(number) + UUID_HEAD for number in range(0x100))


class PartitionEncoder:
    """Encodes full partition records in the native codec. For one dump.

    Invariants:
        1. The head and the tail under a state are those of a record that ``encode_native`` wrote.
    """

    __slots__ = ("_known", "_version_of")

    def __init__(self, version_of: Callable[[MetadataRecord], int]) -> None:
        """``version_of`` returns the version in which a record is written, from its state alone."""
        self._version_of = version_of
        self._known: dict[PartitionState, tuple[bytes, bytes]] = {}

    def encode(self, topic_id: Uuid, index: int, state: PartitionState) -> bytes:
        """Return the record of a partition that an image holds."""
        known = self._known.get(state)
        if known is None:
            known = self._encoded(topic_id, index, state)
        number = _NUMBERS[index] if index < len(_NUMBERS) else msgpack.packb(index) + UUID_HEAD
        value: bytes = known[0] + number + topic_id + known[1]
        return value

    def _encoded(self, topic_id: Uuid, index: int, state: PartitionState) -> tuple[bytes, bytes]:
        record = record_of(topic_id, index, state)
        value = encode_native(record, self._version_of(record))
        between = msgpack.packb(index) + UUID_HEAD + topic_id
        invariant(
            value.startswith(between, HEAD_BYTES),
            "a partition record has its number and topic id in front",
        )
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        parts = value[:HEAD_BYTES], value[HEAD_BYTES + len(between) :]
        self._known[state] = parts
        return parts
