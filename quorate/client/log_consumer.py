"""Reads the metadata log from any position, and detects truncation of what was read.

A position is an offset and the epoch of the record before it. With the epoch the consumer can
tell whether what it has read is still part of the log: after a change of leader it asks where
that epoch ends before it reads on, and every fetch is checked again by the server. With the epochs
before that one it finds the very offset from which the log differs.

See: KIP-320, requirements 320.1-320.6 and 320.9.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from enum import Enum

from quorate.client.batches import LogRecord, read_batches
from quorate.client.errors import (
    LogTruncationError,
    OffsetOutOfRangeError,
    RefusedError,
)
from quorate.client.lineage import Lineage
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
    epochs: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    """Pairs of epoch and start offset of what was read, ascending. Optional: without them the
    offset that a truncation is reported with is only an upper bound where whole epochs are gone.
    """


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
        self._lineage = _lineage_of(position)
        self._verify_checksums = verify_checksums
        self._max_bytes = max_bytes
        self._leader_epoch = -1
        # Until a leader is known, the fetch itself is the check.
        self._must_validate = False
        self.high_watermark = -1
        """Everything below is committed, as of the last answer."""

    @property
    def position(self) -> LogPosition | None:
        """Where the next read begins; None before the first reset."""
        if self._position is None:
            return None
        return LogPosition(self._position.offset, self._position.epoch, self._lineage.epochs)

    def seek(self, offset: int, epoch: int = -1) -> None:
        """Read from ``offset`` on. With the epoch of the record before it, that is verified."""
        self._move_to(LogPosition(offset, epoch))
        self._must_validate = epoch >= 0 and self._leader_epoch >= 0

    def _move_to(self, position: LogPosition) -> None:
        self._position = position
        self._lineage = _lineage_of(position)

    async def poll(self, *, max_wait_ms: int = 500) -> list[LogRecord]:
        """The next records, possibly none within ``max_wait_ms``; moves the position.

        Raises:
            LogTruncationError: Policy NONE, and records that were read are no longer in the log.
            OffsetOutOfRangeError: Policy NONE, and there is no position, or it lies below the
                log start or beyond the end.
            ProtocolError: The bytes received are not what a log contains.
            ClientError: No node answered, or the request was refused.
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
            if response.HasField("diverging"):
                self._meet_leader(response.leader_id, response.leader_epoch)
                hint = response.diverging
                await self._resolve(position, hint.epoch, hint.offset)
                return []
        except OffsetOutOfRangeError as error:
            if isinstance(error, LogTruncationError):
                raise
            await self._reset_position(error)
            return []
        except RefusedError as error:
            self._meet_newer_leader(error)
            return []
        self.high_watermark = response.high_watermark
        records = self._advance(position, response.records)
        self._meet_leader(response.leader_id, response.leader_epoch)
        return records

    def _advance(self, position: LogPosition, data: bytes) -> list[LogRecord]:
        """Take the records at and above the position; the batch may begin below it."""
        records: list[LogRecord] = []
        for batch in read_batches(data, verify_checksums=self._verify_checksums):
            records += [record for record in batch.records() if record.offset >= position.offset]
            self._lineage.add(batch.leader_epoch, max(batch.base_offset, position.offset))
            self._position = LogPosition(batch.end_offset, batch.leader_epoch)
        return records

    def _meet_leader(self, leader_id: int, leader_epoch: int) -> None:
        """Handle a newer leader: the records read under the old one are verified first.

        An epoch without a leader is ignored: the quorum may stay below it, and its nodes would
        refuse a reader with that epoch.
        """
        if leader_id < 0 or leader_epoch <= self._leader_epoch:
            return
        is_first = self._leader_epoch == -1
        self._leader_epoch = leader_epoch
        if not is_first and self._position is not None and self._position.epoch >= 0:
            self._must_validate = True

    def _meet_newer_leader(self, error: RefusedError) -> None:
        """Record the leader that fenced us; any other refusal is raised again."""
        if error.code != common_pb2.ERROR_CODE_FENCED_LEADER_EPOCH:
            raise error
        if error.leader is not None:
            self._meet_leader(error.leader.leader_id, error.leader.leader_epoch)

    async def _validate(self, position: LogPosition) -> None:
        """Ask where the epoch of our last record ends (320.3)."""
        try:
            epoch, end_offset = await self._epoch_end(position.epoch)
            # A log that begins above the position has nothing to compare; the fetch says so.
            is_comparable = epoch >= 0 or end_offset <= position.offset
            if is_comparable and (epoch < position.epoch or end_offset < position.offset):
                await self._resolve(position, epoch, end_offset)
        except OffsetOutOfRangeError:
            raise
        except RefusedError as error:
            self._meet_newer_leader(error)
            return
        self._must_validate = False

    async def _epoch_end(self, epoch: int) -> tuple[int, int]:
        answer = await self._queries.offset_for_leader_epoch(epoch, leader_epoch=self._leader_epoch)
        if answer.end_offset >= 0:
            return answer.leader_epoch, answer.end_offset
        start = await self._queries.list_offsets(
            EARLIEST_TIMESTAMP, leader_epoch=self._leader_epoch
        )
        return -1, start.offset

    async def _resolve(self, position: LogPosition, epoch: int, end_offset: int) -> None:
        """Find where our history differs from the log, and go there or raise (320.4)."""
        found = await self._lineage.find_divergence(
            position.offset, epoch, end_offset, self._epoch_end
        )
        text = (
            f"history changed: read up to offset {position.offset} (epoch {position.epoch}), "
            f"the log differs {found}"
        )
        if self._reset is ResetPolicy.NONE:
            raise LogTruncationError(
                text,
                divergent_offset=found.offset,
                divergent_epoch=found.epoch,
                is_exact=found.is_exact,
            )
        _LOG.warning("%s; moved there", text)
        self._position = LogPosition(found.offset, found.epoch)
        self._lineage.truncate_to(found.offset)
        self._must_validate = False

    async def _reset_position(self, cause: OffsetOutOfRangeError) -> None:
        """Go to one end of the log, as the leader of the newest known epoch reports it."""
        policy = self._reset
        if policy is ResetPolicy.NONE:
            raise cause
        time = EARLIEST_TIMESTAMP if policy is ResetPolicy.EARLIEST else LATEST_TIMESTAMP
        read_under = -1 if self._position is None else self._position.epoch
        try:
            found = await self._queries.list_offsets(
                time, leader_epoch=max(self._leader_epoch, read_under)
            )
        except RefusedError as error:
            self._meet_newer_leader(error)
            return
        if self._position is not None:
            _LOG.warning("%s; moved to %s %d", cause, policy.value, found.offset)
        # The earliest record's own epoch says nothing about the one before it.
        epoch = found.leader_epoch if policy is ResetPolicy.LATEST else -1
        self._move_to(LogPosition(found.offset, epoch))
        self._must_validate = False


def _lineage_of(position: LogPosition | None) -> Lineage:
    """Return the epochs below a position, as the position stores them."""
    if position is None:
        return Lineage()
    lineage = Lineage(position.epochs)
    if position.epoch >= 0 and position.offset > 0:
        lineage.add(position.epoch, position.offset - 1)
    return lineage
