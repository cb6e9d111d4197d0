"""Open the log after any crash: from the files found to a ``SegmentedLog``.

Every start scans every segment with checksums, rebuilds indexes and epoch history, and verifies
the digest chain. So only data that was read back is served or acknowledged. A torn tail is cut;
interrupted removals and replacements are finished. Any other error is reported as damage, and
its files are left untouched.

See: ADR 5, 7 and 20; requirements 630.9, 630.14, 279.5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from quorum.digest import EMPTY_LOG_DIGEST
from quorum.errors import LogDamagedError, QuorumUsageError
from quorum.log.chain import ChainOpener, Progress
from quorum.log.config import LogConfig
from quorum.log.damage import keep_copy
from quorum.log.high_watermark_file import Watermarks
from quorum.log.history import clip_start
from quorum.log.identity import check_partition_metadata, write_partition_metadata
from quorum.log.layout import (
    INDEX_SUFFIX,
    PARTITION_METADATA_NAME,
    segment_bases,
    segment_path,
)
from quorum.log.log_files import LogFiles
from quorum.log.log_start_file import LogStart
from quorum.log.retention import (
    covered_bases,
    create_segment,
    finish_replacement,
    remove_covered,
    remove_leftovers,
)
from quorum.log.segment_tail import SegmentTail
from quorum.log.segmented_log import SegmentedLog
from quorum.ports import FileSystem
from quorum.types import (
    LOG_BEGINNING,
    ZERO_UUID,
    Epoch,
    EpochStart,
    OffsetAndEpoch,
    SnapshotId,
    Uuid,
)


@dataclass(slots=True)
class RecoveryReport:
    """What opening the log found and did. All zero or empty: no repair was necessary."""

    start: OffsetAndEpoch = LOG_BEGINNING
    end: OffsetAndEpoch = LOG_BEGINNING
    high_watermark: int = 0
    """Lower bound of the committed offset, within the log."""
    scanned_segments: int = 0
    scanned_bytes: int = 0
    torn_bytes: int = 0
    """Bytes cut off behind the last whole batch."""
    torn_cause: str = ""
    restored_start: str = ""
    """Error of the stored log start, if the newest checkpoint's position replaced it."""
    finished_replacement: SnapshotId | None = None
    """The snapshot that replaced the log: its plan was found, or it was newer."""
    rebuilt: list[str] = field(default_factory=list)
    """Names of side files that were missing, damaged or behind the log, and were rewritten."""


def open_log(
    fs: FileSystem,
    directory: Path,
    config: LogConfig | None = None,
    *,
    snapshots: Sequence[SnapshotId] = (),
    snapshot_digest: Callable[[SnapshotId], bytes] | None = None,
    epoch_max: Epoch | None = None,
    owner: Uuid = ZERO_UUID,
    rebuilt: list[str] | None = None,
    progress: Progress | None = None,
) -> tuple[SegmentedLog, RecoveryReport]:
    """Open the partition directory; create it if it does not exist.

    ``snapshots`` are the sealed checkpoints in it, ascending. ``snapshot_digest`` returns the
    log digest in a checkpoint's header (empty if it has none); it is called only if the log is
    replaced. ``epoch_max`` is the epoch of ``quorum-state``, which is durable before its records.
    So a batch of a later epoch is damaged, even with a valid checksum (which does not cover the
    epoch). None: unknown. ``owner`` is the disk's directory id: bounds of another disk do not
    count. ``rebuilt`` receives the names of rewritten side files, also if the opening then fails;
    it becomes the report's.

    Durability: everything in the returned log is on disk.

    Raises:
        LogDamagedError: Damage that a crash cannot explain; it was not touched. See
            ``damage.quarantine``.
        IdentityDamagedError: ``partition.metadata`` is malformed or of another topic.
        StorageError: The environment failed.
        ConfigError: ``config`` is invalid.
    """
    config = config or LogConfig()
    config.validate()
    fs.make_directory(directory)
    is_new = not segment_bases(fs.list_directory(directory)) and not epoch_max
    report = RecoveryReport(rebuilt=[] if rebuilt is None else rebuilt)
    if not check_partition_metadata(fs, directory):
        write_partition_metadata(fs, directory)
        report.rebuilt += () if is_new else (PARTITION_METADATA_NAME,)
    files = LogFiles.open(fs, directory, owner)
    report.rebuilt += () if is_new else files.watermarks.repaired
    recovery = _Recovery(
        files, config, snapshots, snapshot_digest or _no_digest, epoch_max, progress, report
    )
    try:
        return recovery.run(), report
    except BaseException:
        recovery.close()
        raise


