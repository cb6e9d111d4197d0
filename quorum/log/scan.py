"""Read a segment from its beginning, batch by batch, with checksums.

The scan stops at the first bytes that are not the next batch and reports why. ``damage`` decides
whether they are a torn tail or damage.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from crc32c import crc32c

from quorum.batch import HEADER_BYTES, BatchHeader, check_crc, peek_size, read_header
from quorum.batch_header import CRC_START
from quorum.errors import CorruptBatchError
from quorum.log.index import OffsetIndex
from quorum.log.segment_tail import SegmentTail, extend, join_problem
from quorum.ports import File
from quorum.types import EpochStart


@dataclass(slots=True)
class SegmentScan:
    """Content of a segment up to its end or its first invalid byte."""

    tail: SegmentTail
    index: OffsetIndex
    epochs: list[EpochStart] = field(default_factory=list)
    controls: dict[int, int] = field(default_factory=dict)
    """Position of every control batch, by base offset."""
    batch_count: int = 0
    digest_at_mark: bytes | None = None
    """Log digest at the requested offset; None if no batch ends there."""
    anchor: SegmentTail | None = None
    """Position from which on the digest is known again."""
    tails: dict[int, SegmentTail] = field(default_factory=dict)
    """State at every wanted offset at which a batch ends."""
    problem: CorruptBatchError | None = None
    """Why the scan stopped before the end of the file."""


def scan_segment(
    file: File,
    path: Path,
    start: SegmentTail,
    *,
    window_bytes: int,
    index_interval: int,
    mark: int = -1,
    wanted: Collection[int] = (),
    anchors: Mapping[int, bytes] | None = None,
    progress: Callable[[int], None] | None = None,
) -> SegmentScan:
    """Scan the batches of a segment file from its beginning.

    ``start`` is the state before it (position 0). ``mark`` is an offset whose digest to report,
    ``wanted`` are offsets whose whole state to report.
    ``anchors`` are digests by offset from other files: if the running digest is unknown, it is
    known from the first anchor on that lies at the end of a batch.
    ``progress`` receives the bytes done in this segment after each window.

    Raises:
        StorageError: The file could not be read.
    """
    scan = SegmentScan(start, OffsetIndex(start.end_offset))
    if mark == start.end_offset:
        scan.digest_at_mark = start.digest
    size = file.size()
    size_wanted = window_bytes
    while scan.tail.position < size and scan.problem is None:
        base = scan.tail.position
        window = memoryview(file.read_at(base, min(size_wanted, size - base)))
        if not window:
            break
        finder = _Finder(window, path, base, is_last=base + len(window) >= size)
        headers = finder.find(scan.tail)
        for run in _split_behind(headers, (mark, *wanted, *(anchors or ()))):
            extension = extend(scan.tail, window, run, index_interval=index_interval)
            scan.tail = extension.tail
            if anchors and not scan.tail.digest:
                _anchor(scan, anchors)
            scan.epochs += extension.epochs
            for entry in extension.entries:
                scan.index.add(entry)
            if scan.tail.end_offset == mark:
                scan.digest_at_mark = scan.tail.digest
            if scan.tail.end_offset in wanted:
                scan.tails[scan.tail.end_offset] = scan.tail
        scan.controls.update(
            [(each.base_offset, base + each.position) for each in headers if each.is_control]
        )
        scan.batch_count += len(headers)
        scan.problem = finder.problem
        size_wanted = max(window_bytes, finder.wanted)
        if progress is not None:
            progress(scan.tail.position)
    return scan


def _anchor(scan: SegmentScan, anchors: Mapping[int, bytes]) -> None:
    digest = anchors.get(scan.tail.end_offset)
    if digest:
        scan.tail = scan.anchor = scan.tail._replace(digest=digest)


def _split_behind(headers: list[BatchHeader], offsets: Iterable[int]) -> list[list[BatchHeader]]:
    """Split ``headers`` into runs, so that a run ends where a batch ends at one of ``offsets``."""
    if not headers:
        return []
    cuts = {
        bisect_left(headers, offset, key=lambda header: header.end_offset) + 1
        for offset in offsets
        if headers[0].base_offset < offset < headers[-1].end_offset
    }
    edges = [0, *sorted(cuts), len(headers)]
    return [headers[begin:end] for begin, end in pairwise(edges)]


class _Finder:
    """Finds the whole, valid batches at the start of one window of a segment."""

    def __init__(self, window: memoryview, path: Path, base: int, *, is_last: bool) -> None:
        self._window = window
        self._path = path
        self._base = base
        self._is_last = is_last
        self.problem: CorruptBatchError | None = None
        self.wanted = 0
        """Size of the batch at the end of the window, if the window is too small for it."""

    def find(self, tail: SegmentTail) -> list[BatchHeader]:
        """Return the batches that continue ``tail``; set ``problem`` or ``wanted`` at their end."""
        found: list[BatchHeader] = []
        window, path, base = self._window, self._path, self._base
        position, next_offset, epoch = 0, tail.end_offset, tail.epoch
        try:
            while position < len(window):
                header = read_header(window, position, path=path, base_position=base)
                after = position + header.size
                # Checked inline: the function that words the problem would double the cost.
                if crc32c(window[position + CRC_START : after]) != header.crc:
                    check_crc(window, header, path=path, base_position=base)
                if header.base_offset != next_offset or header.epoch < epoch:
                    cause = join_problem(header, next_offset, epoch)
                    raise CorruptBatchError(cause, path=path, position=base + position)
                found.append(header)
                next_offset, epoch, position = header.end_offset, header.epoch, after
        except CorruptBatchError as error:
            if not self._is_cut_by_window(position):
                self.problem = error
        return found

    def _is_cut_by_window(self, position: int) -> bool:
        if self._is_last:
            return False
        try:
            size = peek_size(self._window, position)
        except CorruptBatchError:
            return False
        self.wanted = HEADER_BYTES if size is None else size
        return size is None or position + size > len(self._window)
