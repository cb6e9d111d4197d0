"""The production consumer, reading a data partition of the laboratory.

It asks one broker at a time, through the production service of log reads.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, cast

from quorate.client.batches import LogRecord
from quorate.client.caller import may_ask_again
from quorate.client.errors import OffsetOutOfRangeError, RefusedError, UnavailableError
from quorate.client.log_consumer import LogConsumer, ResetPolicy
from quorate.client.results import metadata as results
from quorate.services.admission import Gate
from quorate.services.errors import RequestRefusedError
from quorate.services.log_reads import LogReads
from quorate.services.ports import ServedNode
from quorum.errors import ErrorCode
from quorum.log_position import LogPosition
from quorum.types import NodeId
from quorum.v1.errors_pb2 import LeaderHint
from quorum.v1.metadata_pb2 import (
    FetchLogRequest,
    FetchLogResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from simulation.laboratory.laboratory import Laboratory


class PartitionConsumer:
    """A consumer of one topic. ``asks`` is the broker it asks; None: the leader."""

    def __init__(
        self,
        laboratory: Laboratory,
        topic: str,
        *,
        reset: ResetPolicy = ResetPolicy.NONE,
        position: LogPosition | None = None,
    ) -> None:
        self._laboratory = laboratory
        self._topic = topic
        self._reset = reset
        self.asks: NodeId | None = None
        self.consumer = self._made(position or LogPosition(0))

    def _made(self, position: LogPosition) -> LogConsumer:
        return LogConsumer(self, reset=self._reset, position=position)

    @property
    def position(self) -> LogPosition:
        """Where it reads next."""
        # It never has none: it begins at offset 0.
        return self.consumer.position or LogPosition(0)

    def poll(self) -> list[LogRecord]:
        """Return what one poll returns.

        Raises:
            ClientError: As ``LogConsumer.poll``.
        """
        records: list[LogRecord] = at_once(self.consumer.poll(max_wait_ms=0))
        return records

    def restart(self) -> None:
        """Go on as a new process, from the stored position."""
        self.consumer = self._made(LogPosition.from_json(self.position.to_json()))

    # ------------------------------------------------------------------ its calls

    async def fetch_log(self, request: FetchLogRequest) -> results.FetchLogResponse:
        """As ``Queries.fetch_log``."""
        found: FetchLogResponse = await self._ask(lambda reads: reads.fetch(request, "consumer"))
        return results.FetchLogResponse.of(found)

    async def list_offsets(
        self, timestamp: int, *, leader_epoch: int = -1
    ) -> results.ListOffsetsResponse:
        """As ``Queries.list_offsets``."""
        request = ListOffsetsRequest(timestamp=timestamp, current_leader_epoch=leader_epoch)
        found: ListOffsetsResponse = await self._ask(lambda reads: reads.list_offsets(request))
        return results.ListOffsetsResponse.of(found)

    async def offset_for_leader_epoch(
        self, epoch: int, *, leader_epoch: int = -1, digest_offset: int | None = None
    ) -> results.OffsetForLeaderEpochResponse:
        """As ``Queries.offset_for_leader_epoch``."""
        request = OffsetForLeaderEpochRequest(
            leader_epoch=epoch, current_leader_epoch=leader_epoch, digest_offset=digest_offset
        )
        found: OffsetForLeaderEpochResponse = await self._ask(
            lambda reads: reads.offset_for_leader_epoch(request)
        )
        return results.OffsetForLeaderEpochResponse.of(found)

    async def read_state(
        self, *, at_least_offset: int, of_checkpoint: bool, typed: bool
    ) -> AsyncGenerator[results.StateChunk]:
        """Yield an empty state at the log start: a data partition has no checkpoints."""
        del of_checkpoint, typed
        leader = self._laboratory.leader(self._topic)
        if leader is None:
            raise UnavailableError("no leader")
        start = leader.log_start
        offset = max(start.offset, at_least_offset)
        yield results.StateChunk(
            offset=offset,
            epoch=start.epoch,
            chunk=0,
            is_last=True,
            log_digest=leader.log.digest_at(offset),
        )

    async def _ask(self, ask: Callable[[LogReads], Awaitable[Any]]) -> Any:
        laboratory = self._laboratory
        if self.asks is None:
            replica = laboratory.leader(self._topic)
        else:
            is_running = laboratory.brokers[self.asks].is_running
            replica = laboratory.replica(self._topic, self.asks) if is_running else None
        if replica is None:
            raise UnavailableError("no broker can be asked")
        try:
            return await ask(LogReads(cast("ServedNode", replica), Gate("fetches", 1)))
        except RequestRefusedError as error:
            raise _refusal(error) from error


def _refusal(error: RequestRefusedError) -> Exception:
    """Return the error that the client library raises for a refusal."""
    leader = next((each for each in error.details if isinstance(each, LeaderHint)), None)
    refused = RefusedError(int(error.code), str(error), leader=leader)
    if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
        return OffsetOutOfRangeError(str(error))
    return UnavailableError(str(error)) if may_ask_again(refused) else refused


def at_once(answer: Awaitable[Any]) -> Any:
    """Return the result of an awaitable that never waits.

    Raises:
        AssertionError: It waits.
    """
    try:
        answer.__await__().send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("a call waits, although nothing happens by itself")
