"""The metadata log for plain consumers: fetch, list offsets, offset for leader epoch.

Only committed records are visible. The leader checks a consumer's history. Another replica serves
its committed part, and does not report divergence to a consumer that is only ahead of it.

See: KIP-320, requirements 279.1, 320.1-320.5.
"""

from __future__ import annotations

import asyncio

from quorate.client.limits import FETCH_BYTES_MAX, FRAMING_BYTES
from quorate.services.admission import Gate
from quorate.services.change_message import CHANGE_BYTES_MAX, change_batch
from quorate.services.errors import RequestRefusedError
from quorate.services.incarnations import check_reader, incarnation_bytes
from quorate.services.leadership import check_epoch, require_leader
from quorate.services.log_range import LogRange
from quorate.services.log_redaction import redacted_batches
from quorate.services.ports import ServedNode
from quorate.services.too_large import check_batch_fits
from quorum.batch import BatchHeader, iterate_records, read_header, scan_batches
from quorum.digest import fold
from quorum.errors import CommandError, ErrorCode, QuorumUsageError, StorageError
from quorum.types import OffsetAndEpoch
from quorum.v1 import metadata_pb2

FETCH_WAIT_MS_MAX = 30_000
"""Maximum time that a fetch without records is held."""

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3

_PROBE_BYTES = 1
"""``max_bytes`` that reads a single batch."""


