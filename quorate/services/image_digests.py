"""Digests of large images without blocking the event loop, at any request rate.

The digest of 60,000 partitions takes half a second of processor time. A thread takes that time from
the loop as well, because one interpreter runs one thread at a time. All callers therefore share one
digest at a time, computed in short chunks with pauses for the loop. Answers are paced as well:
otherwise sixty callers that repeat at once would fill the loop with calls that cost no digest.
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
"""Pause after each chunk, in seconds: the loop gets half of the time or more."""
ANSWERS_EVERY_S: Final = 0.25
"""Seconds after an answer during which new callers wait; all are answered at its end."""


class ImageDigests:
    """One per node. Owned by the event loop.

    Guarantee: at most one digest is computed at a time. It serves every caller that asked before it
    began. A thread cannot be stopped: a digest without a waiting caller is finished and kept. A
    caller is not delayed if no other was answered within the last ``ANSWERS_EVERY_S``.
    """

    def __init__(self, latest: Callable[[], tuple[MetadataImage, ReadPosition]]) -> None:
        self._latest = latest
        self._running: asyncio.Future[DigestedImage] | None = None
        self._last: DigestedImage | None = None
        self._next_answers_at = 0.0

    async def at_least(self, end_offset: int) -> DigestedImage:
        """Return an image with everything below ``end_offset``, its position and its digest."""
        await self._pause()
        return await self._found(end_offset)

    async def _pause(self) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._next_answers_at:
            self._next_answers_at = now + ANSWERS_EVERY_S
            return
        # All waiting callers wake together; the first caller after them does not wait.
        await asyncio.sleep(self._next_answers_at - now)

    async def _found(self, end_offset: int) -> DigestedImage:
        if self._running is not None:
            # Begun before this call: its image may be too old.
            await asyncio.wait({self._running})
        last = self._last
        if last is not None and last.image.provenance.end_offset >= end_offset:
            return last
        running = self._begin() if self._running is None else self._running
        # Shielded: cancelling one call must not cancel the digest that other calls wait for.
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
    """An image, its position when it was taken, and its digest."""

    image: MetadataImage
    position: ReadPosition
    digest: bytes
    taken_at: float
    """Time of the event loop, in seconds."""

    def position_at(self, now: float) -> ReadPosition:
        """Return the position with its age at ``now``."""
        position = ReadPosition()
        position.CopyFrom(self.position)
        if position.age_ms >= 0:
            position.age_ms += round((now - self.taken_at) * 1000)
        return position


def _digested(image: MetadataImage, position: ReadPosition, began: float) -> DigestedImage:
    return DigestedImage(image, position, digest_in_slices(image), began)


def digest_in_slices(image: MetadataImage) -> bytes:
    """Compute ``state_digest`` with pauses; call it on a separate thread."""
    digest = StateDigest()
    for count, value in enumerate(dump_values(image.at(Provenance())), start=1):
        digest.update(value)
        if count % SLICE_VALUES == 0:
            time.sleep(PAUSE_S)
    return digest.value()
