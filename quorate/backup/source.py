"""The sources of a backup: committed batches, and the checkpoint at which a log begins."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from audit.directory import plan_source
from audit.plan import ReadPlan
from audit.replay import batches_of, image_at
from audit.segment_file import digest_at
from quorate.backup.errors import BackupGapError, OtherHistoryError, TrimmedMeanwhileError
from quorum.errors import StorageError, cause_of
from quorum.types import OffsetAndEpoch, SnapshotId
from statemachine.dump import state_digest

_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class SourceState:
    """What a source holds when a run begins."""

    name: str
    cluster_id: str
    log_start: int
    end_offset: int
    """Committed; the run copies up to here."""
    state_offset: int
    """Not above ``end_offset``."""
    state_digest: bytes


class Source(Protocol):
    """A node or a directory."""

    async def state(self) -> SourceState:
        """Look at the source; what follows is of this moment."""

    async def check_continues(self, end: OffsetAndEpoch, digest: str) -> None:
        """Check that the log of a backup up to ``end`` is the beginning of the source's.

        Raises:
            OtherHistoryError: It is not.
            BackupGapError: The source begins after it.
        """

    async def checkpoint(self) -> tuple[SnapshotId, AsyncIterator[bytes]]:
        """Return the checkpoint at which the log of a backup has to begin, and its content."""

    def batches(self, offset: int) -> AsyncIterator[bytes]:
        """Yield whole batches from ``offset`` on, up to the end of ``state``."""


class DirectorySource:
    """A data directory, ours or a Kafka controller's; its node may be running.

    All methods raise ``TrimmedMeanwhileError`` if the node deletes a file before it is read.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._plan: ReadPlan

    @property
    def problems(self) -> tuple[str, ...]:
        """What of the directory could not be used, one sentence each; known after ``state``."""
        return self._plan.problems

    async def state(self) -> SourceState:
        """As ``Source.state``; raises as ``plan_source`` and ``image_at``."""
        with _trimmed_if_gone():
            plan = self._plan = plan_source(self._directory)
            image = image_at(plan, plan.end_offset).image
        return SourceState(
            str(self._directory),
            plan.cluster_id,
            plan.start_offset,
            plan.end_offset,
            image.provenance.end_offset,
            state_digest(image),
        )

    async def check_continues(self, end: OffsetAndEpoch, digest: str) -> None:
        """As ``Source.check_continues``."""
        plan = self._plan
        if plan.start_offset > end.offset:
            raise BackupGapError(f"{plan.source}: its log begins at offset {plan.start_offset}")
        if plan.end_offset < end.offset:
            raise OtherHistoryError(
                f"{plan.source}: ends at offset {plan.end_offset}, before the backup"
            )
        with _trimmed_if_gone():
            found = digest_at(plan, end.offset)
        epoch = plan.last_epoch(end.offset)
        same = found.hex() == digest if found and digest else epoch in (0, end.epoch)
        if not same:
            raise OtherHistoryError(
                f"{plan.source}: its log below offset {end.offset} is not that of the backup"
            )

    async def checkpoint(self) -> tuple[SnapshotId, AsyncIterator[bytes]]:
        """As ``Source.checkpoint``: the oldest one, so that most of the log is kept."""
        baseline = self._plan.baseline
        assert baseline is not None  # noqa: S101 - a trimmed log without one has no state
        return baseline.snapshot_id, _content(Path(baseline.path))

    async def batches(self, offset: int) -> AsyncIterator[bytes]:
        """As ``Source.batches``."""
        with _trimmed_if_gone():
            for batch in batches_of(self._plan, offset, self._plan.end_offset):
                yield batch.data[batch.header.position : batch.header.end_position]


async def _content(path: Path) -> AsyncIterator[bytes]:
    with _trimmed_if_gone():
        try:
            with path.open("rb") as file:
                while data := file.read(_READ_BYTES):
                    yield data
        except OSError as error:
            raise StorageError(f"cannot read: {error.strerror}", path) from error


@contextmanager
def _trimmed_if_gone() -> Iterator[None]:
    try:
        yield
    except StorageError as error:
        if isinstance(cause_of(error), FileNotFoundError):
            raise TrimmedMeanwhileError(f"{error}; the node trimmed its log meanwhile") from error
        raise
