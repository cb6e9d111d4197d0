"""``quorate log verify``: verify a log, its checkpoints and its state, also while its node runs."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from audit.errors import AuditError
from quorate.cli.command import LocalCommand, pass_session
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.ranges import WholeNumber
from quorate.cli.session import Session
from quorum.errors import (
    CorruptBatchError,
    LogDamagedError,
    SnapshotCorruptError,
    StorageError,
    cause_of,
)
from quorum.log.filesystem import OsFileSystem
from quorum.log.layout import segment_bases, segment_path
from quorum.types import BOOTSTRAP_SNAPSHOT_ID

if TYPE_CHECKING:
    from quorate.verification.checkpoint_files import VerifiedCheckpoint
    from quorate.verification.log_files import VerifiedLog
    from quorate.verification.replay import Replayed

_COLUMNS = ("end_offset", "epoch", "bytes", "records", "is_intact", "is_replayed", "problem")
_SEE_DAMAGE = "see docs/operations/recover.md, section Damage"
_REPLAY_FAILURES = (AuditError, CorruptBatchError, LogDamagedError, SnapshotCorruptError)


@click.command("verify", cls=LocalCommand)
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--no-replay",
    "is_quick",
    is_flag=True,
    help="Do not replay the log, nor compare the checkpoints with the state there.",
)
@click.option(
    "--jobs",
    type=WholeNumber(min=1),
    help="Processes that replay, a part each. Default: one for each processor.",
)
@pass_session
def verify(session: Session, directory: Path, is_quick: bool, jobs: int | None) -> None:
    """Verify a log and its checkpoints, ours or a Kafka controller's.

    DIRECTORY is a data directory or the partition directory in it; its node may be running. The
    checksum of every batch and every checkpoint is compared, and that offsets and epochs follow
    each other. Of our log the digest chain is compared with the stored digests, up to the stored
    durable end; behind it a batch may be half written. Kafka's has no digests: there the epochs are
    compared with the leader changes, leader-epoch-checkpoint and quorum-state, and the index files
    with the segments. Then the log is replayed, and every checkpoint has to hold the state that the
    log leads to. From checkpoint to checkpoint it is replayed side by side, by --jobs processes.
    --no-replay is many times as fast and leaves the replay out.

    Changes nothing. Ends with exit code 8 on damage, naming the first offset that is not intact.
    """
    # Loaded here: help needs neither logs nor checkpoints.
    from quorate.verification.log_files import partition_of

    fs = OsFileSystem()
    partition = partition_of(directory)
    try:
        found = _Verification(session, partition)
        found.read_files(fs)
        if not is_quick:
            found.replay(jobs or len(os.sched_getaffinity(0)))
    except StorageError as error:
        if not isinstance(cause_of(error), FileNotFoundError):
            raise
        raise CliError(
            str(error),
            hint="if its node is running, it may have removed the file meanwhile: run it again",
        ) from error
    session.show(found.result())
    if found.log.torn_tail:
        session.announce(f"note: {found.log.torn_tail}: a torn tail, which the next start cuts")
    if found.log.missing_identity:
        session.announce(f"note: {found.log.missing_identity}: no part of the log")
    problems = found.problems()
    if problems:
        raise CliError("; ".join(problems), hint=_SEE_DAMAGE, code=Exit.DAMAGED)


@dataclass(slots=True)
class _Rate:
    """Bytes that were read in some time."""

    size_bytes: int = 0
    seconds: float = 0.0

    @property
    def bytes_per_second(self) -> int | None:
        return None if not self.size_bytes else int(self.size_bytes / max(self.seconds, 1e-9))


class _Verification:
    """One run of the command."""

    def __init__(self, session: Session, partition: Path) -> None:
        self._session = session
        self._partition = partition
        self._file_rate = _Rate()
        self._replayed: Replayed | None = None
        self._replay_rate = _Rate()
        self._replay_problem = ""
        self._checkpoints: list[VerifiedCheckpoint] = []

    def read_files(self, fs: OsFileSystem) -> None:
        """Read the checkpoints and the log."""
        from quorate.verification.checkpoint_files import verify_checkpoint_files, with_problems
        from quorate.verification.log_files import verify_log_files
        from quorum.log.high_watermark_file import load_watermarks

        bases = segment_bases(fs.list_directory(self._partition))
        total = sum(_size(segment_path(self._partition, base)) for base in bases)
        began = time.perf_counter()
        with self._session.progress("checkpoints", None):
            checkpoints = verify_checkpoint_files(fs, self._partition)
        if not bases and not checkpoints and load_watermarks(fs, self._partition) is None:
            raise CliError(
                f"{self._partition}: contains neither log segments nor checkpoints",
                hint="name a data directory, or the metadata partition directory in it",
                code=Exit.NOT_FOUND,
            )
        heads = {
            each.snapshot_id: each.summary.head
            for each in checkpoints
            if each.summary is not None and each.snapshot_id != BOOTSTRAP_SNAPSHOT_ID
        }
        with self._session.progress("log", total) as bar:
            self.log: VerifiedLog = verify_log_files(fs, self._partition, heads, progress=bar.reach)
        problems = {
            each: f"not the checkpoint of its position: {problem}"
            for each, problem in self.log.contradictions.items()
        }
        self._checkpoints = with_problems(checkpoints, problems)
        self._file_rate = _Rate(
            self.log.size_bytes + sum(_bytes(each) or 0 for each in checkpoints),
            time.perf_counter() - began,
        )

    def replay(self, processes: int) -> None:
        """Replay the log, unless it is damaged."""
        from audit.directory import plan_source
        from quorate.verification.parts import replay_in_parts

        if self.log.problems:
            return
        began = time.perf_counter()
        try:
            plan = plan_source(self._partition, with_unknown=self.log.is_foreign)
            with self._session.progress("replay", self.log.size_bytes) as bar:
                replayed = replay_in_parts(
                    plan, self._checkpoints, processes=processes, progress=bar.reach
                )
        except _REPLAY_FAILURES as error:
            self._replay_problem = f"cannot be replayed: {error}"
            return
        self._replayed = replayed
        self._checkpoints = list(replayed.checkpoints)
        self._replay_rate = _Rate(replayed.size_bytes, time.perf_counter() - began)

    def problems(self) -> list[str]:
        """All that is wrong, the log first."""
        found = [*self.log.problems]
        found += [f"{each.path}: {each.problem}" for each in self._checkpoints if each.problem]
        return found + ([self._replay_problem] if self._replay_problem else [])

    def result(self) -> Result:
        """What was read, and what was found."""
        log, replayed = self.log, self._replayed
        problems = self.problems()
        return Result(
            "LogVerification",
            {
                "directory": str(self._partition),
                "start_offset": log.start_offset,
                "end_offset": log.end_offset,
                "digest": log.digest.hex() or None,
                "batches": log.batches,
                "records": log.records,
                "size_bytes": log.size_bytes,
                "bytes_per_second": self._file_rate.bytes_per_second,
                "is_foreign": log.is_foreign,
                "is_intact": not problems,
                "damaged_offset": log.damaged_offset,
                "damage": "; ".join(problems) or None,
                "torn_tail": log.torn_tail or None,
                "replayed_from": None if replayed is None else replayed.start_offset,
                "replayed_to": None if replayed is None else replayed.end_offset,
                "state_digest": None if replayed is None else replayed.state_digest.hex(),
                "replayed_bytes_per_second": self._replay_rate.bytes_per_second,
            },
            [_row(each) for each in self._checkpoints],
            _COLUMNS,
        )


def _row(checkpoint: VerifiedCheckpoint) -> dict[str, object]:
    summary = checkpoint.summary
    return {
        "end_offset": checkpoint.snapshot_id.offset,
        "epoch": checkpoint.snapshot_id.epoch,
        "file": checkpoint.path.name,
        "bytes": _bytes(checkpoint),
        "records": None if summary is None else summary.records,
        "state_digest": None if summary is None else summary.footer.state_digest.hex() or None,
        "is_intact": not checkpoint.problem,
        "is_replayed": checkpoint.is_replayed,
        "problem": checkpoint.problem or None,
    }


def _bytes(checkpoint: VerifiedCheckpoint) -> int | None:
    return None if checkpoint.summary is None else checkpoint.summary.size_bytes


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # trimmed by a running node
        return 0
    except OSError as error:
        raise StorageError(f"cannot look at it: {error.strerror}", path) from error
