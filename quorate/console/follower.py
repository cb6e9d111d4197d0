"""Follows a cluster through the client library: its watch, its quorum, its features.

One watch and one small question in ``QUORUM_SECONDS`` are all that the nodes answer, however many
people look at the console. Records are replayed on a worker thread.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from quorate.client import (
    Client,
    ClientError,
    LogPosition,
    NotServedError,
    OffsetOutOfRangeError,
    UnavailableError,
)
from quorate.client.results.admin import DescribeFeaturesResponse, DescribeQuorumResponse
from quorate.client.watch import Watch, WatchEvent
from quorate.console.image_feed import ImageFeed
from quorate.console.index import Index
from quorate.console.terms import find_terms
from quorate.console.voter_changes import find_voter_changes
from quorum.errors import QuorateError
from quorum.v1.metadata_pb2 import FetchLogRequest

QUORUM_SECONDS: Final = 2.0
"""How often the quorum is asked how it is."""
ANSWER_SECONDS_MAX: Final = 10.0
"""With no newer answer than this, nobody answers. A node that hangs delays one by five seconds."""
FEATURES_SECONDS: Final = 10.0
WHOLE_LOG_MAX: Final = 200_000
"""A log with at most so many records is read from its beginning, for the history."""
_EVENTS_MAX: Final = 512
_RETRY_SECONDS: Final = 2.0

logger = logging.getLogger(__name__)

Explain: TypeAlias = Callable[[], Awaitable[str]]
"""Why no node can be reached, in words; empty if one can."""


class Led(NamedTuple):
    """A leader was known in ``epoch``, and last at ``time_ms`` by the clock of who answered."""

    epoch: int
    time_ms: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What the cluster last said about its quorum."""

    quorum: DescribeQuorumResponse
    at: float
    """When, by ``time.monotonic``."""
    led: Led | None = None
    """The last leadership that an answer named; of this answer, if somebody leads."""


class Follower:
    """What is known of a cluster. ``run`` keeps it up to date; any thread may read its fields."""

    def __init__(self, client: Client, index: Index, explain: Explain | None = None) -> None:
        self._client = client
        self._explain = explain
        self._index = index
        self.feed = ImageFeed(index)
        self.quorum: Answer | None = None
        self.features: DescribeFeaturesResponse | None = None
        self.problems: dict[str, str] = {}
        """Why something could not be read just now: by what it is."""
        self._known_terms: set[int] = set()
        self.loaded = asyncio.Event()
        """Set once the first state is there."""

    async def run(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._again("the watch", self._watch, _RETRY_SECONDS))
            tasks.create_task(self._again("the quorum", self._ask_quorum, QUORUM_SECONDS))
            tasks.create_task(self._again("leadership", self._find_terms, QUORUM_SECONDS))
            tasks.create_task(self._again("voters", self._find_voter_changes, QUORUM_SECONDS))
            tasks.create_task(self._again("the features", self._ask_features, FEATURES_SECONDS))

    async def _again(self, name: str, ask: Callable[[], Awaitable[None]], seconds: float) -> None:
        while True:
            try:
                await ask()
                self.problems.pop(name, None)
            except (ClientError, QuorateError) as error:
                text = await self._words(error)
                if text not in self.problems.values():
                    # One cause is one line, though it stops all five.
                    logger.warning("cannot read %s: %s", name, text)
                self.problems[name] = text
            await asyncio.sleep(seconds)

    async def _words(self, error: ClientError | QuorateError) -> str:
        if self._explain is None or not isinstance(error, UnavailableError | NotServedError):
            return str(error)
        return await self._explain() or str(error)

    async def _ask_quorum(self) -> None:
        answer = await self._client.describe_quorum(from_leader=True)
        led = None if self.quorum is None else self.quorum.led
        if answer.leader_id >= 0:
            led = Led(answer.leader_epoch, answer.timestamp_ms)
        self.quorum = Answer(answer, time.monotonic(), led)

    async def _find_terms(self) -> None:
        answer = self.quorum
        if not self.loaded.is_set() or answer is None or answer.quorum.leader_epoch < 1:
            return
        if answer.quorum.leader_epoch in self._known_terms:
            return
        found = await find_terms(
            self._client, answer.quorum.leader_epoch, frozenset(self._known_terms)
        )
        if found:
            await asyncio.to_thread(self.feed.take_terms, found)
        self._known_terms.update(each.epoch for each in found)

    async def _find_voter_changes(self) -> None:
        offsets, feed = self.feed.control_offsets, self.feed
        count = len(offsets)
        found = await find_voter_changes(
            self._client, list(islice(offsets, count)), feed.newest_voters
        )
        if found:
            await asyncio.to_thread(feed.take_voter_changes, found)
        for _ in range(count):
            offsets.popleft()

    async def _ask_features(self) -> None:
        self.features = await self._client.describe_features()

    async def _watch(self) -> None:
        events = aiter(await self._open())
        waiting: asyncio.Queue[WatchEvent] = asyncio.Queue(_EVENTS_MAX)

        async def read() -> None:
            async for event in events:
                await waiting.put(event)

        reader = asyncio.create_task(read())
        try:
            while True:
                await self._take(waiting, reader)
        finally:
            reader.cancel()
            with suppress(asyncio.CancelledError, ClientError):
                await reader
            await events.aclose()

    async def _take(self, waiting: asyncio.Queue[WatchEvent], reader: asyncio.Task[None]) -> None:
        first = asyncio.create_task(waiting.get())
        try:
            await asyncio.wait((first, reader), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            first.cancel()
            raise
        if not first.done():
            first.cancel()
            reader.result()
            return
        batch = [first.result()]
        while not waiting.empty():
            batch.append(waiting.get_nowait())
        await asyncio.to_thread(self.feed.take, batch)
        self.problems.pop("the watch", None)
        if self.feed.image is not None:
            self.loaded.set()

    async def _open(self) -> Watch:
        """From the log's beginning if that is near: the history is whole then. Else a state."""
        try:
            head = await self._client.fetch_log(FetchLogRequest(offset=0, max_bytes=1))
        except OffsetOutOfRangeError:
            return self._client.watch()
        if head.log_start_offset == 0 and 0 < head.high_watermark <= WHOLE_LOG_MAX:
            await asyncio.to_thread(self.feed.begin_empty)
            return self._client.watch(position=LogPosition(0))
        return self._client.watch()
