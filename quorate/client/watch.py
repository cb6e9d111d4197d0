"""The state at a position, then every change after it, over any number of broken streams.

A watch resumes where it stopped; the server proves that nothing is missing, and the client
checks that batches follow one another without a gap. Only when the log no longer reaches back
far enough does it begin again with the state.

See: docs/reference/client-protocol.md, requirement 320.9.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any, TypeAlias

import grpc

from quorate.client.caller import BACKOFF_SECONDS, Caller, may_ask_again
from quorate.client.channels import Nodes
from quorate.client.errors import (
    ClientError,
    LogTruncationError,
    OffsetOutOfRangeError,
    ProtocolError,
    UnavailableError,
    WatchLaggedError,
    from_rpc,
)
from quorate.client.lineage import find_divergence
from quorate.client.reach import within_reach
from quorate.client.results.metadata import ChangeBatch, StateChunk
from quorum.log_position import FIRST_INCARNATION_ID, EpochEntry, Lineage, LogPosition
from quorum.v1.metadata_pb2 import (
    RECORD_FORM_ENCODED,
    RECORD_FORM_TYPED,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    WatchProgress,
    WatchRequest,
    WatchResponse,
)
from quorum.v1.metadata_pb2 import ChangeBatch as BatchMessage
from quorum.v1.metadata_pb2 import StateChunk as ChunkMessage

SILENCE_SECONDS_MAX = 15.0
"""A server sends a message every few seconds; after this time without one, another node is asked.
"""

WatchEvent: TypeAlias = StateChunk | ChangeBatch
"""``StateChunk`` number 0 means: forget everything, the state begins (again)."""


class Watch:
    """One watch; iterate over it. Not for use by several tasks at a time.

    ``offset`` and ``epoch`` are what to resume from: everything below was handed out. They are
    -1 until the whole state was.
    """

    def __init__(
        self,
        nodes: Nodes,
        caller: Caller,
        *,
        client_id: str,
        position: LogPosition | None = None,
        may_restart: bool = True,
        outage_seconds_max: float = float("inf"),
        state_at_least: int = -1,
        of_checkpoint: bool = False,
        typed: bool = False,
    ) -> None:
        """Resume at ``position``, or begin with a state at or above ``state_at_least``.

        ``of_checkpoint``: that of the lowest checkpoint there, if the node has one.
        """
        self._of_checkpoint = of_checkpoint
        self._form = RECORD_FORM_TYPED if typed else RECORD_FORM_ENCODED
        self._nodes = nodes
        self._caller = caller
        self._client_id = client_id
        self._may_restart = may_restart
        self._outage_seconds_max = outage_seconds_max
        self._not_served: set[str] = set()
        """Addresses that serve no watch."""
        self._chunks = 0
        self._is_first_batch = True
        self._least = state_at_least
        """Where a state must be at least: a watch that begins again never goes back."""
        at = LogPosition(-1) if position is None else position
        self.offset, self.epoch = at.offset, at.epoch
        self._digest, self._incarnation = at.log_digest, at.log_incarnation
        self._newest = nodes.newest_incarnation
        self._newest.know(at.newest_incarnation)
        self._lineage = Lineage(at.epochs)
        if at.epoch >= 0:
            self._lineage.add(at.epoch, at.offset - 1)

    @property
    def position(self) -> LogPosition | None:
        """What to store for resuming later; None until the whole state was handed out."""
        if self.offset < 0:
            return None
        return LogPosition(
            self.offset,
            self.epoch,
            self._lineage.epochs,
            self._digest,
            self._incarnation,
            self._newest.number,
        )

    async def __aiter__(self) -> AsyncGenerator[WatchEvent]:
        """The events, for ever.

        Raises:
            LogTruncationError: What was handed out is no longer part of the log.
            OffsetOutOfRangeError: The log no longer reaches back to ``offset`` and the watch
                was configured not to begin again; or the offset that it was to begin at is beyond
                the log's end.
            ProtocolError: The server skipped or repeated something.
            UnavailableError: No node answered for ``outage_seconds_max``.
        """
        loop = asyncio.get_running_loop()
        lost_at: float | None = None
        while True:
            address = self._caller.address(to_leader=False)
            call = self._open(address)
            failure: Exception = UnavailableError("the server ended the watch")
            try:
                async for response in self._responses(call, address):
                    for event in self._events(response):
                        yield event
                    lost_at = None
            except (ClientError, TimeoutError) as error:
                failure = error
            finally:
                call.cancel()
            if isinstance(failure, LogTruncationError):
                failure = await self._unconfirmed(failure)
            self._evaluate(failure, address)
            now = loop.time()
            lost_at = now if lost_at is None else lost_at
            if now - lost_at > self._outage_seconds_max:
                raise UnavailableError(f"no watch for {now - lost_at:.1f} s: {failure}")
            await asyncio.sleep(BACKOFF_SECONDS[1])

    def _open(self, address: str) -> Any:
        request = WatchRequest(
            client_id=self._client_id,
            record_form=self._form,
            log_incarnation_number=self._newest.number,
        )
        if self.offset >= 0:
            request.from_offset = self.offset
            request.from_epoch = self.epoch
            if self._digest and self._incarnation:
                request.from_log_digest = self._digest
                request.from_log_incarnation = self._incarnation
        elif self._of_checkpoint:
            request.checkpoint_at_least = self._least
        self._chunks = 0
        self._is_first_batch = True
        return self._nodes.node(address).metadata.Watch(request)

    async def _responses(self, call: Any, address: str) -> AsyncIterator[WatchResponse]:
        """Messages until the server ends the stream, which it does only by going away."""
        is_known = False
        while True:
            try:
                async with asyncio.timeout(SILENCE_SECONDS_MAX):
                    if is_known:
                        response = await call.read()
                    else:
                        async with within_reach(self._nodes, address):
                            response = await call.read()
                        self._check(await call.initial_metadata(), is_failure=False)
                        is_known = True
            except grpc.RpcError as error:
                self._check(await call.trailing_metadata(), is_failure=True)
                raise from_rpc(error) from error
            if response is grpc.aio.EOF:
                return
            yield response

    def _check(self, metadata: grpc.aio.Metadata | None, *, is_failure: bool) -> None:
        problem = self._nodes.stranger(metadata, is_failure=is_failure)
        if problem:
            raise UnavailableError(problem)

    def _events(self, response: WatchResponse) -> Iterator[WatchEvent]:
        """Yield the events of a message; the position moves behind each as it is handed out."""
        kind = response.WhichOneof("event")
        if kind == "state":
            self._take_chunk(response.state)
            yield StateChunk.of(response.state)
        elif kind == "changes":
            batches = response.changes.batches
            for number, batch in enumerate(batches, 1):
                self._take_batch(batch)
                if number == len(batches):
                    self._digest = response.changes.log_digest
                yield ChangeBatch.of(batch)
        elif kind == "progress":
            self._take_progress(response.progress)

    def _take_progress(self, progress: WatchProgress) -> None:
        if progress.offset != self.offset:
            raise ProtocolError(f"progress to {progress.offset}, with changes up to {self.offset}")
        self._newest.know(progress.log_incarnation_number)
        if progress.knows_no_leader:
            raise UnavailableError("the node knows no leader: it may be a former voter")

    def _take_chunk(self, chunk: ChunkMessage) -> None:
        if self.offset >= 0 or chunk.chunk != self._chunks:
            raise ProtocolError(f"state chunk {chunk.chunk} instead of {self._chunks}")
        if chunk.offset < self._least:
            # The node that reported the higher log start may be gone, and this node may be behind.
            raise UnavailableError(f"a state at {chunk.offset}, and {self._least} was known before")
        self._chunks += 1
        if chunk.is_last:
            self._newest.meet(chunk)
            self.offset, self.epoch = chunk.offset, chunk.epoch
            self._lineage = Lineage([EpochEntry(chunk.epoch, chunk.offset - 1)])
            self._digest = chunk.log_digest
            self._incarnation = chunk.log_incarnation or FIRST_INCARNATION_ID
            self._is_first_batch = False

    def _take_batch(self, batch: BatchMessage) -> None:
        # A watch may have been resumed inside a batch, which is handed out whole.
        fits = batch.base_offset == self.offset or (
            self._is_first_batch and batch.base_offset < self.offset < batch.end_offset
        )
        if self.offset < 0 or not fits:
            raise ProtocolError(f"changes from {batch.base_offset} follow offset {self.offset}")
        self._is_first_batch = False
        self.offset, self.epoch = batch.end_offset, batch.epoch
        self._lineage.add(batch.epoch, batch.base_offset, self._digest)
        # Known at the end of each message only.
        self._digest = b""

    async def _ask(self, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
        request.log_incarnation_number = self._newest.number
        answer: OffsetForLeaderEpochResponse = await self._caller.call(
            "metadata",
            "OffsetForLeaderEpoch",
            request,
            timeout_seconds=SILENCE_SECONDS_MAX,
            to_leader=True,
        )
        self._newest.meet(answer)
        return answer

    async def _unconfirmed(self, failure: LogTruncationError) -> UnavailableError:
        """Return why the leader does not confirm a truncation: another node is asked then.

        Raises:
            LogTruncationError: It does; with the first offset that differs.
        """
        try:
            if await self._is_kept():
                return UnavailableError(f"the log of this node is a former one: {failure}")
            confirmed = await self._located(failure)
        except UnavailableError as error:
            return error
        raise confirmed

    async def _is_kept(self) -> bool:
        """Whether the leader has what was handed out: then a former voter has called it lost."""
        if not self._digest:
            return await self._has_epoch_here()
        request = OffsetForLeaderEpochRequest(leader_epoch=0, digest_offset=self.offset)
        return (await self._ask(request)).log_digest == self._digest

    async def _has_epoch_here(self) -> bool:
        """Whether the leader's record before the offset is of the epoch that was read there.

        All that is known of a position without a digest, as of one inside a message.
        """
        before = await self._ask(OffsetForLeaderEpochRequest(leader_epoch=self.epoch - 1))
        own = await self._ask(OffsetForLeaderEpochRequest(leader_epoch=self.epoch))
        begin, end = before.end_offset, own.end_offset
        return own.leader_epoch == self.epoch >= 0 and begin < self.offset <= end

    async def _located(self, failure: LogTruncationError) -> LogTruncationError:
        """The same, with the first offset that differs as exactly as we know our own epochs."""

        async def epoch_end(epoch: int) -> tuple[int, int]:
            answer = await self._ask(OffsetForLeaderEpochRequest(leader_epoch=epoch))
            if answer.end_offset >= 0:
                return answer.leader_epoch, answer.end_offset
            return -1, failure.bounds.earliest_offset if failure.bounds is not None else 0

        async def has_digest(offset: int, digest: bytes) -> bool | None:
            request = OffsetForLeaderEpochRequest(leader_epoch=0, digest_offset=offset)
            answer = await self._ask(request)
            return answer.log_digest == digest if answer.log_digest else None

        answer = failure.divergent_epoch, failure.divergent_offset
        found = await find_divergence(self._lineage, self.offset, answer, epoch_end, has_digest)
        return LogTruncationError(
            f"history changed: watched up to offset {self.offset} (epoch {self.epoch}), the log "
            f"differs {found}",
            divergent_offset=found.offset,
            divergent_epoch=found.epoch,
            is_exact=found.is_exact,
            lost_epoch=self._lineage.epoch_at(found.offset),
            bounds=failure.bounds,
        )

    def _may_ask_again(self, failure: ClientError, address: str) -> bool:
        return may_ask_again(failure) or self._nodes.is_served_elsewhere(
            failure, address, self._not_served
        )

    def _is_beyond_end(self, failure: OffsetOutOfRangeError) -> bool:
        """Whether nothing was read, and the first offset is behind all records.

        No state is at or above it, so to begin again would wait for ever.
        """
        bounds = failure.bounds
        return self.epoch < 0 and bounds is not None and self.offset > bounds.high_watermark

    def _evaluate(self, failure: Exception, address: str) -> None:
        """Continue at another node, begin again with the state, or raise."""
        if isinstance(failure, OffsetOutOfRangeError) and self._is_beyond_end(failure):
            raise failure
        if isinstance(failure, OffsetOutOfRangeError) and self._may_restart:
            self._least = max(self._least, self.offset)
            self.offset = self.epoch = -1
        elif isinstance(failure, ClientError) and not self._may_ask_again(failure, address):
            if not self._nodes.forgets_token(address, failure):
                raise self._nodes.explained(address, failure)
        elif not isinstance(failure, WatchLaggedError):
            self._caller.move_on(
                failure if isinstance(failure, ClientError) else UnavailableError("no message"),
                address,
            )
