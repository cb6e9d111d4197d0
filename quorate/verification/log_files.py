"""Verify the files of a log: ours by its digest chain, Kafka's by all the evidence it has.

Nothing is written and no lock is taken, so the node may be running. Batches behind the stored
durable end of our log may be half written and are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from quorate.replica.checkpoint_position import contradiction, contradiction_at
from quorum.errors import LogDamagedError
from quorum.log.high_watermark_file import Watermarks, load_watermarks
from quorum.log.layout import partition_directory, segment_bases
from quorum.log.log_start_file import LogStart, LogStartFile
from quorum.log.readonly import open_readonly
from quorum.log.verify import Verified, verify_log
from quorum.ports import FileSystem
from quorum.types import DigestAt, OffsetAndEpoch, SnapshotId
from snapshot.format import CheckpointHead

Progress = Callable[[int], None]
"""Receives the bytes read so far."""


@dataclass(frozen=True, slots=True)
class VerifiedLog:
    """A log that was read from end to end."""

    partition: Path
    is_foreign: bool
    """Without a stored high watermark, as Kafka's are: there is no digest to compare with."""
    start_offset: int
    end_offset: int
    """What was verified ends here (exclusive)."""
    digest: bytes
    """Log digest at ``end_offset``; empty if not known."""
    batches: int
    size_bytes: int
    problems: tuple[str, ...]
    """What is damaged or contradicts itself, one sentence each; empty if the log is intact."""
    damaged_offset: int
    """The first offset that is not intact; -1 if none is known."""
    torn_tail: str
    """Where a crash left an incomplete last batch, which is no damage; empty if nowhere."""
    missing_identity: str
    """That the data directory's ``meta.properties`` is missing, which is no damage of the log."""
    contradictions: dict[SnapshotId, str]
    """Checkpoints that cannot belong to their position of this log, and why."""

    @property
    def records(self) -> int:
        """Records in the verified part, control records included."""
        return self.end_offset - self.start_offset


def partition_of(directory: Path) -> Path:
    """Return the partition directory in a data directory, or ``directory`` itself."""
    partition = partition_directory(directory)
    return partition if partition.is_dir() else directory


def verify_log_files(
    fs: FileSystem,
    directory: Path,
    heads: dict[SnapshotId, CheckpointHead],
    *,
    progress: Progress | None = None,
) -> VerifiedLog:
    """Read every batch of a log; compare it with its digests, or with the other evidence of epochs.

    ``directory`` is a data directory or the partition directory in it, ours or Kafka's. ``heads``
    are the checkpoints whose position in the log is compared.

    Raises:
        StorageError: A file cannot be read.
    """
    partition = partition_of(directory)
    marks = load_watermarks(fs, partition)
    if marks is None:
        return _foreign(fs, partition, heads, progress)
    return _own(fs, partition, marks, heads, progress)


def _own(
    fs: FileSystem,
    partition: Path,
    marks: Watermarks,
    heads: dict[SnapshotId, CheckpointHead],
    progress: Progress | None,
) -> VerifiedLog:
    end = DigestAt(marks.durable_offset, marks.digest)
    wanted = frozenset(each.offset for each in heads)
    found = verify_log(fs, partition, end, wanted=wanted, progress=progress)
    damage = found.damage or missing_beginning(fs, partition, end.offset)
    start = (LogStartFile(fs, partition).load() or LogStart()).start
    bases = segment_bases(fs.list_directory(partition))
    return VerifiedLog(
        partition,
        is_foreign=False,
        start_offset=min(bases, default=start.offset),
        end_offset=end.offset,
        digest=end.value,
        batches=found.batches,
        size_bytes=found.size_bytes,
        problems=() if damage is None else (str(damage),),
        damaged_offset=-1 if damage is None else damage.offset,
        torn_tail="",
        missing_identity="",
        contradictions=_contradictions_at(heads, found, start, end),
    )


def _foreign(
    fs: FileSystem,
    partition: Path,
    heads: dict[SnapshotId, CheckpointHead],
    progress: Progress | None,
) -> VerifiedLog:
    log = open_readonly(partition, fs, check_indexes=True, progress=progress)
    try:
        harmless = (log.torn_tail, log.missing_identity)
        problems = [each for each in log.problems if each not in harmless]
        return VerifiedLog(
            partition,
            is_foreign=True,
            start_offset=log.start.offset,
            end_offset=log.end.offset,
            digest=log.digest_at(log.end.offset),
            batches=log.batch_count,
            size_bytes=log.size_bytes,
            problems=tuple(problems),
            damaged_offset=-1 if log.damage is None else log.damage.offset,
            torn_tail=log.torn_tail,
            missing_identity=log.missing_identity,
            contradictions={
                each: problem
                for each, head in heads.items()
                if (problem := contradiction(each, head, log))
            },
        )
    finally:
        log.close()


def _contradictions_at(
    heads: dict[SnapshotId, CheckpointHead], found: Verified, start: OffsetAndEpoch, end: DigestAt
) -> dict[SnapshotId, str]:
    contradictions = {}
    for snapshot_id, head in heads.items():
        offset = snapshot_id.offset
        # Nothing is known about positions behind damage.
        if found.damage is not None or not start.offset < offset <= end.offset:
            continue
        position = found.positions.get(offset)
        if position is None:
            contradictions[snapshot_id] = f"no batch of the log ends at offset {offset}"
            continue
        problem = contradiction_at(snapshot_id, head, position.epoch, position.digest)
        if problem:
            contradictions[snapshot_id] = problem
    return contradictions


def missing_beginning(fs: FileSystem, partition: Path, end_offset: int) -> LogDamagedError | None:
    """Return what is wrong if the first segments are gone; None if nothing is."""
    start = (LogStartFile(fs, partition).load() or LogStart()).start.offset
    bases = segment_bases(fs.list_directory(partition))
    first = bases[0] if bases else end_offset
    if first <= start:
        return None
    return LogDamagedError(
        f"the log starts at {start}, but its first segment at {first}"
        if bases
        else "no segment is left",
        path=partition,
        position=0,
        offset=start,
    )
