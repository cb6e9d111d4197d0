"""Sparse index of one segment: from an offset to a batch start at or below it.

In memory it also holds the log digest before each indexed batch, so that the digest at any
boundary costs reading one index interval instead of the segment. The file format is Kafka's
``.index``: 8 bytes per entry, the last offset of a batch relative to the segment's base and the
position where that batch starts. The file has no checksum and is never trusted: it is written
when a segment is sealed, and every start rebuilds it from the scan.

See: docs/reference/formats.md#segment-and-index, KIP-98 (offset of a batch).
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import NamedTuple

from quorum.digest import LOG_DIGEST_BYTES
from quorum.errors import DiskFullError
from quorum.ports import FileSystem

ENTRY_BYTES = 8


class IndexEntry(NamedTuple):
    """A batch at ``position`` whose last offset is ``last_offset`` (inclusive, as in Kafka)."""

    last_offset: int
    position: int
    digest: bytes
    """Log digest before the batch; empty if unknown."""


class OffsetIndex:
    """Index entries, ascending by offset and position.

    The writer adds and cuts. Other threads may look up while it adds, but not while it cuts: an
    entry's offset is stored last, and lookups search by offset.
    """

    __slots__ = ("_base_offset", "_digests", "_last_offsets", "_positions")

    def __init__(self, base_offset: int) -> None:
        self._base_offset = base_offset
        self._last_offsets: array[int] = array("Q")
        self._positions: array[int] = array("I")
        self._digests = bytearray()

    def __len__(self) -> int:
        return len(self._last_offsets)

    def add(self, entry: IndexEntry) -> None:
        """Append an entry behind all others."""
        self._digests += entry.digest or bytes(LOG_DIGEST_BYTES)
        self._positions.append(entry.position)
        self._last_offsets.append(entry.last_offset)

    def floor(self, offset: int) -> IndexEntry | None:
        """Return the last entry whose batch ends at or below ``offset`` (inclusive), if any.

        If a segment's digests are unknown, the ``digest`` values have no meaning.
        """
        return self._entry(bisect_right(self._last_offsets, offset) - 1)

    def floor_position(self, position: int) -> int:
        """Return the highest indexed batch start at or below ``position``; 0 if there is none."""
        # Positions are added before offsets: search only entries whose offset is stored.
        number = bisect_right(self._positions, position, 0, len(self._last_offsets)) - 1
        return self._positions[number] if number >= 0 else 0

    def ceiling(self, position: int) -> IndexEntry | None:
        """Return the first entry whose batch starts at or behind ``position``, if any."""
        number = bisect_left(self._positions, position, 0, len(self._last_offsets))
        return self._entry(number) if number < len(self._last_offsets) else None

    def _entry(self, number: int) -> IndexEntry | None:
        if number < 0:
            return None
        start = number * LOG_DIGEST_BYTES
        return IndexEntry(
            self._last_offsets[number],
            self._positions[number],
            bytes(self._digests[start : start + LOG_DIGEST_BYTES]),
        )

    def cut(self, position: int) -> None:
        """Remove the entries of batches that start at or behind ``position``."""
        kept = bisect_right(self._positions, position - 1)
        del self._last_offsets[kept:]
        del self._positions[kept:]
        del self._digests[kept * LOG_DIGEST_BYTES :]

    def encode(self) -> bytes:
        """Return the index in Kafka's file format."""
        pairs: array[int] = array("I")
        for last_offset, position in zip(self._last_offsets, self._positions):
            pairs.append(last_offset - self._base_offset)
            pairs.append(position)
        if sys.byteorder == "little":
            pairs.byteswap()
        return pairs.tobytes()


def decode_index(data: bytes, base_offset: int) -> list[tuple[int, int]]:
    """Return last offset and position of each entry in Kafka's file format.

    Trailing zeros of a preallocated file are skipped, and so is an incomplete last entry.
    """
    pairs: array[int] = array("I")
    pairs.frombytes(data[: len(data) // ENTRY_BYTES * ENTRY_BYTES])
    if sys.byteorder == "little":
        pairs.byteswap()
    entries = zip(pairs[::2], pairs[1::2])
    return [
        (base_offset + relative, position) for relative, position in entries if relative or position
    ]


def write_index_file(fs: FileSystem, path: Path, index: OffsetIndex) -> bool:
    """Write Kafka's form of ``index``, unless the file has this content already.

    It is not synced, and it is removed on a full disk: nothing of ours depends on it.

    Returns:
        Whether the file was changed.
    """
    content = index.encode()
    file = fs.open(path, create=True, writable=True)
    try:
        if file.size() == len(content) and file.read_at(0, len(content)) == content:
            return False
        file.truncate(0)
        file.append(content)
    except DiskFullError:
        fs.unlink(path)
    finally:
        file.close()
    return True
