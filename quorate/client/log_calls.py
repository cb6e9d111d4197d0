"""What a consumer of the log asks of a node, and the state that it gets in place of a gap."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import NamedTuple, Protocol

from quorate.client.batches import LogRecord
from quorate.client.results.metadata import (
    FetchLogResponse,
    ListOffsetsResponse,
    OffsetForLeaderEpochResponse,
    StateChunk,
)
from quorate.client.results.records import TypedRecord
from quorum.v1.metadata_pb2 import FetchLogRequest


class LogState(NamedTuple):
    """A state that replaces everything read before: all records below ``offset``, compacted.

    It is that of the node's lowest checkpoint at or above the position and the log start, or the
    present one if there is none. The record at ``offset`` is the next one read.
    """

    offset: int
    epoch: int
    chunk: int
    """Number of the part that the last poll returned, from 0. At 0, forget what was read before."""
    is_last: bool


def state_record(
    chunk: StateChunk, value: bytes | None, typed: TypedRecord | None = None
) -> LogRecord:
    """Return a record of a state, as the consumer hands it out."""
    return LogRecord(chunk.offset - 1, chunk.epoch, -1, None, value, (), is_state=True, typed=typed)


class LogCalls(Protocol):
    """The calls of a consumer; ``Client`` makes them."""

    async def fetch_log(self, request: FetchLogRequest) -> FetchLogResponse:
        """Return committed batches."""

    async def list_offsets(self, timestamp: int, *, leader_epoch: int = -1) -> ListOffsetsResponse:
        """Return an end of the log."""

    async def offset_for_leader_epoch(
        self, epoch: int, *, leader_epoch: int = -1, digest_offset: int | None = None
    ) -> OffsetForLeaderEpochResponse:
        """Return where an epoch ends, and the log digest at an offset; see the message."""

    def read_state(
        self, *, at_least_offset: int, of_checkpoint: bool, typed: bool
    ) -> AsyncGenerator[StateChunk]:
        """Yield one whole state at or above an offset, of a checkpoint; chunk 0 may come again."""
