"""What the service makes of committed bytes for watchers, worked out once for equal bytes.

Several watchers at several nodes are handed the same few batches. The service's conversion is a
pure function of them, and so is what a client reads in the message.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from quorate.services.change_message import ChangeMessage, message_of
from quorum.v1.metadata_pb2 import ChangeBatch, WatchResponse
from simulation.record_digest import digest_of

KEPT_MAX: Final = 64
"""How many conversions are kept: what all watchers of a cluster are being handed at a time."""


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
    """Those of one run, the last ``KEPT_MAX`` that were worked out.

    Watchers read about the same stretch of the log at about the same time; one that reads
    something older has it worked out again.
    """

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
            if len(self._known) >= KEPT_MAX:
                del self._known[next(iter(self._known))]
            self._known[data] = told
        return told


def _heard(batch: ChangeBatch) -> Heard:
    headers = [(each.name, each.value) for each in batch.headers]
    digest = digest_of(batch.records, headers)
    return Heard(batch.base_offset, batch.end_offset, batch.epoch, digest)