class LogReads:
    """Serves consumers of the log. Used on the event loop only."""

    def __init__(self, node: ServedNode, held: Gate) -> None:
        self.node = self._node = node
        self._range = LogRange(node)
        self._held = held

    async def fetch(
        self, request: metadata_pb2.FetchLogRequest, caller: str
    ) -> metadata_pb2.FetchLogResponse:
        """Return committed batches, beginning with the one that contains the offset.

        Raises:
            RequestRefusedError: LOG_INCARNATION_MISMATCH (the reader has met a newer incarnation),
                FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, OFFSET_NOT_AVAILABLE (the high
                watermark is unknown or lower), OFFSET_OUT_OF_RANGE, MESSAGE_TOO_LARGE at a batch
                that does not fit in a message.
        """
        node = self._node
        check_reader(node, request.log_incarnation_number)
        check_epoch(node, optional(request, "current_leader_epoch"))
        last_epoch = optional(request, "last_fetched_epoch")
        divergence = self._range.check_position(request.offset, last_epoch)
        is_typed = request.record_form == metadata_pb2.RECORD_FORM_TYPED
        records = read = digest = b""
        changed: list[BatchHeader] = []
        if divergence is None:
            end_offset = await self._wait_for_records(request, caller)
            if end_offset > request.offset:
                # Typed records are larger than encoded ones.
                most = CHANGE_BYTES_MAX if is_typed else FETCH_BYTES_MAX
                max_bytes = min(request.max_bytes or most, most)
                records = read = await self._read(request.offset, max(1, max_bytes), end_offset)
                if not request.include_secrets:
                    records, changed = redacted_batches(read)
                if len(records) > FETCH_BYTES_MAX:
                    only = read_header(records)
                    check_batch_fits(
                        only.base_offset, only.end_offset, len(records), framing_bytes=FRAMING_BYTES
                    )
            if records and request.with_log_digest:
                digest = await node.log_digest(read_header(records).base_offset)
        leader = node.leadership
        response = metadata_pb2.FetchLogResponse(
            leader_id=leader.leader_id,
            leader_epoch=leader.epoch,
            high_watermark=node.high_watermark,
            log_start_offset=node.log_start.offset,
            diverging=divergence,
            records=b"" if is_typed else records,
            log_digest=digest,
            log_incarnation=incarnation_bytes(node),
            log_incarnation_number=node.log_incarnation.number,
        )
        for header in changed:
            response.redacted.add(
                base_offset=header.base_offset, log_digest=await node.log_digest(header.end_offset)
            )
        if is_typed and records:
            _add_typed(response, records, read, digest)
        return response

    async def _read(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        """Return whole batches from ``offset``, or refuse an offset that was trimmed meanwhile."""
        try:
            return await self._node.read_log(offset, max_bytes, end_offset)
        except (StorageError, QuorumUsageError):
            if offset < self._node.log_start.offset:
                raise self._range.out_of_range(offset) from None
            raise

    async def _wait_for_records(self, request: metadata_pb2.FetchLogRequest, caller: str) -> int:
        """Wait until the high watermark exceeds the offset or ``max_wait_ms`` ends; return it."""
        node = self._node
        wait_ms = min(request.max_wait_ms, FETCH_WAIT_MS_MAX)
        if node.high_watermark > request.offset or wait_ms <= 0:
            return node.high_watermark
        with self._held.passing(caller):
            # A future and a timer cost less than an event and asyncio.timeout.
            loop = asyncio.get_running_loop()
            ended: asyncio.Future[None] = loop.create_future()
            timer = loop.call_later(wait_ms / 1000, _end, ended)

            def on_published() -> None:
                if node.high_watermark > request.offset:
                    _end(ended)

            cancel = node.subscribe(on_published)
            try:
                await ended
            finally:
                timer.cancel()
                cancel()
        return node.high_watermark

    async def offset_for_leader_epoch(
        self, request: metadata_pb2.OffsetForLeaderEpochRequest
    ) -> metadata_pb2.OffsetForLeaderEpochResponse:
        """Return where the largest epoch at or below the requested one ends (279.1). Leader only.

        Raises:
            RequestRefusedError: LOG_INCARNATION_MISMATCH (the reader has met a newer incarnation),
                NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH (also for a
                requested epoch that this leader does not know), OFFSET_NOT_AVAILABLE for a digest
                between the high watermark and the end of the log.
        """
        check_reader(self._node, request.log_incarnation_number)
        check_epoch(self._node, optional(request, "current_leader_epoch"))
        require_leader(self._node)
        found = self._range.epoch_end(request.leader_epoch)
        answer = metadata_pb2.OffsetForLeaderEpochResponse(
            leader_epoch=-1,
            end_offset=-1,
            log_incarnation=incarnation_bytes(self._node),
            log_incarnation_number=self._node.log_incarnation.number,
        )
        if found is not None:
            answer.leader_epoch, answer.end_offset = found.epoch, found.offset
        digest_offset = optional(request, "digest_offset")
        if self._node.high_watermark < digest_offset <= self._node.log_end.offset:
            raise RequestRefusedError(
                ErrorCode.OFFSET_NOT_AVAILABLE,
                f"the digest at {digest_offset} is above the high watermark "
                f"{self._node.high_watermark}",
            )
        if 0 <= digest_offset <= self._node.high_watermark:
            answer.log_digest = await self._digest_below(digest_offset)
        return answer

    async def _digest_below(self, offset: int) -> bytes:
        """Return the log digest below an offset, or below the batch that the offset is inside of.

        Who has a digest at ``offset`` has read a batch that ends there, so his history is another
        one, and so is the digest. Empty if it is not known.
        """
        digest = await self._node.log_digest(offset)
        if digest:
            return digest
        header = await self._header_at(offset)
        if header is None or header.base_offset == offset:
            return b""
        return await self._node.log_digest(header.base_offset)

    async def list_offsets(
        self, request: metadata_pb2.ListOffsetsRequest
    ) -> metadata_pb2.ListOffsetsResponse:
        """Return the offset for a time or a special value. Leader only, committed records only.

        Timestamps of our own logs never decrease, so a time is found by bisection. In an imported
        log with decreasing timestamps, the answer is one of the places where they pass the time.

        Raises:
            RequestRefusedError: LOG_INCARNATION_MISMATCH (the reader has met a newer incarnation),
                the epoch codes, NOT_LEADER_OR_FOLLOWER, and OFFSET_NOT_AVAILABLE, except for the
                earliest offset, until a record of the leader's epoch is committed.
            CommandError: INVALID_REQUEST for an unknown special value.
        """
        check_reader(self._node, request.log_incarnation_number)
        while True:
            start = self._node.log_start
            try:
                answer = await self._list_from(start, request)
            except (StorageError, QuorumUsageError):
                if self._node.log_start == start:
                    raise
            else:
                if self._node.log_start == start:
                    answer.log_incarnation = incarnation_bytes(self._node)
                    answer.log_incarnation_number = self._node.log_incarnation.number
                    return answer
            # The log was trimmed meanwhile, so the answer may be different now.

    async def _list_from(
        self, start: OffsetAndEpoch, request: metadata_pb2.ListOffsetsRequest
    ) -> metadata_pb2.ListOffsetsResponse:
        node = self._node
        check_epoch(node, optional(request, "current_leader_epoch"))
        require_leader(node)
        if request.timestamp < MAX_TIMESTAMP:
            raise CommandError(ErrorCode.INVALID_REQUEST, f"unknown time {request.timestamp}")
        if request.timestamp == EARLIEST_TIMESTAMP:
            header = await self._header_at(start.offset)
            epoch = start.epoch if header is None else header.epoch
            return _listed(start.offset, epoch, -1)
        if node.high_watermark <= node.leader_epoch_start:
            raise RequestRefusedError(
                ErrorCode.OFFSET_NOT_AVAILABLE,
                f"the high watermark {node.high_watermark} has not passed the start "
                f"{node.leader_epoch_start} of this leader's epoch",
            )
        if request.timestamp == LATEST_TIMESTAMP:
            header = await self._header_at(node.high_watermark - 1)
            epoch = start.epoch if header is None else header.epoch
            return _listed(node.high_watermark, epoch, -1)
        if request.timestamp == MAX_TIMESTAMP:
            header = await self._header_at(node.high_watermark - 1)
            if header is None:
                return _listed(-1, -1, -1)
            return _listed(header.end_offset - 1, header.epoch, header.max_timestamp)
        return await self._first_at(request.timestamp)

    async def _first_at(self, timestamp: int) -> metadata_pb2.ListOffsetsResponse:
        """Return the first record whose timestamp is at or above ``timestamp``."""
        low, high = self._node.log_start.offset, self._node.high_watermark
        while low < high:
            header = await self._header_at((low + high) // 2)
            if header is None:
                break
            if header.max_timestamp >= timestamp:
                high = max(low, header.base_offset)
                if header.base_offset <= low:
                    break
            else:
                low = header.end_offset
        data = await self._batch_at(low)
        if not data:
            return _listed(-1, -1, -1)
        header = read_header(data)
        for record in iterate_records(data, header):
            if record.timestamp >= timestamp:
                return _listed(record.offset, header.epoch, record.timestamp)
        return _listed(-1, -1, -1)

    async def _batch_at(self, offset: int) -> bytes:
        node = self._node
        if not node.log_start.offset <= offset < node.high_watermark:
            return b""
        return await node.read_log(offset, _PROBE_BYTES, node.high_watermark)

    async def _header_at(self, offset: int) -> BatchHeader | None:
        data = await self._batch_at(offset)
        return read_header(data) if data else None


def _end(wait: asyncio.Future[None]) -> None:
    if not wait.done():
        wait.set_result(None)


def optional(request: object, field: str) -> int:
    """Return an optional number of a request, -1 if it is not set."""
    value: int = getattr(request, field) if request.HasField(field) else -1  # type: ignore[attr-defined]  # any message
    return value


def _listed(offset: int, epoch: int, timestamp: int) -> metadata_pb2.ListOffsetsResponse:
    return metadata_pb2.ListOffsetsResponse(offset=offset, leader_epoch=epoch, timestamp=timestamp)


def _add_typed(
    response: metadata_pb2.FetchLogResponse, records: bytes, read: bytes, digest: bytes
) -> None:
    """Add batches with typed records, and the log digest behind each if ``digest`` is that below.

    ``read`` are the batches as the log has them, with their secrets.

    Raises:
        RequestRefusedError: MESSAGE_TOO_LARGE, a batch does not fit in a message.
    """
    headers = scan_batches(records)
    response.batches.extend(change_batch(records, each, is_typed=True) for each in headers)
    if digest:
        for batch, header in zip(response.batches, scan_batches(read), strict=True):
            digest = fold(digest, read[header.position : header.position + header.size])
            batch.log_digest = digest
    check_batch_fits(headers[0].base_offset, headers[-1].end_offset, response.ByteSize())
