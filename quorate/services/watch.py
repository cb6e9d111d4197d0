"""Watch streams: the state at a position, then every change after it, without a gap.

A watcher that resumes names the offset it has got to and the epoch of the record before it; a
history that is not ours is told so instead of being continued. A watcher that stops reading is
ended with the offset it may resume from; meanwhile it costs one message of memory.

See: docs/audit.md (consumers see only what is committed), KIP-320.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from quorate.services.admission import Gate
from quorate.services.calls import Context
from quorate.services.change_feed import CHANGE_BYTES_MAX, ChangeFeed, ChangeMessage
from quorate.services.errors import RequestRefusedError
from quorate.services.identity import caller
from quorate.services.log_reads import LogReads, optional
from quorate.services.ports import ServedNode
from quorum.errors import ErrorCode, QuorumUsageError, StorageError
from quorum.v1 import metadata_pb2
from statemachine.codec import encode_record
from statemachine.dump import dump_records
from statemachine.image import MetadataImage

STALL_SECONDS_MAX = 30.0
"""How long one message may wait for a watcher to read."""
PROGRESS_SECONDS = 5.0
"""After so long without a change a watcher is told how far it is."""


class Watches:
    """Serves the watch streams of one node. Lives on the event loop."""

    def __init__(
        self,
        node: ServedNode,
        log: LogReads,
        *,
        watches_max: int,
        stall_seconds: float = STALL_SECONDS_MAX,
    ) -> None:
        self._node = node
        self._log = log
        self._feed = ChangeFeed(node)
        self._stall_seconds = stall_seconds
        self.open = Gate("watches", watches_max)

    def close(self) -> None:
        """Stop listening to the node."""
        self._feed.close()

    async def serve(self, request: metadata_pb2.WatchRequest, context: Context) -> None:
        """Write to the stream until the watcher leaves.

        Raises:
            RequestRefusedError: OFFSET_OUT_OF_RANGE with the readable range (and the point of
                divergence, if that is why), OFFSET_NOT_AVAILABLE when this replica is behind the
                watcher, RESOURCE_EXHAUSTED with the offset to resume from when the watcher does
                not read, or when there are too many.
        """
        caller(context, request.client_id)
        with self.open.passing():
            if request.HasField("from_offset"):
                offset = request.from_offset
                epoch = optional(request, "from_epoch")
                self._check_resume(offset, epoch)
            else:
                image = self._node.image
                offset, epoch = image.provenance.end_offset, image.provenance.epoch
                for chunk in state_chunks(image):
                    await self._write(context, chunk, offset=-1, epoch=-1)
            await self._follow(context, offset, epoch)

    def _check_resume(self, offset: int, epoch: int) -> None:
        divergence = self._log.check_position(offset, epoch)
        if divergence is not None:
            raise RequestRefusedError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"the watcher's history (offset {offset}, epoch {epoch}) differs from this log "
                f"from offset {divergence.offset} on",
                (divergence, self._log.bounds()),
            )

    async def _follow(self, context: Context, offset: int, epoch: int) -> None:
        """Every change from ``offset`` on, for ever."""
        while True:
            if not await self._feed.wait_beyond(offset, PROGRESS_SECONDS):
                progress = metadata_pb2.WatchResponse()
                progress.progress.offset = offset
                progress.progress.epoch = epoch
                await self._write(context, progress, offset=offset, epoch=epoch)
                continue
            if offset < self._node.log_start.offset:
                raise self._log.out_of_range(offset)
            changes = await self._changes(offset)
            await self._write(context, changes.data, offset=offset, epoch=epoch)
            offset, epoch = changes.end_offset, changes.epoch

    async def _changes(self, offset: int) -> ChangeMessage:
        """What follows ``offset``.

        Raises:
            RequestRefusedError: OFFSET_OUT_OF_RANGE when the log was trimmed or replaced beyond
                ``offset`` while it was being read.
            StorageError: The log could not be read.
        """
        try:
            changes = await self._feed.changes(offset)
        except (StorageError, QuorumUsageError):
            if offset < self._node.log_start.offset:
                raise self._log.out_of_range(offset) from None
            raise
        if not changes.base_offset <= offset < changes.end_offset:
            # The log no longer has it and answered with what it has: never a silent gap.
            raise self._log.out_of_range(offset)
        return changes

    async def _write(
        self,
        context: Context,
        message: metadata_pb2.WatchResponse | bytes,
        *,
        offset: int,
        epoch: int,
    ) -> None:
        try:
            async with asyncio.timeout(self._stall_seconds):
                await context.write(message)
        except TimeoutError as error:
            bounds = self._log.bounds()
            bounds.resume_offset = offset
            bounds.resume_epoch = epoch
            raise RequestRefusedError(
                ErrorCode.RESOURCE_EXHAUSTED,
                f"the watcher read nothing for {self._stall_seconds} s; resume from {offset}",
                (bounds,),
            ) from error


def state_chunks(image: MetadataImage) -> Iterator[metadata_pb2.WatchResponse]:
    """The whole state as messages of about ``CHANGE_BYTES_MAX``; the last one says so."""
    number = 0
    chunk = _chunk(image, number)
    size = 0
    for record in dump_records(image):
        value = encode_record(record)
        if size + len(value) > CHANGE_BYTES_MAX and size:
            yield chunk
            number += 1
            chunk = _chunk(image, number)
            size = 0
        chunk.state.records.append(value)
        size += len(value)
    chunk.state.is_last = True
    yield chunk


def _chunk(image: MetadataImage, number: int) -> metadata_pb2.WatchResponse:
    return metadata_pb2.WatchResponse(
        state=metadata_pb2.StateChunk(
            offset=image.provenance.end_offset, epoch=image.provenance.epoch, chunk=number
        )
    )
