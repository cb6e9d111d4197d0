"""Follows the metadata log through the client's watch, from a state on; see ADR 69."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from quorate.broker_agent.commands import BrokerCommand
from quorate.broker_agent.derivation import CommandDerivation
from quorate.broker_agent.handler import CommandHandler, HistoryLost
from quorate.broker_agent.image_feed import ImageFeed
from quorate.client.errors import LogTruncationError
from quorate.client.results.metadata import ChangeBatch, StateChunk
from quorate.client.watch import Watch
from quorum.types import NodeId
from statemachine.codec import decode_record
from statemachine.image import MetadataImage


class _Position(NamedTuple):
    """The header of a batch, as replay needs it."""

    base_offset: int
    end_offset: int
    epoch: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int


class LogFollower:
    """One broker's reader of the log. ``execute`` gets each image and what follows from it."""

    def __init__(
        self,
        broker_id: NodeId,
        open_watch: Callable[[], Watch],
        execute: Callable[[MetadataImage, list[BrokerCommand]], Awaitable[None]],
        forget: Callable[[], None],
        handler: CommandHandler,
    ) -> None:
        """``forget`` is called when the log turns out to be another one."""
        self._open_watch = open_watch
        self._execute = execute
        self._forget = forget
        self._handler = handler
        self._feed = ImageFeed()
        self._derivation = CommandDerivation(broker_id)

    async def run(self) -> None:
        """Follow for ever; a state replaces everything before it.

        Raises:
            ClientError: The watch was refused for good.
            RecordCodecError, UnknownRecordError, ReplayError: A record is newer than this release,
                or contradicts the others.
        """
        while True:
            try:
                async for event in self._open_watch():
                    if isinstance(event, StateChunk):
                        await self._take_chunk(event)
                    else:
                        await self._take_batch(event)
            except LogTruncationError as error:
                # A recovery or a restored backup: what was executed may never have been.
                self._handler.report(HistoryLost(str(error)))
                self._forget()
                self._feed = ImageFeed()

    async def _take_chunk(self, chunk: StateChunk) -> None:
        # A large state takes seconds, in which heartbeats go on.
        await asyncio.to_thread(self._load, chunk)
        if chunk.is_last:
            image = self._feed.finish_load(chunk.offset, chunk.epoch)
            await self._execute(image, self._derivation.begin(image))

    def _load(self, chunk: StateChunk) -> None:
        records = (decode_record(value) for value in chunk.records)
        self._feed.load(records, is_first=chunk.chunk == 0)

    async def _take_batch(self, batch: ChangeBatch) -> None:
        position = _Position(
            batch.base_offset,
            batch.end_offset,
            batch.epoch,
            batch.timestamp_ms,
            batch.producer_id,
            batch.producer_epoch,
            batch.sequence,
        )
        change = self._feed.take_batch(
            position,
            [decode_record(value) for value in batch.records],
            [(each.name, each.value) for each in batch.headers],
            is_control=batch.is_control,
        )
        if change is not None:
            await self._execute(change.after, self._derivation.follow(change))
