"""Callers that wait until the published image has reached an offset."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from quorum.errors import CommandError, ErrorCode


class Wait:
    """One waiting caller. After ``cancel`` its callback is not called."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Forget the callback; nothing happens when it has been called already."""
        self.callback = None


class OffsetPurgatory:
    """Waits by offset, the lowest first. Owned by the controller's thread.

    Cancelled waits keep their place until their offset is reached or the table is full, so
    a caller that gives up costs nothing at the time.
    """

    def __init__(self, purgatory_max: int) -> None:
        self._purgatory_max = purgatory_max
        self._heap: list[tuple[int, int, Wait]] = []
        self._count = 0

    @property
    def is_empty(self) -> bool:
        """Whether no caller waits. A cancelled wait may still count."""
        return not self._heap

    def add(self, offset: int, callback: Callable[[], None]) -> Wait:
        """Call back once everything below ``offset`` is in the image.

        Raises:
            CommandError: RESOURCE_EXHAUSTED when too many are waiting.
        """
        if len(self._heap) >= self._purgatory_max:
            self._drop_cancelled()
            if len(self._heap) >= self._purgatory_max:
                raise CommandError(
                    ErrorCode.RESOURCE_EXHAUSTED,
                    f"{self._purgatory_max} calls already wait for an offset",
                )
        wait = Wait(callback)
        self._count += 1
        heapq.heappush(self._heap, (offset, self._count, wait))
        return wait

    def release(self, end_offset: int) -> None:
        """Call back all waits for ``end_offset`` or less, in order of offset."""
        heap = self._heap
        while heap and heap[0][0] <= end_offset:
            wait = heapq.heappop(heap)[2]
            if wait.callback is not None:
                wait.callback()

    def _drop_cancelled(self) -> None:
        self._heap = [entry for entry in self._heap if entry[2].callback is not None]
        heapq.heapify(self._heap)

    def __len__(self) -> int:
        return len(self._heap)
