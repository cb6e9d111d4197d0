"""The metadata by a watch of the client: the whole state first, then every batch; see ADR 69."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

from quorate.broker_agent.image_feed import ImageChange, ImageFeed
from quorate.broker_agent.metadata_source import MetadataStep
from quorate.client.results.metadata import ChangeBatch, StateChunk
from quorate.client.watch import Watch
from quorate.watched_batch import header_of, record_headers_of, records_of
from statemachine.codec import decode_record


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
    return feed.take_batch(
        header_of(batch),
        records_of(batch),
        record_headers_of(batch),
        is_control=batch.is_control,
    )
