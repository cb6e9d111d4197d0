"""Headers of batches in the log's tail that the listener has not got yet.

Batches of a Fetch answer are read and verified when they arrive. Those of this leader come from the
encoder with their headers. The headers are kept here until the batches are committed and delivered,
so that the state machine need not read and verify the same bytes again.

Nothing depends on a header being here: without it, the listener reads the batches itself. That is
so after a restart, for batches that only the log's files have, and beyond the bounds below.

Owned by the event loop.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from quorum.batch import BatchHeader, VerifiedBatches

KEPT_BATCHES_MAX: Final = 8192
"""Batches whose headers are kept: about 4 MiB. A replica that delivers at once keeps hundreds."""
KEPT_BYTES_MAX: Final = 16 << 20
"""Bytes of those batches. They are usually in the tail anyway, which has a larger budget."""

_end_offset = attrgetter("end_offset")
_end_position = attrgetter("end_position")


class VerifiedTail:
    """Batches with their headers, in the order of offsets; there may be gaps between appends."""

    def __init__(
        self, batches_max: int = KEPT_BATCHES_MAX, bytes_max: int = KEPT_BYTES_MAX
    ) -> None:
        self._batches_max = batches_max
        self._bytes_max = bytes_max
        self._kept: deque[VerifiedBatches] = deque()
        self.batch_count = 0
        """Batches of all appends that are kept."""
        self.size_bytes = 0

    def append(self, data: bytes, headers: Sequence[BatchHeader]) -> None:
        """Keep the ``headers`` of all batches in ``data``, unless that exceeds the bounds."""
        if (
            headers
            and self.batch_count + len(headers) <= self._batches_max
            and self.size_bytes + len(data) <= self._bytes_max
        ):
            self._kept.append(VerifiedBatches(data, headers))
            self.batch_count += len(headers)
            self.size_bytes += len(data)

    def take(self, offset: int, max_bytes: int, end_offset: int) -> list[VerifiedBatches]:
        """Remove and return batches from ``offset`` on, up to ``end_offset``.

        Batches below ``offset`` are dropped.

        Returns:
            Contiguous batches: at least one, otherwise no more than ``max_bytes``. Empty if the
            headers of the batch at ``offset`` are not kept, or if it ends above ``end_offset``.
        """
        found: list[VerifiedBatches] = []
        kept = self._kept
        room = max_bytes
        while kept:
            first = kept[0]
            headers, start = first.headers, 0
            if headers[-1].end_offset <= offset:
                self._drop_first()
                continue
            if headers[0].base_offset < offset:
                start = bisect_right(headers, offset, key=_end_offset)
            if headers[start].base_offset != offset:
                break
            stop = self._stop(first, start, room, end_offset, at_least_one=not found)
            if stop == start:
                break
            whole = start == 0 and stop == len(headers)
            taken = headers if whole else headers[start:stop]
            found.append(VerifiedBatches(first.data, taken))
            offset = taken[-1].end_offset
            room -= taken[-1].end_position - taken[0].position
            if stop < len(headers):
                break
            self._drop_first()
        return found

    @staticmethod
    def _stop(
        kept: VerifiedBatches, start: int, room: int, end_offset: int, *, at_least_one: bool
    ) -> int:
        """Return the index behind the last batch that may be taken."""
        headers = kept.headers
        begin = headers[start].position
        stop = len(headers)
        if headers[-1].end_offset > end_offset:
            stop = bisect_right(headers, end_offset, start, key=_end_offset)
        if stop > start and headers[stop - 1].end_position - begin > room:
            fitting = bisect_right(headers, begin + room, start, stop, key=_end_position)
            stop = max(fitting, start + 1) if at_least_one else fitting
        return stop

    def truncate_to(self, end_offset: int) -> None:
        """Drop all batches that end above ``end_offset``."""
        kept = self._kept
        while kept and kept[-1].headers[-1].end_offset > end_offset:
            last = kept.pop()
            self._forget(last)
            stop = bisect_right(last.headers, end_offset, key=_end_offset)
            if stop:
                rest = VerifiedBatches(last.data, last.headers[:stop])
                self.append(rest.exact_bytes, rest.headers)

    def clear(self) -> None:
        """Drop everything."""
        self._kept.clear()
        self.batch_count = self.size_bytes = 0

    def _drop_first(self) -> None:
        self._forget(self._kept.popleft())

    def _forget(self, kept: VerifiedBatches) -> None:
        self.batch_count -= len(kept.headers)
        self.size_bytes -= len(kept.data)


def bytes_of(batches: Sequence[VerifiedBatches]) -> bytes:
    """Return the bytes of contiguous batches; without a copy if they are all of their ``data``."""
    parts = [each.exact_bytes for each in batches]
    return parts[0] if len(parts) == 1 else b"".join(parts)
