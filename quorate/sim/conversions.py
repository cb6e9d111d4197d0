"""What the service makes of committed bytes for watchers, worked out once for equal bytes.

Several watchers at several nodes are handed the same few batches. The service's conversion is a
pure function of them, and so is what a client reads in the message.
"""

from __future__ import annotations

from typing import NamedTuple

from quorate.services.change_message import ChangeMessage, message_of
from quorate.sim.record_digest import digest_of
from quorum.v1.metadata_pb2 import ChangeBatch, WatchResponse


class Heard(NamedTuple):
    """One batch as a client finds it in a message."""

    base_offset: int
    end_offset: int
    epoch: int
    digest: str


class Told(NamedTuple):
    """A message, and what is in it for the client that reads it."""

    changes: ChangeMessage
    batches: tuple[Heard, ...]


class Conversions:
    """Those of one run."""

    def __init__(self) -> None:
        self._known: dict[bytes, Told] = {}

    def of(self, data: bytes) -> Told:
        """The message for whole batches, contiguous, as they stand in the log.

        Raises:
            CorruptBatchError: The bytes are not what their headers promise.
        """
        told = self._known.get(data)
        if told is None:
            changes = message_of(data)
            response = WatchResponse.FromString(changes.data)
            told = Told(changes, tuple(map(_heard, response.changes.batches)))
            self._known[data] = told
        return told


def _heard(batch: ChangeBatch) -> Heard:
    headers = [(each.name, each.value) for each in batch.headers]
    digest = digest_of(batch.records, headers)
    return Heard(batch.base_offset, batch.end_offset, batch.epoch, digest)
