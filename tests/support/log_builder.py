"""Builds logs in tests from small batches with readable values, and lists the content of a log."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

from quorum.batch import encode_batch, record_values, scan_batches
from quorum.digest import EMPTY_LOG_DIGEST, fold
from quorum.log.config import LogConfig
from quorum.log.recovery import RecoveryReport, open_log
from quorum.log.segmented_log import SegmentedLog
from quorum.types import SnapshotId
from simulation.memory_filesystem import LOSE_ALL, CrashMode, MemoryFileSystem

HOME = Path("/node/__cluster_metadata-0")


def make_batch(base_offset: int, epoch: int, values: Sequence[bytes]) -> bytes:
    """One batch of ``values``."""
    return encode_batch(values, base_offset=base_offset, epoch=epoch, timestamp=base_offset)


class LogBench:
    """A log on a simulated disk, with short methods for tests."""

    def __init__(
        self,
        *,
        segment_bytes: int = 1 << 20,
        index_interval_bytes: int = 4096,
        scan_bytes: int = 1 << 20,
    ) -> None:
        self.fs = MemoryFileSystem()
        self.config = LogConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=index_interval_bytes,
            scan_bytes=scan_bytes,
        )
        self.snapshots: list[SnapshotId] = []
        self.log: SegmentedLog
        self.report: RecoveryReport
        self.open()

    def open(self, digest: Callable[[SnapshotId], bytes] | None = None) -> SegmentedLog:
        self.log, self.report = open_log(
            self.fs, HOME, self.config, snapshots=tuple(self.snapshots), snapshot_digest=digest
        )
        return self.log

    def crash(self, mode: CrashMode = LOSE_ALL, seed: int = 0) -> None:
        self.fs.crash(random.Random(seed), mode)

    def reopen(self, mode: CrashMode = LOSE_ALL, seed: int = 0) -> SegmentedLog:
        """Simulate a power failure and open the log again."""
        self.crash(mode, seed)
        return self.open()

    def append(self, epoch: int, *values: str, flush: bool = True) -> int:
        """Append one batch; returns its end offset."""
        base = self.log.end.offset
        data = make_batch(base, epoch, [value.encode() for value in values])
        self.log.append(data, base_offset=base, end_offset=base + len(values))
        if flush:
            self.log.flush()
        return base + len(values)

    def fill(self, epoch: int, count: int, *, size: int = 40, flush: bool = True) -> int:
        """Append ``count`` batches of one value each, all in one write."""
        base = self.log.end.offset
        data = b"".join(
            make_batch(offset, epoch, [f"{offset}".encode().ljust(size, b".")])
            for offset in range(base, base + count)
        )
        self.log.append(data, base_offset=base, end_offset=base + count)
        if flush:
            self.log.flush()
        return base + count

    def path(self, name: str) -> Path:
        return HOME / name

    def names(self) -> list[str]:
        return self.fs.list_directory(HOME)


def contents(log: SegmentedLog, max_bytes: int = 1 << 20) -> list[tuple[int, int, bytes]]:
    """(offset, epoch, value) of every record in the log."""
    found = []
    offset = log.start.offset
    while data := log.read(offset, max_bytes):
        for header in scan_batches(data):
            for number, value in enumerate(record_values(data, header)):
                if header.base_offset + number >= log.start.offset:
                    found.append((header.base_offset + number, header.epoch, bytes(value)))
            offset = header.end_offset
    return found


def chain_values(log: SegmentedLog) -> dict[int, bytes]:
    """The log digest at every batch boundary, computed from the bytes."""
    values = {0: EMPTY_LOG_DIGEST}
    digest, offset = EMPTY_LOG_DIGEST, 0
    while data := log.read(offset, 1):
        (header,) = scan_batches(data)
        digest = fold(digest, data)
        offset = header.end_offset
        values[offset] = digest
    return values
