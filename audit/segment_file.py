"""Read a segment file batch by batch with only the standard library and crc32c.

For executors, which load nothing of ``quorum.log``. A read begins at the nearest entry of the plan.
From there on every batch is verified: its checksum, and that it follows the previous one. The log
digest is computed on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from crc32c import crc32c

from audit.plan import Entry, ReadPlan, SegmentFile
from quorum.batch import BatchHeader, check_crc, peek_size, read_header
from quorum.batch_header import CRC_START
from quorum.digest import fold
from quorum.errors import CorruptBatchError, StorageError

WINDOW_BYTES = 1 << 20
"""Bytes of a file read at once."""


class FoundBatch(NamedTuple):
    """One batch: ``header.position`` is its position in ``data``, ``position`` that in the file."""

    data: bytes
    header: BatchHeader
    position: int
    digest: bytes
    """Log digest at its end; empty if not known."""
    path: str

    @property
    def base_position(self) -> int:
        """The position of ``data`` in the file."""
        return self.position - self.header.position


def read_segment(segment: SegmentFile) -> Iterator[FoundBatch]:
    """Yield the batches with a record in the segment's range, in order.

    Raises:
        CorruptBatchError: A batch is damaged, torn, or does not follow; the message names file,
            position and cause.
        StorageError: The file cannot be read, or ends before the range does.
    """
    entry = segment.entry(segment.start_offset)
    expected = _Follower(segment, entry)
    try:
        with Path(segment.path).open("rb") as file:
            file.seek(entry.position)
            for window, position in _windows(file, segment.path, entry.position):
                for header in expected.follow(window, position):
                    if header.end_offset > segment.start_offset:
                        yield FoundBatch(
                            window,
                            header,
                            position + header.position,
                            expected.digest,
                            segment.path,
                        )
                    if header.end_offset >= segment.end_offset:
                        return
    except OSError as error:
        raise StorageError(f"cannot read: {error.strerror}", segment.path) from error
    if expected.next_offset < segment.end_offset:
        raise StorageError(
            f"ends at offset {expected.next_offset}, but the plan needs {segment.end_offset}; "
            "was the log truncated meanwhile?",
            segment.path,
        )


class _Follower:
    """Verifies that batches follow one another, and computes the digest."""

    def __init__(self, segment: SegmentFile, entry: Entry) -> None:
        self._path = segment.path
        self.next_offset = entry.offset
        self._epoch = segment.epoch
        self.digest = entry.digest

    def follow(self, window: bytes, base: int) -> Iterator[BatchHeader]:
        """Yield every verified batch of a window that holds whole batches."""
        position = 0
        view = memoryview(window)
        while position < len(window):
            header = read_header(window, position, path=self._path, base_position=base)
            after = position + header.size
            # Checked inline: the function that words the problem would double the cost.
            if crc32c(view[position + CRC_START : after]) != header.crc:
                check_crc(window, header, path=self._path, base_position=base)
            if header.base_offset != self.next_offset or header.epoch < self._epoch:
                raise CorruptBatchError(
                    f"base offset {header.base_offset}, epoch {header.epoch}; expected offset "
                    f"{self.next_offset} of epoch {self._epoch} or later",
                    path=self._path,
                    position=base + position,
                )
            self.next_offset, self._epoch = header.end_offset, header.epoch
            if self.digest:
                self.digest = fold(self.digest, view[position:after])
            yield header
            position = after


def _windows(file: BinaryIO, path: str, base: int) -> Iterator[tuple[bytes, int]]:
    """Yield the file from ``base`` on, where it stands, in chunks of whole batches with their
    positions; a torn batch comes last.
    """
    wanted = WINDOW_BYTES
    carried = b""
    while True:
        read = file.read(wanted)
        data = carried + read
        end = _whole_batches_end(data, path, base) if read else len(data)
        if end:
            yield data[:end], base
        if not read:
            return
        carried = data[end:]
        base += end
        size = peek_size(carried, path=path, base_position=base)
        wanted = max(WINDOW_BYTES, (size or 0) - len(carried))


def _whole_batches_end(data: bytes, path: str, base: int) -> int:
    """Return the end of the last whole batch; damage counts as whole and is found by the reader."""
    position = 0
    while True:
        try:
            size = peek_size(data, position, path=path, base_position=base)
        except CorruptBatchError:
            return len(data)
        if size is None or position + size > len(data):
            return position
        position += size


def digests_at(plan: ReadPlan, offsets: Iterable[int]) -> dict[int, bytes]:
    """Return the log digests below offsets; without those not known or not at a batch's end.

    Reads each segment once, as far as needed.

    Raises:
        CorruptBatchError, StorageError: As ``read_segment``.
    """
    wanted = set(offsets)
    found: dict[int, bytes] = {}
    for segment in plan.segments:
        if not segment.digest:
            continue
        if segment.base_offset in wanted:
            found[segment.base_offset] = segment.digest
        inside = [each for each in wanted if segment.base_offset < each <= segment.end_offset]
        if inside:
            last = max(inside)
            for batch in read_segment(segment):
                if batch.header.end_offset in wanted:
                    found[batch.header.end_offset] = batch.digest
                if batch.header.end_offset >= last:
                    break
    return found


def digest_at(plan: ReadPlan, offset: int) -> bytes:
    """Return the log digest below ``offset``; empty if not known or not the end of a batch.

    Raises:
        CorruptBatchError, StorageError: As ``read_segment``.
    """
    return digests_at(plan, (offset,)).get(offset, b"")
