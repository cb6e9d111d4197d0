"""The metadata by a watch of the client: the whole state first, then every batch; see ADR 69."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import NamedTuple

from quorate.broker_agent.image_feed import ImageChange, ImageFeed
from quorate.broker_agent.metadata_source import MetadataStep
from quorate.client.results.metadata import ChangeBatch, StateChunk
from quorate.client.watch import Watch
from statemachine.codec import decode_record


class _Position(NamedTuple):
    """The header of a batch, as replay needs it."""

    base_offset: int
    end_offset: int
    epoch: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int


class WatchedLog:
    """Implements ``MetadataSource``: replays what a watch hands out. It keeps nothing on a disk."""

    def __init__(self, open_watch: Callable[[], Watch]) -> None:
        """``open_watch`` begins a watch with the state: ``Client.watch``."""
        self._open_watch = open_watch

    async def steps(self) -> AsyncGenerator[MetadataStep]:
        """Yield the state, and then every change; a state that is read anew replaces everything.

        Raises:
            LogTruncationError: A recovery or a restored backup has replaced what was yielded.
            ClientError: The watch was refused for good.
            RecordCodecError, UnknownRecordError, ReplayError: A record is newer than this release,
                or contradicts the others.
        """
        feed = ImageFeed()
        async for event in self._open_watch():
            if isinstance(event, StateChunk):
                # A large state takes seconds, in which heartbeats go on.
                await asyncio.to_thread(_load, feed, event)
                if event.is_last:
                    yield feed.finish_load(event.offset, event.epoch)
            elif (change := _taken(feed, event)) is not None:
                yield change


def _load(feed: ImageFeed, chunk: StateChunk) -> None:
    records = (decode_record(value) for value in chunk.records)
    feed.load(records, is_first=chunk.chunk == 0)


def _taken(feed: ImageFeed, batch: ChangeBatch) -> ImageChange | None:
    position = _Position(
        batch.base_offset,
        batch.end_offset,
        batch.epoch,
        batch.timestamp_ms,
        batch.producer_id,
        batch.producer_epoch,
        batch.sequence,
    )
    return feed.take_batch(
        position,
        [decode_record(value) for value in batch.records],
        [(each.name, each.value) for each in batch.headers],
        is_control=batch.is_control,
    )
