"""Side files of one log and their updates.

On a full disk, index and watermark files may lag, and the epoch file is removed. Index and epochs
can be derived from the segments, and the watermarks are lower bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quorum.errors import DiskFullError
from quorum.log.epoch_file import EpochFile
from quorum.log.high_watermark_file import HighWatermarkFile, Watermarks
from quorum.log.index import write_index_file
from quorum.log.layout import INDEX_SUFFIX, segment_path
from quorum.log.log_start_file import LogStartFile
from quorum.log.segment import Segment
from quorum.log.segment_tail import SegmentTail
from quorum.ports import FileSystem
from quorum.types import ZERO_UUID, EpochStart, OffsetAndEpoch, Uuid


@dataclass(frozen=True, slots=True)
class LogFiles:
    """Side files of one partition directory. Owned by the writer thread."""

    fs: FileSystem
    directory: Path
    start: LogStartFile
    epochs: EpochFile
    watermarks: HighWatermarkFile

    @staticmethod
    def open(fs: FileSystem, directory: Path, owner: Uuid = ZERO_UUID) -> LogFiles:
        """Open the files in ``directory`` of disk ``owner``; only the watermarks stay open."""
        return LogFiles(
            fs,
            directory,
            LogStartFile(fs, directory),
            EpochFile(fs, directory),
            HighWatermarkFile(fs, directory, owner),
        )

    @property
    def marks(self) -> Watermarks:
        """The bounds stored last."""
        return self.watermarks.marks

    def save_epochs(self, epochs: Sequence[EpochStart]) -> bool:
        """Store the epoch history; return False if there is no space: the file is then removed.

        Raises:
            StorageError: An older history may be on disk; the caller must stop.
        """
        try:
            self.epochs.save(epochs)
        except DiskFullError:
            # What was cut could contradict later epochs. A missing file contradicts nothing.
            self.epochs.remove()
            return False
        return True

    def raise_durable_end(self, tail: SegmentTail) -> None:
        """Record that the log is durable up to ``tail``; the record itself is not durable."""
        end_offset, epoch, _, digest, _ = tail
        marks = self.watermarks.marks
        if marks.durable_offset == end_offset:
            return
        try:
            self.watermarks.store(Watermarks(marks.high_watermark, end_offset, epoch, digest))
        except DiskFullError:
            # Older bounds remain in one file or both, and are still valid.
            return

    def lower_durable_end(self, end: OffsetAndEpoch, digest: bytes) -> None:
        """Lower all stored bounds to ``end`` durably, before the log is cut to it.

        Raises:
            StorageError: The log may not be cut.
        """
        if self.marks.durable_offset > end.offset:
            high_watermark = min(self.marks.high_watermark, end.offset)
            self.watermarks.store_durably(Watermarks(high_watermark, end.offset, end.epoch, digest))

    def write_index(self, segment: Segment) -> bool:
        """Update a segment's index file; return whether it changed."""
        path = segment_path(self.directory, segment.base_offset, INDEX_SUFFIX)
        return write_index_file(self.fs, path, segment.index)

    def drop_index(self, segment: Segment) -> None:
        """Remove the index file of a segment that was cut or is about to grow."""
        self.fs.unlink(segment_path(self.directory, segment.base_offset, INDEX_SUFFIX))