def _no_digest(_: SnapshotId) -> bytes:
    return b""


class _Recovery:
    """One opening, step by step. Each step adds to ``report``."""

    def __init__(
        self,
        files: LogFiles,
        config: LogConfig,
        snapshots: Sequence[SnapshotId],
        snapshot_digest: Callable[[SnapshotId], bytes],
        epoch_max: Epoch | None,
        progress: Progress | None,
        report: RecoveryReport,
    ) -> None:
        self._files = files
        self._fs = files.fs
        self._directory = files.directory
        self._config = config
        self._newest_snapshot = max(
            snapshots, key=lambda taken: (taken.epoch, taken.offset), default=LOG_BEGINNING
        )
        self._highest_snapshot = max((taken.offset for taken in snapshots), default=0)
        self._snapshot_digest = snapshot_digest
        self._opener = ChainOpener(
            files.fs,
            files.directory,
            config,
            marks=files.marks,
            anchors=lambda: {taken.offset: self._snapshot_digest(taken) for taken in snapshots},
            epoch_max=epoch_max,
            progress=progress,
        )
        self._chain = self._opener.chain
        self._chain.rebuilt = report.rebuilt
        self.report = report

    def run(self) -> SegmentedLog:
        try:
            stored = self._files.start.load() or LogStart()
        except LogDamagedError as damage:
            return self._run_without_start(damage)
        self._check_snapshots(stored.start)
        remove_leftovers(self._fs, self._directory)
        if stored.is_replacing:
            self._replace(stored)
            return self._finish(stored.start)
        self._open_segments(stored)
        if self._is_replaced_by_snapshot():
            return self._replace_by_snapshot()
        self._check_start(stored.start)
        return self._finish(stored.start)

    def _run_without_start(self, damage: LogDamagedError) -> SegmentedLog:
        """Open the log with the newest checkpoint's position in place of a corrupt log start.

        The position is never below the lost start (630.14), and the checkpoint contains all records
        below it. The plan of an unfinished replacement is lost too; a checkpoint newer than the
        log then replaces the log again.

        Raises:
            LogDamagedError: ``damage``, if no checkpoint fits the log.
        """
        bases = segment_bases(self._fs.list_directory(self._directory))
        newest = self._newest_snapshot
        # After power loss, partly removed segments may leave gaps.
        covered = covered_bases(bases, newest.offset)
        bases = bases[len(covered) :]
        if not bases or bases[0] > newest.offset:
            raise damage
        remove_leftovers(self._fs, self._directory)
        is_first = bases[0] == newest.offset
        self._opener.open(bases, LogStart(newest if is_first else OffsetAndEpoch(bases[0], 0)))
        is_replaced = self._is_replaced_by_snapshot()
        start = LogStart(newest, b"" if is_replaced else self._digest_of(newest, damage))
        keep_copy(self._fs, self._files.start.path)
        self.report.restored_start = str(damage)
        if is_replaced:
            return self._replace_by_snapshot()
        self._files.start.save(start)
        if covered:
            # Remove these before any later file: a verifier of the directory would see a gap.
            remove_covered(self._fs, self._directory, covered)
        return self._finish(newest)

    def _digest_of(self, start: OffsetAndEpoch, damage: LogDamagedError) -> bytes:
        """Return the log digest at a position of this log.

        Raises:
            LogDamagedError: ``damage``: the log has no such position.
        """
        try:
            self._check_start(start)
        except LogDamagedError as error:
            raise damage from error
        segment = [one for one in self._chain.segments if one.base_offset <= start.offset][-1]
        return segment.digest_at(start.offset)

    def _replace_by_snapshot(self) -> SegmentedLog:
        newest = self._newest_snapshot
        plan = LogStart(newest, self._snapshot_digest(newest), is_replacing=True)
        self._files.start.save(plan)
        self._replace(plan)
        return self._finish(newest)

    def close(self) -> None:
        """Release everything after a failure."""
        self._chain.close()
        self._files.watermarks.close()

    def _check_snapshots(self, start: OffsetAndEpoch) -> None:
        """Check requirement 630.14 before the log start is used to remove segments."""
        if start.offset > self._highest_snapshot:
            raise LogDamagedError(
                f"the log starts at {start} but no checkpoint ends at or above it (the newest "
                f"is {self._newest_snapshot})",
                path=self._files.start.path,
                position=0,
                offset=start.offset,
            )

    # ------------------------------------------------------------------ segments

    def _open_segments(self, stored: LogStart) -> None:
        start = stored.start
        bases = segment_bases(self._fs.list_directory(self._directory))
        covered = covered_bases(bases, start.offset)
        if covered:
            remove_covered(self._fs, self._directory, covered)
            bases = bases[len(covered) :]
        if not bases:
            digest = EMPTY_LOG_DIGEST if start.offset == 0 else stored.digest
            base = SegmentTail(start.offset, start.epoch, 0, digest)
            self._chain.segments.append(create_segment(self._fs, self._directory, base))
            return
        if bases[0] > start.offset:
            raise LogDamagedError(
                f"the log starts at {start.offset}, but its first segment at {bases[0]}",
                path=segment_path(self._directory, bases[0]),
                position=0,
                offset=start.offset,
            )
        self._opener.open(bases, stored)

    def _is_replaced_by_snapshot(self) -> bool:
        """Whether a checkpoint is newer than the log and so replaces it (630.13).

        Raises:
            LogDamagedError: The log ends below the stored durable end, and no newer checkpoint
                covers the missing part.
        """
        end = self._end
        newest = self._newest_snapshot
        is_newer = not end.is_at_least(newest)
        durable_offset = self._files.marks.durable_offset
        if end.offset < durable_offset and not (is_newer and newest.offset >= durable_offset):
            raise self._damage(f"the log was on disk up to offset {durable_offset} and ends here")
        return is_newer

    @property
    def _end(self) -> OffsetAndEpoch:
        return self._chain.segments[-1].tail.end

    def _damage(self, cause: str) -> LogDamagedError:
        newest = self._chain.segments[-1]
        return LogDamagedError(
            cause,
            path=newest.path,
            position=newest.tail.position,
            offset=newest.tail.end_offset,
        )

    def _replace(self, plan: LogStart) -> None:
        self._chain.close()
        self._chain.segments.clear()
        self._chain.epochs.clear()
        self._files.lower_durable_end(plan.start, b"")
        segment = finish_replacement(self._fs, self._directory, self._files.start, plan)
        self._chain.segments.append(segment)
        self.report.finished_replacement = plan.start

    def _check_start(self, start: OffsetAndEpoch) -> None:
        """Check that the stored log start is a batch boundary of this log."""
        if start.offset > self._end.offset:
            raise self._damage(f"the log starts at {start}, above its end")
        segment = [one for one in self._chain.segments if one.base_offset <= start.offset][-1]
        try:
            tail = segment.tail_at(start.offset)
        except QuorumUsageError as error:
            raise self._damage(f"the log starts at {start}: {error}") from error
        if tail.epoch != start.epoch:
            raise self._damage(f"the log starts at {start}, behind a record of {tail.epoch}")

    # ------------------------------------------------------------------ finishing

    def _finish(self, start: OffsetAndEpoch) -> SegmentedLog:
        chain, files, report = self._chain, self._files, self.report
        newest = chain.segments[-1]
        # Data that was read back may not be on disk: a process may have died before its sync.
        # From here on this replica acknowledges it, so it is synced first.
        newest.file.sync()
        self._fs.sync_directory(self._directory)
        end = newest.tail.end
        epochs = clip_start(chain.epochs, start, end_offset=end.offset)
        self._rebuild(epochs)
        high_watermark = min(max(files.marks.high_watermark, start.offset), end.offset)
        # Not stored: the caller may find that a checkpoint is not of the position in its name.
        report.high_watermark = max(high_watermark, min(self._highest_snapshot, end.offset))
        files.watermarks.store(
            Watermarks(high_watermark, end.offset, end.epoch, newest.tail.digest)
        )
        report.start, report.end = start, end
        report.scanned_segments = len(chain.segments)
        report.scanned_bytes = chain.byte_count
        report.torn_bytes, report.torn_cause = chain.torn_bytes, chain.torn_cause
        return SegmentedLog(files, self._config, chain.segments, start, epochs)

    def _rebuild(self, epochs: tuple[EpochStart, ...]) -> None:
        """Rewrite index and epoch files that differ from the scan."""
        files, report = self._files, self.report
        for segment in self._chain.segments:
            path = segment_path(self._directory, segment.base_offset, INDEX_SUFFIX)
            is_newest = segment is self._chain.segments[-1]
            if (not is_newest or self._fs.exists(path)) and files.write_index(segment):
                report.rebuilt.append(path.name)
            if is_newest:
                # Its index file is written when it is sealed or the log is closed. An older one
                # would lag behind the log at the next start and look damaged.
                files.drop_index(segment)
        stored = files.epochs.load()
        if stored != epochs and (stored is not None or epochs):
            files.save_epochs(epochs)
            report.rebuilt.append(files.epochs.path.name)
