"""Watch streams: the state at a position, then every change after it, without a gap.

A watcher that resumes sends its next offset and the epoch of the record before it. The node
refuses a watcher whose history differs from the log. The node ends the stream of a watcher that
stops reading, and every stream when it stops, with the offset to resume from. Until then a slow
watcher costs one message of memory.

See: docs/audit.md (consumers see only what is committed), KIP-320.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from quorate.services.access import Access
from quorate.services.admission import Gate
from quorate.services.calls import Context
from quorate.services.change_feed import ChangeFeed
from quorate.services.change_message import ChangeMessage
from quorate.services.closing import Closing
from quorate.services.errors import RequestRefusedError
from quorate.services.identity import caller
from quorate.services.incarnations import check_reader, incarnation_bytes
from quorate.services.log_range import LogRange
from quorate.services.log_reads import optional
from quorate.services.log_redaction import check_may_read_secrets
from quorate.services.ports import ServedNode
from quorate.services.too_large import check_batch_fits, check_state_fits
from quorate.services.watch_cursor import WatchCursor
from quorum.errors import ErrorCode, QuorumUsageError, StorageError
from quorum.transport.callers import caller_of
from quorum.transport.eager import run_into
from quorum.transport.shared_limit import SharedLimit
from quorum.types import uuid_to_text
from quorum.v1 import metadata_pb2
from quorum.v1.errors_pb2 import DivergenceHint, OffsetBounds
from statemachine.command_access import READ_LOG
from statemachine.image import MetadataImage

STATE_PAUSE_SECONDS = 0.003
"""The pause between two messages of a state. Each takes the event loop for one millisecond, so
writes and Fetches have at least three quarters of the loop while a watcher loads the state."""
STALL_SECONDS_MAX = 30.0
"""How long one message may wait for a watcher to read."""


class Watches:
    """Serves the watch streams of one node. Used on the event loop only."""

    def __init__(
        self,
        node: ServedNode,
        *,
        watches_max: int,
        closing: Closing,
        access_of: Callable[[Context], Access | None] = lambda _: None,
        stall_seconds: float = STALL_SECONDS_MAX,
    ) -> None:
        """``access_of`` returns what the watcher of a call may do; None: everything."""
        self._access_of = access_of
        self._node = node
        self._log = LogRange(node)
        self._feed = ChangeFeed(node)
        self._closing = closing
        self._stall_seconds = stall_seconds
        self._stall_limit = SharedLimit(stall_seconds, TimeoutError)
        self.open = Gate("watches", watches_max)
        self._loading = asyncio.Lock()

    def close(self) -> None:
        """Stop listening to the node."""
        self._feed.close()

    async def serve(self, request: metadata_pb2.WatchRequest, context: Context) -> None:
        """Write to the stream until the watcher leaves.

        Raises:
            RequestRefusedError: LOG_INCARNATION_MISMATCH when the watcher has met a newer
                incarnation, OFFSET_OUT_OF_RANGE with the readable range (and the point of
                divergence, if that is why), OFFSET_NOT_AVAILABLE or UNKNOWN_LEADER_EPOCH when this
                replica is behind the watcher, RESOURCE_EXHAUSTED with the offset to resume from
                when the watcher does not read, or when there are too many, BROKER_NOT_AVAILABLE
                with that offset when the node stops, MESSAGE_TOO_LARGE at what no message holds.
        """
        caller(context, request.client_id)
        access = self._access_of(context)
        if request.include_secrets:
            check_may_read_secrets(access)
        form = {
            "is_typed": request.record_form == metadata_pb2.RECORD_FORM_TYPED,
            "with_secrets": request.include_secrets,
        }
        with self.open.passing(caller_of(context)):
            check_reader(self._node, request.log_incarnation_number)
            cursor = WatchCursor(self._node)
            if request.HasField("from_offset"):
                cursor.resume(request.from_offset, optional(request, "from_epoch"))
                await self._check_incarnation(request)
            else:
                image = await self._checkpoint(request)
                for chunk in cursor.begin(image, **form):
                    with self._closing.waiting():
                        pass
                    if chunk.state.is_last:
                        chunk.state.log_digest = await self._node.log_digest(cursor.offset)
                        chunk.state.log_incarnation = incarnation_bytes(self._node)
                        number = self._node.log_incarnation.number
                        chunk.state.log_incarnation_number = number
                    data = chunk.SerializeToString()
                    check_state_fits(cursor.offset, len(data))
                    await self._write(context, data)
                    if not chunk.state.is_last:
                        with self._closing.waiting():
                            await asyncio.sleep(STATE_PAUSE_SECONDS)
            await self._follow(context, cursor, access, form)

    async def _checkpoint(self, request: metadata_pb2.WatchRequest) -> MetadataImage | None:
        """Return the state of a checkpoint for a reader below the log start, None for others.

        One at a time: each is a second image in memory while it is sent.
        """
        if not request.HasField("checkpoint_at_least"):
            return None
        with self._closing.waiting():
            async with self._loading:
                return await self._node.checkpoint_image(request.checkpoint_at_least)

    async def _check_incarnation(self, request: metadata_pb2.WatchRequest) -> None:
        """Refuse a watcher of another incarnation whose history is not below its offset here.

        Epochs of two incarnations may be equal by chance; digests are not.

        Raises:
            RequestRefusedError: OFFSET_OUT_OF_RANGE with the readable range, and the offset as the
                bound of the divergence.
        """
        read_in, digest = request.from_log_incarnation, request.from_log_digest
        if not (read_in and digest) or read_in == self._node.log_incarnation.id:
            return
        if await self._node.log_digest(request.from_offset) == digest:
            return
        raise RequestRefusedError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"the log is another incarnation ({uuid_to_text(self._node.log_incarnation.id)}) than "
            f"the watcher has read ({read_in.hex()}), and differs below offset "
            f"{request.from_offset}",
            (DivergenceHint(epoch=-1, offset=request.from_offset), self._log.bounds()),
        )

    async def _follow(
        self, context: Context, cursor: WatchCursor, access: Access | None, form: dict[str, bool]
    ) -> None:
        """Every change behind the cursor, for ever, or until the watcher may not see them."""
        while True:
            with self._closing.waiting(details=partial(self._resume_at, cursor)):
                has_more = await self._feed.wait_beyond(cursor.offset, **form)
            if not has_more:
                await self._write(context, cursor.progress(), cursor)
                continue
            changes = await self._changes(cursor, form)
            if access is not None:
                access.require(self._node.image, READ_LOG)
            check_batch_fits(changes.base_offset, changes.end_offset, len(changes.data))
            await self._write(context, changes.data, cursor)
            cursor.advance(changes)

    async def _changes(self, cursor: WatchCursor, form: dict[str, bool]) -> ChangeMessage:
        """What follows the cursor.

        Raises:
            RequestRefusedError: OFFSET_OUT_OF_RANGE when the log was trimmed or replaced beyond
                the cursor, before or while it was read.
            StorageError: The log could not be read.
        """
        cursor.check_kept()
        try:
            changes = await self._feed.changes(cursor.offset, **form)
        except (StorageError, QuorumUsageError):
            cursor.check_kept()
            raise
        cursor.evaluate(changes)
        return changes

    async def _write(
        self,
        context: Context,
        message: metadata_pb2.WatchResponse | bytes,
        cursor: WatchCursor | None = None,
    ) -> None:
        """Send, and wait until the watcher has read enough; no cursor: not all of a state yet."""
        written = self._stall_limit.future()
        try:
            # The write is not cancelled when it is late: that leaks it. It ends with the call.
            run_into(context.write(message), written)
            await written
        except TimeoutError as error:
            bounds = self._resume_at(cursor)
            raise RequestRefusedError(
                ErrorCode.RESOURCE_EXHAUSTED,
                f"the watcher read nothing for {self._stall_seconds} s; "
                f"resume from {bounds.resume_offset}",
                (bounds,),
            ) from error
        finally:
            self._stall_limit.forget(written)

    def _resume_at(self, cursor: WatchCursor | None) -> OffsetBounds:
        bounds = self._log.bounds()
        if cursor is not None:
            bounds.resume_offset = cursor.offset
            bounds.resume_epoch = cursor.epoch
        return bounds
