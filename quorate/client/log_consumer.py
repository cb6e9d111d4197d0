"""Reads the metadata log from any position, and detects truncation of what was read.

A position (``LogPosition``) includes the epoch of the record before it. With the epoch the consumer
can tell whether what it has read is still part of the log: after a change of leader it asks where
that epoch ends before it reads on, and every fetch is checked again by the server. With the epochs
before that one it finds the very offset from which the log differs, and the log digest confirms it.
Where the log was trimmed beyond the position, the consumer hands out the state instead of a gap.

See: KIP-320, requirements 320.1-320.6 and 320.9.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from enum import Enum

from quorate.client.batches import LogRecord
from quorate.client.errors import (
    LogTruncationError,
    OffsetOutOfRangeError,
    RefusedError,
)
from quorate.client.fetched_batches import fetched_batches
from quorate.client.lineage import confirm, find_divergence
from quorate.client.log_calls import LogCalls, LogState, state_record
from quorate.client.newest_incarnation import NewestIncarnation
from quorate.client.queries import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from quorate.client.results.metadata import (
    FetchLogResponse,
    OffsetForLeaderEpochResponse,
    StateChunk,
)
from quorum.digest import EMPTY_LOG_DIGEST
from quorum.log_position import (
    FIRST_INCARNATION_ID,
    Divergence,
    Lineage,
    LogPosition,
)
from quorum.v1 import common_pb2
from quorum.v1.metadata_pb2 import RECORD_FORM_ENCODED, RECORD_FORM_TYPED, FetchLogRequest

_LOG = logging.getLogger(__name__)


class ResetPolicy(Enum):
    """What to do without a position, or with one that the log no longer has."""

    EARLIEST = "earliest"
    """Go on from the divergence. Below the log start, read the state and go on behind it."""
    LATEST = "latest"
    """Go on from the divergence. Below the log start, or without a position, go to the end."""
    NONE = "none"
    """Raise at every poll, until the caller seeks."""


class LogConsumer:
    """One reader of the log. Not for use by several tasks at a time."""

    def __init__(
        self,
        calls: LogCalls,
        *,
        reset: ResetPolicy = ResetPolicy.EARLIEST,
        position: LogPosition | None = None,
        verify_checksums: bool = True,
        max_bytes: int = 0,
        typed: bool = False,
    ) -> None:
        self._calls = calls
        self._typed = typed
        self._reset = reset
        self._verify_checksums = verify_checksums
        self._max_bytes = max_bytes
        self._leader_epoch = -1
        # Until a leader is known, the fetch itself is the check.
        self._must_validate = False
        self._chunks: AsyncGenerator[StateChunk] | None = None
        self._incarnation = b""
        self._newer_incarnation = b""
        """An incarnation that an answer named, until the position is verified in it."""
        self._is_leaders = False
        """Whether a leader named it. Any other node may be a former voter."""
        self._newest = NewestIncarnation()
        self.high_watermark = -1
        """Everything below is committed, as of the last answer."""
        self.state: LogState | None = None
        """What the records of the last poll are part of, if they are no records of the log."""
        self._position: LogPosition | None = None
        self._lineage = Lineage()
        if position is not None:
            self._move_to(position)

    @property
    def position(self) -> LogPosition | None:
        """Where the next read begins, to be stored; None before the first reset."""
        at = self._position
        if at is None:
            return None
        epochs, newest = self._lineage.epochs, self._newest.number
        return LogPosition(at.offset, at.epoch, epochs, at.log_digest, self._incarnation, newest)

    def seek(self, offset: int, epoch: int = -1) -> None:
        """Read from ``offset`` on. With the epoch of the record before it, that is verified.

        No record is before offset 0, so an epoch with it is ignored.
        """
        known = epoch if offset > 0 else -1
        if self._is_leaders:
            # The caller knows of the truncation, and seeks in what the leader has.
            self._enter_incarnation()
        self.seek_to(LogPosition(offset, known, log_incarnation=self._incarnation))

    def seek_to(self, position: LogPosition) -> None:
        """Read from a stored position on, after verifying it as far as it can be."""
        self._chunks = None
        # Another incarnation that was met is kept: which one is the newer, the leader says.
        self._move_to(position)
        self._must_validate = position.epoch >= 0 and self._leader_epoch >= 0

    def _move_to(self, position: LogPosition) -> None:
        self._lineage = Lineage(position.epochs)
        if position.epoch >= 0 and position.offset > 0:
            self._lineage.add(position.epoch, position.offset - 1)
        digest = EMPTY_LOG_DIGEST if position.offset == 0 else position.log_digest
        self._incarnation = position.log_incarnation or self._incarnation
        self._newest.know(position.newest_incarnation)
        self._position = LogPosition(position.offset, position.epoch, log_digest=digest)

    async def poll(self, *, max_wait_ms: int = 500) -> list[LogRecord]:
        """Return the next records, possibly none within ``max_wait_ms``; moves the position.

        If ``state`` is set afterwards, the records are a part of that state, and the position moves
        behind it with its last part.

        Raises:
            LogTruncationError: Policy NONE, and records that were read are no longer in the log.
            OffsetOutOfRangeError: Policy NONE, and there is no position, or it lies below the
                log start or beyond the end.
            ProtocolError: The bytes received are not what a log contains.
            ClientError: No node answered, or the request was refused.
        """
        self.state = None
        if self._chunks is not None:
            return await self._next_chunk(self._chunks)
        if self._position is None:
            cause = OffsetOutOfRangeError("there is no position to read from")
            records = await self._reset_position(cause)
            if records:
                return records
        elif self._must_validate or self._newer_incarnation:
            await self._validate(self._position)
        position = self._position
        if position is None or self._chunks is not None:
            return []
        try:
            response = await self._fetch(position, max_wait_ms)
            self._meet_incarnation(response)
            if self._newer_incarnation:
                # Nothing is handed out before the position is verified in that incarnation, and
                # the leader's answer counts alone: this may be a former voter.
                self._meet_leader(response.leader_id, response.leader_epoch)
                return []
            if (hint := response.diverging) is not None:
                self._meet_leader(response.leader_id, response.leader_epoch)
                await self._resolve(position, (hint.epoch, hint.offset))
                return []
        except OffsetOutOfRangeError as error:
            if isinstance(error, LogTruncationError):
                raise
            return await self._reset_position(error)
        except RefusedError as error:
            self._meet_newer_leader(error)
            return []
        self.high_watermark = response.high_watermark
        records = self._advance(position, response)
        self._meet_leader(response.leader_id, response.leader_epoch)
        return records

    async def _fetch(self, position: LogPosition, max_wait_ms: int) -> FetchLogResponse:
        return await self._calls.fetch_log(
            FetchLogRequest(
                offset=position.offset,
                current_leader_epoch=self._leader_epoch,
                last_fetched_epoch=position.epoch,
                max_bytes=self._max_bytes,
                max_wait_ms=max_wait_ms,
                with_log_digest=self._typed or not position.log_digest,
                record_form=RECORD_FORM_TYPED if self._typed else RECORD_FORM_ENCODED,
                log_incarnation_number=self._newest.number,
            )
        )

    def _advance(self, position: LogPosition, response: FetchLogResponse) -> list[LogRecord]:
        """Take the records at and above the position; the batch may begin below it."""
        records: list[LogRecord] = []
        for batch in fetched_batches(
            response, position.log_digest, verify_checksums=self._verify_checksums
        ):
            records += [record for record in batch.records if record.offset >= position.offset]
            start = max(batch.base_offset, position.offset)
            below = batch.digest_below if start == batch.base_offset else b""
            self._lineage.add(batch.leader_epoch, start, below)
            self._position = LogPosition(
                batch.end_offset, batch.leader_epoch, log_digest=batch.digest_behind
            )
        return records

    def _meet_leader(self, leader_id: int, leader_epoch: int) -> None:
        """Handle a newer leader: the records read under the old one are verified first.

        An epoch without a leader is ignored: a quorum that stays below it would refuse its reader.
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

    def _meet_incarnation(self, answer: FetchLogResponse | OffsetForLeaderEpochResponse) -> None:
        """Note the incarnation of the log that an answer names; a new one is verified by digest."""
        self._newest.meet(answer)
        found = answer.log_incarnation or FIRST_INCARNATION_ID
        if found == self._incarnation:
            self._newer_incarnation = b""
            self._is_leaders = False
            return
        if self._incarnation:
            self._newer_incarnation = found
            self._is_leaders = isinstance(answer, OffsetForLeaderEpochResponse)
            self._must_validate = True
        else:
            self._incarnation = found

    # ------------------------------------------------------------------ truncation

    async def _validate(self, position: LogPosition) -> None:
        """Ask where the epoch of our last record ends (320.3)."""
        try:
            if position.epoch < 0:
                await self._validate_incarnation(position)
                return
            epoch, end_offset = await self._epoch_end(position.epoch)
            # A log that begins above the position has nothing to compare; the fetch says so.
            is_comparable = epoch >= 0 or end_offset <= position.offset
            if is_comparable and (epoch < position.epoch or end_offset < position.offset):
                await self._resolve(position, (epoch, end_offset))
            elif is_comparable and self._newer_incarnation:
                # The epochs of two incarnations may be the same by chance; digests are not.
                await self._compare(position)
        except OffsetOutOfRangeError:
            raise
        except RefusedError as error:
            self._meet_newer_leader(error)
            return
        if self._chunks is None:
            self._enter_incarnation()

    async def _validate_incarnation(self, position: LogPosition) -> None:
        """Validate a position behind which nothing was read: no epoch can differ."""
        answer = await self._calls.offset_for_leader_epoch(0, leader_epoch=self._leader_epoch)
        self._meet_incarnation(answer)
        if self._newer_incarnation:
            await self._compare(position)
        if self._chunks is None:
            self._enter_incarnation()

    def _enter_incarnation(self) -> None:
        """Go on in the incarnation of the leader: the position is valid in it."""
        self._incarnation = self._newer_incarnation or self._incarnation
        self._newer_incarnation = b""
        self._is_leaders = False
        self._must_validate = False

    async def _epoch_end(self, epoch: int) -> tuple[int, int]:
        answer = await self._calls.offset_for_leader_epoch(epoch, leader_epoch=self._leader_epoch)
        self._meet_incarnation(answer)
        if answer.end_offset >= 0:
            return answer.leader_epoch, answer.end_offset
        start = await self._calls.list_offsets(EARLIEST_TIMESTAMP, leader_epoch=self._leader_epoch)
        return -1, start.offset

    async def _has_digest(self, offset: int, digest: bytes) -> bool | None:
        answer = await self._calls.offset_for_leader_epoch(
            0, leader_epoch=self._leader_epoch, digest_offset=offset
        )
        self._newest.meet(answer)
        return answer.log_digest == digest if answer.log_digest else None

    async def _compare(self, position: LogPosition) -> None:
        """Compare the position with a log of another incarnation, by digest."""
        if not position.log_digest:
            return
        if await self._has_digest(position.offset, position.log_digest) is False:
            bound = Divergence(position.offset, -1, is_exact=False)
            await self._settle(position, await confirm(self._lineage, bound, self._has_digest))

    async def _resolve(self, position: LogPosition, answer: tuple[int, int]) -> None:
        """Find where our history differs from the log, and go there or raise (320.4)."""
        found = await find_divergence(
            self._lineage, position.offset, answer, self._epoch_end, self._has_digest
        )
        await self._settle(position, found)

    async def _settle(self, position: LogPosition, found: Divergence) -> None:
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
                lost_epoch=self._lineage.epoch_at(found.offset),
            )
        if self._reset is ResetPolicy.EARLIEST and not found.is_exact:
            start = await self._calls.list_offsets(
                EARLIEST_TIMESTAMP, leader_epoch=self._leader_epoch
            )
            if 0 < found.offset <= start.offset:
                # What was written in place of the lost records was trimmed: only a state has it.
                # Until all of it was handed out, the position finds the same divergence again.
                _LOG.warning("%s; reading the state at offset %d or above", text, start.offset)
                self._begin_state(start.offset)
                return
        _LOG.warning("%s; moved there", text)
        digest = next(
            (e.log_digest for e in self._lineage.epochs if e.start_offset == found.offset), b""
        )
        self._lineage.truncate_to(found.offset)
        self._position = LogPosition(found.offset, found.epoch, log_digest=digest)
        self._enter_incarnation()

    # ------------------------------------------------------------------ resets

    async def _reset_position(self, cause: OffsetOutOfRangeError) -> list[LogRecord]:
        """Go to one end of the log, as the leader of the newest known epoch reports it."""
        policy, position = self._reset, self._position
        if policy is ResetPolicy.NONE:
            raise cause
        time = EARLIEST_TIMESTAMP if policy is ResetPolicy.EARLIEST else LATEST_TIMESTAMP
        read_under = -1 if position is None else position.epoch
        try:
            found = await self._calls.list_offsets(
                time, leader_epoch=max(self._leader_epoch, read_under)
            )
        except RefusedError as error:
            self._meet_newer_leader(error)
            return []
        self._must_validate = False
        if policy is ResetPolicy.EARLIEST and found.offset > 0:
            _LOG.warning("%s; reading the state at offset %d or above", cause, found.offset)
            read_end = 0 if position is None else position.offset
            if cause.bounds is not None and read_end > cause.bounds.high_watermark:
                # Nothing was read beyond the end, and no state is at or above it.
                read_end = 0
            return await self._next_chunk(self._begin_state(max(found.offset, read_end)))
        if position is not None:
            _LOG.warning("%s; moved to %s %d", cause, policy.value, found.offset)
        # The earliest record's own epoch says nothing about the one before it.
        epoch = found.leader_epoch if policy is ResetPolicy.LATEST else -1
        self._move_to(LogPosition(found.offset, epoch))
        return []

    def _begin_state(self, offset: int) -> AsyncGenerator[StateChunk]:
        """Read a state at or above ``offset``; the position moves when all of it was handed out."""
        self._chunks = self._calls.read_state(
            at_least_offset=offset, of_checkpoint=True, typed=self._typed
        )
        return self._chunks

    async def _next_chunk(self, chunks: AsyncGenerator[StateChunk]) -> list[LogRecord]:
        """Return the next part of a state; behind the last one the log goes on."""
        try:
            chunk = await anext(chunks)
        except BaseException:
            # The next poll resets again, and reads another state from its beginning.
            self._chunks = None
            raise
        self.state = LogState(chunk.offset, chunk.epoch, chunk.chunk, chunk.is_last)
        if chunk.is_last:
            self._chunks = None
            self._move_to(LogPosition(chunk.offset, chunk.epoch, (), chunk.log_digest))
        if self._typed:
            return [state_record(chunk, None, typed) for typed in chunk.typed_records]
        return [state_record(chunk, value) for value in chunk.records]
