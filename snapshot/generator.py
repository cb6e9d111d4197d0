"""Decide when a checkpoint is due, and write one in the background.

The decision is a pure function of counts. One write at a time runs on a worker thread. The
caller provides the values and ensures that the image ends on a batch boundary.

See: KIP-630, requirements 630.4, 630.16, 630.18, docs/architecture.md (A checkpoint).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from pathlib import Path

from quorum.errors import QuorumUsageError
from quorum.incarnation import FIRST_INCARNATION, LogIncarnation
from quorum.ports import Clock, FileSystem
from quorum.types import ReplicaKey, SnapshotId, TaggedFields, Voter
from snapshot.config import SnapshotConfig
from snapshot.writer import CheckpointInfo, Progress, write_checkpoint


@dataclass(frozen=True, slots=True)
class CheckpointTrigger:
    """The rule of 630.4: enough records changed *and* enough bytes written.

    An ``interval_ms``, if set, is a second condition that makes a checkpoint due.
    """

    min_changed_records_ratio: float = 0.5
    max_bytes_between: int = 20 << 20
    interval_ms: int | None = None

    @classmethod
    def from_config(cls, config: SnapshotConfig) -> CheckpointTrigger:
        """Return the trigger that ``config`` describes."""
        return cls(config.min_changed_records_ratio, config.max_bytes_between, config.interval_ms)

    def is_due(
        self,
        *,
        changed_records: int,
        snapshot_records: int,
        bytes_since: int,
        ms_since: int | None = None,
    ) -> bool:
        """Whether a checkpoint should be written now.

        ``changed_records`` are the records of the latest snapshot changed or deleted since,
        plus those added since and then changed or deleted, each once. ``snapshot_records`` is
        the number of data records in that snapshot, 0 if there is none: the ratio is then
        satisfied. ``bytes_since`` counts log bytes from that snapshot to the high
        watermark. ``ms_since`` is the age of that snapshot (or of the process) and matters
        only with an interval.
        """
        if bytes_since <= 0:
            return False
        if self.interval_ms is not None and ms_since is not None and ms_since >= self.interval_ms:
            return True
        if bytes_since < self.max_bytes_between:
            return False
        # A product instead of a quotient: an absent or empty snapshot satisfies it.
        return changed_records >= self.min_changed_records_ratio * snapshot_records


@dataclass(frozen=True, slots=True)
class CheckpointRequest:
    """Content of a checkpoint: an immutable image, as the record values of its canonical dump.

    ``values`` is iterated once, in the worker thread.
    """

    snapshot_id: SnapshotId
    values: Iterable[bytes]
    last_contained_log_timestamp: int
    log_digest: bytes = b""
    kraft_version: int = 0
    voters: tuple[Voter, ...] = ()
    state_digest: bytes | Callable[[], bytes] = b""
    tagged: TaggedFields = ()
    voters_tagged: TaggedFields = ()
    removed: tuple[ReplicaKey, ...] = ()
    """Tombstones of the voter set at the snapshot's position."""
    incarnation: LogIncarnation = FIRST_INCARNATION
    """That of the log at the snapshot's position."""
    reserve_bytes: int = 0
    """A write that would leave fewer free bytes in the directory fails as on a full disk."""


class CheckpointGenerator:
    """Writes checkpoints one at a time, in the caller's thread or a worker's.

    Owned by the controller's event loop, which alone calls ``start``; ``cancel`` and
    ``is_running`` may be called from any thread.

    Invariant: at most one write is under way.
    """

    def __init__(self, fs: FileSystem, directory: Path, clock: Clock) -> None:
        """Write into ``directory``, which must exist; ``clock`` measures durations."""
        self._fs = fs
        self._directory = directory
        self._clock = clock
        self._busy = threading.Lock()
        self._cancelled = threading.Event()
        self._last: CheckpointInfo | None = None

    @property
    def is_running(self) -> bool:
        """Whether a write is under way."""
        return self._busy.locked()

    @property
    def last(self) -> CheckpointInfo | None:
        """The newest checkpoint that this process wrote: id, size, duration (630.16)."""
        return self._last

    def cancel(self) -> None:
        """Stop a write under way at its next batch; its file is removed."""
        self._cancelled.set()

    def run(
        self, request: CheckpointRequest, *, progress: Progress | None = None
    ) -> CheckpointInfo:
        """Write and seal a checkpoint in the calling thread.

        Raises:
            QuorumUsageError: Another write is under way, or the content cannot be stored.
            CheckpointCancelled: ``cancel`` was called.
            StorageError: The disk failed, or is full (``DiskFullError``).
        """
        self._begin()
        return self._write(request, progress)

    def start(
        self,
        request: CheckpointRequest,
        executor: Executor,
        *,
        progress: Progress | None = None,
    ) -> Future[CheckpointInfo]:
        """Write and seal in a worker of ``executor`` while the node goes on applying (630.18).

        ``progress`` is called in the worker, after each batch. The future fails as ``run``.

        Raises:
            QuorumUsageError: Another write is under way, or the executor is shut down.
        """
        self._begin()
        try:
            future = executor.submit(self._write, request, progress)
        except RuntimeError as error:
            self._busy.release()
            raise QuorumUsageError(f"no worker for a checkpoint: {error}") from error
        # A future that is cancelled in the queue never runs the worker's release.
        future.add_done_callback(lambda done: self._busy.release() if done.cancelled() else None)
        return future

    def _begin(self) -> None:
        if not self._busy.acquire(blocking=False):
            raise QuorumUsageError("a checkpoint is being written already")
        self._cancelled.clear()

    def _write(self, request: CheckpointRequest, progress: Progress | None) -> CheckpointInfo:
        try:
            began_ms = self._clock.now_ms()
            info = write_checkpoint(
                self._fs,
                self._directory,
                request.snapshot_id,
                values=request.values,
                last_contained_log_timestamp=request.last_contained_log_timestamp,
                log_digest=request.log_digest,
                kraft_version=request.kraft_version,
                voters=request.voters,
                state_digest=request.state_digest,
                tagged=request.tagged,
                voters_tagged=request.voters_tagged,
                removed=request.removed,
                incarnation=request.incarnation,
                reserve_bytes=request.reserve_bytes,
                progress=progress,
                is_cancelled=self._cancelled.is_set,
            )
            info = replace(info, duration_ms=self._clock.now_ms() - began_ms)
            self._last = info
            return info
        finally:
            self._busy.release()


@dataclass(frozen=True, slots=True)
class SnapshotFigures:
    """The figures of 630.16 that describe a moment and are not timed."""

    count: int
    end_offset: int
    """End offset of the newest checkpoint; 0 if there is none."""
    size_bytes: int
    lag_records: int
    """Offsets between the newest checkpoint's end and the high watermark, never negative."""


def snapshot_figures(
    snapshots: tuple[SnapshotId, ...], newest_size_bytes: int, high_watermark: int
) -> SnapshotFigures:
    """Return the figures from ``SnapshotStore.list`` (ascending), the newest size and the log."""
    end_offset = snapshots[-1].offset if snapshots else 0
    return SnapshotFigures(
        len(snapshots),
        end_offset,
        newest_size_bytes if snapshots else 0,
        max(0, high_watermark - end_offset),
    )
