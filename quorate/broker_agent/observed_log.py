"""The metadata of an observer in the agent's own process: its committed images, step by step.

The observer fetches, keeps a log and checkpoints, and applies what is committed; see ADR 78. Its
batches are replayed a second time here, because a change names the partitions that it touched.
Where there are no batches, because a checkpoint was fetched or the agent is behind, the two
images are compared: every difference is found, whatever lay between.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress
from typing import Final, Protocol

from quorate.broker_agent.errors import AgentError
from quorate.broker_agent.image_feed import ImageChange, ImageFeed, differing_partitions
from quorate.broker_agent.metadata_source import MetadataStep
from quorate.controller.publishing import Published, Subscriber
from quorum.batch import scan_batches
from quorum.errors import QuorateError
from statemachine.batches import decode_batch
from statemachine.image import MetadataImage

WAITING_STEPS_MAX: Final = 1_000
"""Steps of the image that wait for an agent that is busy; then images are compared instead."""
WAITING_BYTES_MAX: Final = 8 << 20
"""Bytes of batches in these steps."""
FAULT_CHECK_SECONDS: Final = 1.0
"""Time between two looks whether the observer still applies what is committed."""


class Observed(Protocol):
    """What is read of the observer; its ``Controller`` implements it."""

    fault: QuorateError | None

    @property
    def image(self) -> MetadataImage:
        """The committed and applied metadata."""

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Report each step of the image from now on, until the result is called."""


class ObservedLog:
    """Implements ``MetadataSource``. Used on the event loop of the observer."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed

    async def steps(self) -> AsyncGenerator[MetadataStep]:
        """Yield the present image, and then every change of it.

        Raises:
            AgentError: The observer cannot apply a committed record.
        """
        waiting = _Waiting()
        feed = ImageFeed(self._observed.image)
        unsubscribe = self._observed.subscribe(waiting.add)
        try:
            yield feed.image
            while True:
                self._check()
                if waiting.jump_to is not None:
                    before, after = feed.image, waiting.take_jump()
                    partitions = await asyncio.to_thread(differing_partitions, before, after)
                    feed.image = after
                    yield ImageChange(before, after, partitions)
                elif waiting.steps:
                    for change in _changes(feed, waiting.take_step()):
                        yield change
                else:
                    await waiting.wait(FAULT_CHECK_SECONDS)
        finally:
            unsubscribe()

    def _check(self) -> None:
        fault = self._observed.fault
        if fault is not None:
            raise AgentError(f"the observer in this process stopped to follow: {fault}") from fault


class _Waiting:
    """What was published and not taken yet: steps, or the image to jump to. Bounded."""

    def __init__(self) -> None:
        self.steps: deque[Published] = deque()
        self.jump_to: MetadataImage | None = None
        """Set in place of steps that are not known one by one, or are too many."""
        self._bytes = 0
        self._moved = asyncio.Event()

    def add(self, published: Published) -> None:
        """Take a step of the image."""
        self._bytes += sum(map(len, published.data))
        if (
            self.jump_to is not None
            or published.snapshot_id is not None
            or len(self.steps) == WAITING_STEPS_MAX
            or self._bytes > WAITING_BYTES_MAX
        ):
            self.steps.clear()
            self._bytes = 0
            self.jump_to = published.after
        else:
            self.steps.append(published)
        self._moved.set()

    def take_step(self) -> Published:
        """Return the oldest step; there is one."""
        published = self.steps.popleft()
        self._bytes -= sum(map(len, published.data))
        return published

    def take_jump(self) -> MetadataImage:
        """Return the image to jump to; there is one."""
        image, self.jump_to = self.jump_to, None
        assert image is not None  # noqa: S101 - the caller has looked
        return image

    async def wait(self, seconds: float) -> None:
        """Wait for something to take, for ``seconds`` at most."""
        self._moved.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._moved.wait()


def _changes(feed: ImageFeed, published: Published) -> Iterator[ImageChange]:
    """Yield the changes of one step; the last one ends at the image that was published.

    So what was replayed here is given up at the end of each step, and one image is in memory.
    """
    last: ImageChange | None = None
    for data in published.data:
        for header in scan_batches(data, verify_crc=False):
            if header.is_control:
                change = feed.take_batch(header, (), is_control=True)
            else:
                batch = decode_batch(data, header)
                change = feed.take_batch(header, batch.records, batch.headers)
            if change is not None:
                if last is not None:
                    yield last
                last = change
    feed.image = published.after
    if last is not None:
        yield last._replace(after=published.after)
