"""Digests of large images without holding up the event loop, however often they are asked for.

Digesting 60,000 partitions takes half a second of processor time, which a thread takes from the
loop as well: one interpreter runs one of them at a time. So there is one digest at a time for all
who ask, in short slices with pauses that the loop can use. Answers are paced as well: sixty callers
who ask again at once would otherwise take the loop with calls that cost no digest.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from quorum.v1.metadata_pb2 import ReadPosition
from statemachine.dump import StateDigest, dump_values
from statemachine.image import MetadataImage, Provenance

SLICE_VALUES: Final = 100
"""Records digested without a pause: about a millisecond."""
PAUSE_S: Final = 0.001
"""Pause after each slice: the loop gets half of the time or more."""
ANSWERS_EVERY_S: Final = 0.25
"""All who ask within this time after an answer are answered at its end."""


class ImageDigests:
    """One per node. Owned by the event loop.

    Guarantee: at most one digest is computed at a time, and one serves everybody who asked before
    it was begun. A thread cannot be stopped: one that nobody waits for any more is finished, and
    its digest kept. Whoever asks when nobody was answered for ``ANSWERS_EVERY_S`` does not pause.
    """

    def __init__(self, latest: Callable[[], tuple[MetadataImage, ReadPosition]]) -> None:
        self._latest = latest
        self._running: asyncio.Future[DigestedImage] | None = None
        self._last: DigestedImage | None = None
        self._next_answers_at = 0.0

    async def at_least(self, end_offset: int) -> DigestedImage:
        """An image that has everything below ``end_offset``, its position and its digest."""
        await self._pause()
        return await self._found(end_offset)

    async def _pause(self) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._next_answers_at:
            self._next_answers_at = now + ANSWERS_EVERY_S
            return
        # All who wait wake together and go on; the first who asks after them waits for nobody.
        await asyncio.sleep(self._next_answers_at - now)

    async def _found(self, end_offset: int) -> DigestedImage:
        if self._running is not None:
            # Begun before this call: its image may be too old.
            await asyncio.wait({self._running})
        last = self._last
        if last is not None and last.image.provenance.end_offset >= end_offset:
            return last
        running = self._begin() if self._running is None else self._running
        # Waited for beside it: a call that is cancelled must not cancel what others wait for.
        await asyncio.wait({running})
        return running.result()

    def _begin(self) -> asyncio.Future[DigestedImage]:
        loop = asyncio.get_running_loop()
        image, position = self._latest()
        running = loop.run_in_executor(None, _digested, image, position, loop.time())
        self._running = running
        running.add_done_callback(self._keep)
        return running

    def _keep(self, done: asyncio.Future[DigestedImage]) -> None:
        self._running = None
        if not done.cancelled() and done.exception() is None:
            self._last = done.result()


@dataclass(frozen=True, slots=True)
class DigestedImage:
    """An image, where it stood when it was taken, and its digest."""

    image: MetadataImage
    position: ReadPosition
    digest: bytes
    taken_at: float
    """The event loop's time."""

    def position_at(self, now: float) -> ReadPosition:
        """The position, as old as it is by ``now``."""
        position = ReadPosition()
        position.CopyFrom(self.position)
        if position.age_ms >= 0:
            position.age_ms += round((now - self.taken_at) * 1000)
        return position


def _digested(image: MetadataImage, position: ReadPosition, began: float) -> DigestedImage:
    return DigestedImage(image, position, digest_in_slices(image), began)


def digest_in_slices(image: MetadataImage) -> bytes:
    """``state_digest``, with pauses; to be called on a thread of its own."""
    digest = StateDigest()
    for count, value in enumerate(dump_values(image.at(Provenance())), start=1):
        digest.update(value)
        if count % SLICE_VALUES == 0:
            time.sleep(PAUSE_S)
    return digest.value()
