"""Reading the metadata log from any position, and noticing when history has changed.

A position is an offset and the epoch of the record before it. With the epoch the consumer can
tell whether what it has read is still part of the log: after a change of leader it asks where
that epoch ends before it reads on, and every fetch is checked again by the server.

See: KIP-320, requirements 320.1-320.6 and 320.9.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import Enum

from quorate.client.batches import LogRecord, read_batches
from quorate.client.errors import (
    LogTruncationError,
    OffsetOutOfRangeError,
    RefusedError,
)
from quorate.client.queries import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Queries
from quorum.v1 import common_pb2
from quorum.v1.metadata_pb2 import FetchLogRequest

_LOG = logging.getLogger(__name__)


class ResetPolicy(Enum):
    """What to do without a position, or with one that the log no longer has."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"
    """Raise, and let the caller decide."""


@dataclass(frozen=True, slots=True)
class LogPosition:
    """The next offset to read and the epoch of the record before it, -1 when not known.

    This is what to store for resuming later; with the epoch, truncation is found even then.
    """

    offset: int
    epoch: int = -1


class LogConsumer:
    """One reader of the log. Not for use by several tasks at a time."""

    def __init__(
        self,
        queries: Queries,
        *,
        reset: ResetPolicy = ResetPolicy.EARLIEST,
        position: LogPosition | None = None,
        verify_checksums: bool = True,
        max_bytes: int = 0,
    ) -> None:
        self._queries = queries
        self._reset = reset
        self._position = position
        self._verify_checksums = verify_checksums
        self._max_bytes = max_bytes
        self._leader_epoch = -1
        self._must_validate = position is not None and position.epoch >= 0
        self.high_watermark = -1
        """Everything below is committed, as of the last answer."""

    @property
    def position(self) -> LogPosition | None:
        """Where the next read begins; None before the first reset."""
        return self._position

    def seek(self, offset: int, epoch: int = -1) -> None:
        """Read from ``offset`` on. With the epoch of the record before it, that is verified."""
        self._position = LogPosition(offset, epoch)
        self._must_validate = epoch >= 0

    async def poll(self, *, max_wait_ms: int = 500) -> list[LogRecord]:
        """The next records, possibly none within ``max_wait_ms``; moves the position.

        Raises:
            LogTruncationError: Policy NONE, and records that were read are no longer in the log.
            OffsetOutOfRangeError: Policy NONE, and there is no position, or it lies below the
                log start or beyond the end.
            ProtocolError: The bytes received are not what a log contains.
            ClientError: Nobody answered, or the request was refused.
        """
        if self._position is None:
            await self._reset_position(OffsetOutOfRangeError("there is no position to read from"))
        elif self._must_validate:
            await self._validate(self._position)
        position = self._position
        if position is None:
            return []
        try:
            response = await self._queries.fetch_log(
                FetchLogRequest(
                    offset=position.offset,
                    current_leader_epoch=self._leader_epoch,
                    last_fetched_epoch=position.epoch,
                    max_bytes=self._max_bytes,
                    max_wait_ms=max_wait_ms,
                )
            )
        except OffsetOutOfRangeError as error:
            await self._reset_position(error)
            return []
        except RefusedError as error:
            if error.code != common_pb2.ERROR_CODE_FENCED_LEADER_EPOCH:
                raise
            self._meet_epoch(error.leader.leader_epoch if error.leader is not None else -1)
            return []
        if response.HasField("diverging"):
            self._truncated(position, response.diverging.offset, response.diverging.epoch)
            return []
        self.high_watermark = response.high_watermark
        records = self._advance(position, response.records)
        self._meet_epoch(response.leader_epoch)
        return records

    def _advance(self, position: LogPosition, data: bytes) -> list[LogRecord]:
        """Take the records at and above the position; the batch may begin below it."""
        records: list[LogRecord] = []
        for batch in read_batches(data, verify_checksums=self._verify_checksums):
            records += [record for record in batch.records() if record.offset >= position.offset]
            self._position = LogPosition(batch.end_offset, batch.leader_epoch)
        return records

    def _meet_epoch(self, leader_epoch: int) -> None:
        """A newer leader is heard of: what was read under the old one is verified first."""
        if leader_epoch <= self._leader_epoch:
            return
        is_first = self._leader_epoch == -1
        self._leader_epoch = leader_epoch
        if not is_first and self._position is not None and self._position.epoch >= 0:
            self._must_validate = True

    async def _validate(self, position: LogPosition) -> None:
        """Ask where the epoch of our last record ends (320.3)."""
        try:
            answer = await self._queries.offset_for_leader_epoch(
                position.epoch, leader_epoch=self._leader_epoch
            )
        except RefusedError as error:
            if error.code != common_pb2.ERROR_CODE_FENCED_LEADER_EPOCH:
                raise
            self._meet_epoch(error.leader.leader_epoch if error.leader is not None else -1)
            return
        self._must_validate = False
        if answer.end_offset < 0:
            # Nothing that old is known any more; the fetch itself says whether that is a loss.
            return
        if answer.leader_epoch < position.epoch or answer.end_offset < position.offset:
            self._truncated(position, min(answer.end_offset, position.offset), answer.leader_epoch)

    def _truncated(self, position: LogPosition, offset: int, epoch: int) -> None:
        text = (
            f"history changed: read up to offset {position.offset} (epoch {position.epoch}), "
            f"the log differs from offset {offset} on (epoch {epoch} ends there)"
        )
        if self._reset is ResetPolicy.NONE:
            raise LogTruncationError(text, divergent_offset=offset, divergent_epoch=epoch)
        _LOG.warning("%s; moved there", text)
        self._position = LogPosition(offset, epoch)
        self._must_validate = False

    async def _reset_position(self, cause: OffsetOutOfRangeError) -> None:
        if self._reset is ResetPolicy.NONE:
            raise cause
        time = EARLIEST_TIMESTAMP if self._reset is ResetPolicy.EARLIEST else LATEST_TIMESTAMP
        found = await self._queries.list_offsets(time)
        if self._position is not None:
            _LOG.warning("%s; moved to %s %d", cause, self._reset.value, found.offset)
        # The earliest record's own epoch says nothing about the one before it.
        epoch = found.leader_epoch if self._reset is ResetPolicy.LATEST else -1
        self._position = LogPosition(found.offset, epoch)
        self._must_validate = False
