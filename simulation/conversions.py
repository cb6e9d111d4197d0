"""Convert committed bytes into watch messages, once for equal bytes.

Several watchers at several nodes get the same few batches. The service's conversion is a pure
function of the bytes, and so is what a client reads in the message.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from quorate.services.change_message import ChangeMessage, message_of
from quorum.v1.metadata_pb2 import ChangeBatch, WatchResponse
from simulation.record_digest import digest_of

KEPT_MAX: Final = 64
"""How many conversions are kept: about as many as all watchers of a cluster need at a time."""


class ReceivedBatch(NamedTuple):
    """One batch as a client reads it from a message."""

    base_offset: int
    end_offset: int
    epoch: int
    digest: str


class Conversion(NamedTuple):
    """A message, with the batches that a client reads from it."""

    changes: ChangeMessage
    batches: tuple[ReceivedBatch, ...]


class Conversions:
    """The last ``KEPT_MAX`` conversions of a run.

    Watchers read about the same range of the log at about the same time. Older ranges are converted
    again.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, Conversion] = {}

    def of(self, data: bytes) -> Conversion:
        """Return the message for whole, contiguous batches as they are in the log.

        Raises:
            CorruptBatchError: The bytes do not match their headers.
        """
        conversion = self._known.get(data)
        if conversion is None:
            changes = message_of(data)
            response = WatchResponse.FromString(changes.data)
            conversion = Conversion(changes, tuple(map(_received, response.changes.batches)))
            if len(self._known) >= KEPT_MAX:
                del self._known[next(iter(self._known))]
            self._known[data] = conversion
        return conversion


def _received(batch: ChangeBatch) -> ReceivedBatch:
    headers = [(each.name, each.value) for each in batch.headers]
    digest = digest_of(batch.records, headers)
    return ReceivedBatch(batch.base_offset, batch.end_offset, batch.epoch, digest)
