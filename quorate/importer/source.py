"""A source of an import: a controller's metadata directory, opened and read batch by batch.

Finds the log and the checkpoints of a directory and yields verified batches, each with its
file and position. ``plan`` decides which of them are copied.

Works on a Kafka controller's data directory, on the partition directory in it, and on a copy of
either. Takes no lock and writes nothing; records appended after opening are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from audit.directory import plan_source
from audit.errors import AuditError
from audit.plan import CheckpointFile, ReadPlan
from audit.segment_file import read_segment
from quorate.importer.errors import ImportRefusedError, SourceDamagedError
from quorum.batch import BatchHeader, scan_batches
from quorum.log.readonly import open_readonly
from snapshot.reader import CheckpointReader
from statemachine.import_state import NO_CHECKPOINT


class SourceBatch(NamedTuple):
    """One verified batch. ``header.position`` is its place in ``data``, ``position`` in the
    file.
    """

    data: bytes
    header: BatchHeader
    path: str
    position: int

    def damage(self, cause: str) -> SourceDamagedError:
        """Return the error for a record inside, with the place of the batch."""
        return SourceDamagedError(cause, path=self.path, position=self.position)


@dataclass(frozen=True, slots=True)
class Source:
    """The log and the checkpoints of a directory, as of its opening."""

    directory: Path
    cluster_id: str
    plan: ReadPlan

    @property
    def end_offset(self) -> int:
        """Where the source's log ends, exclusive."""
        return self.plan.end_offset

    @property
    def is_trimmed(self) -> bool:
        """Whether the log begins behind offset 0, so that the import needs a checkpoint."""
        return self.plan.start_offset > 0 or not self.plan.segments

    def checkpoint(self, end_offset: int) -> CheckpointFile:
        """The checkpoint with that end offset.

        Raises:
            ImportRefusedError: It is not there.
        """
        for file in self.plan.checkpoints:
            if file.end_offset == end_offset:
                return file
        raise ImportRefusedError(
            f"{self.directory}: checkpoint {end_offset}, which the import started from, is gone"
        )

    def starting_checkpoint(self) -> int:
        """End offset of the checkpoint that a fresh import starts from: the newest if trimmed.

        Raises:
            ImportRefusedError: The beginning of the log was trimmed and no checkpoint contains it.
        """
        if not self.is_trimmed:
            return NO_CHECKPOINT
        if not self.plan.checkpoints:
            raise ImportRefusedError(
                f"{self.directory}: the log begins at offset {self.plan.start_offset} and no "
                "checkpoint holds what came before"
            )
        return self.plan.checkpoints[-1].end_offset

    def log_batches(self, from_offset: int) -> Iterator[SourceBatch]:
        """Every batch of the log from the one at ``from_offset`` on, control batches included.

        Raises:
            CorruptBatchError: The log was damaged since it was opened.
            StorageError: It cannot be read.
        """
        for segment in self.plan.segments:
            if segment.end_offset <= from_offset:
                continue
            for found in read_segment(segment):
                if found.header.end_offset > from_offset:
                    yield SourceBatch(found.data, found.header, found.path, found.position)

    def checkpoint_batches(self, file: CheckpointFile) -> Iterator[SourceBatch]:
        """Every batch of a checkpoint, control batches included.

        Raises:
            SnapshotCorruptError: It is damaged or incomplete.
        """
        position = 0
        for data in CheckpointReader(Path(file.path)).batches():
            for header in scan_batches(data):
                yield SourceBatch(data, header, file.path, position + header.position)
            position += len(data)


def open_source(directory: Path, *, cluster_id: str = "", with_uncommitted: bool = False) -> Source:
    """Open a directory and verify the checksum of everything in its log.

    ``cluster_id`` replaces a ``meta.properties`` that is missing. ``with_uncommitted``
    also takes what the directory does not show to be committed, as it is with several voters.

    Raises:
        SourceDamagedError: Anything in the directory is not intact.
        ImportRefusedError: There is nothing to import, or the directory does not say which
            cluster it belongs to or how far its log is committed.
        StorageError: A file cannot be read.
    """
    try:
        log = open_readonly(directory)
        log.close()
        problems = list(log.problems)
        if log.segments is None:
            # A checkpoint alone is a source as well.
            problems.pop()
        if log.identity is None:
            identity_problem = problems.pop(0)
            if not cluster_id:
                raise ImportRefusedError(
                    f"{identity_problem}; --source-cluster-id names the cluster instead"
                )
        if problems:
            raise SourceDamagedError("; ".join(problems))
        plan = plan_source(directory, with_unknown=True)
    except AuditError as error:
        raise ImportRefusedError(str(error)) from error
    cluster_id = cluster_id or (log.identity.cluster_id if log.identity is not None else "")
    if not cluster_id:
        raise ImportRefusedError(
            f"{directory}: the cluster id is empty; --source-cluster-id names the cluster"
        )
    if plan.committed_offset < plan.end_offset and not with_uncommitted:
        raise ImportRefusedError(
            f"{directory}: the log ends at {plan.end_offset}, but only what lies below "
            f"{plan.committed_offset} is known to be committed; --uncommitted takes all of it"
        )
    return Source(directory, cluster_id, plan)
