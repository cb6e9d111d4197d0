"""``quorate snapshot create``: write the checkpoint of a past state."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorate.cli.command import LocalCommand, pass_session
from quorate.cli.directory_lock import locked
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.past import moment_of, moment_options, reported_past
from quorate.cli.session import Session
from quorum.log.directory_lock import LOCK_NAME
from quorum.log.filesystem import OsFileSystem
from quorum.runtime.clock import SystemClock

if TYPE_CHECKING:
    from snapshot.generator import CheckpointRequest

_IN_USE = (
    "stop its node, or let the node write one (`quorate snapshot now`); of a past position write "
    "one from a copy of the directory"
)


@click.command("create", cls=LocalCommand)
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@moment_options
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write to, made if missing. Default: beside the log.",
)
@pass_session
def create(
    session: Session,
    directory: Path,
    at_offset: int | None,
    at_time: str | None,
    uncommitted: bool,
    out: Path | None,
) -> None:
    """Write the checkpoint of a state in DIRECTORY as of an offset or a time.

    DIRECTORY is the data directory of a stopped node, ours or a Kafka controller's, or a copy. The
    file has the very bytes that the node would have written at that position, and its name. A
    position inside a batch or a metadata transaction means the one in front of it. Exit code 4
    says that the log does not show that state; it names those that it does.
    """
    # Loaded here: help needs neither logs nor checkpoints.
    from audit.directory import plan_source
    from quorate.timetravel.checkpoint import checkpoint_at
    from quorate.timetravel.positions import offset_of
    from quorate.verification.log_files import partition_of
    from snapshot.generator import CheckpointGenerator
    from snapshot.naming import file_path
    from snapshot.reader import CheckpointReader

    moment = moment_of(at_offset, at_time)
    partition = partition_of(directory)
    fs = OsFileSystem()
    is_beside_log = out is None or out.resolve() == partition.resolve()
    folder = partition if out is None else out
    if uncommitted and is_beside_log:
        raise CliError(
            "a checkpoint beside the log stands for what is committed, also at the next start",
            hint="write one with --uncommitted to another folder (--out)",
            code=Exit.REFUSED,
        )
    with _alone(partition, writes=is_beside_log), reported_past():
        plan = plan_source(partition, with_unknown=uncommitted)
        for problem in plan.problems:
            session.warn(problem)
        offset = offset_of(plan, moment)
        with session.progress("replaying", None):
            request = checkpoint_at(plan, partition, offset)
        _check(fs, partition, folder, request)
        fs.make_directory(folder)
        with session.progress("writing", None):
            info = CheckpointGenerator(fs, folder, SystemClock()).run(request)
        path = file_path(folder, info.snapshot_id)
        state_digest = CheckpointReader(path).verify().footer.state_digest
    if info.snapshot_id.offset != offset:
        session.announce(
            f"note: offset {offset} is inside a batch or a transaction; "
            f"the checkpoint ends at {info.snapshot_id.offset}"
        )
    session.show(
        Result(
            "Snapshot",
            {
                "file": str(path),
                "end_offset": info.snapshot_id.offset,
                "epoch": info.snapshot_id.epoch,
                "bytes": info.size_bytes,
                "records": info.records,
                "kraft_version": request.kraft_version,
                "voters": [voter.key.id for voter in request.voters],
                "log_digest": request.log_digest.hex() or None,
                "state_digest": state_digest.hex(),
                "digest": info.digest.hex(),
            },
        )
    )


def _alone(partition: Path, *, writes: bool) -> AbstractContextManager[object]:
    """The lock of the directory; one that was never started and is only read has no lock file."""
    data_dir = partition.parent
    if writes:
        return locked(data_dir, hint=_IN_USE)
    if OsFileSystem().exists(data_dir / LOCK_NAME):
        return locked(data_dir, hint=_IN_USE, is_shared=True)
    return nullcontext()


def _check(fs: OsFileSystem, partition: Path, folder: Path, request: CheckpointRequest) -> None:
    """Refuse a checkpoint that the node would not write, or has written."""
    from quorum.log.high_watermark_file import load_watermarks
    from snapshot.naming import file_path

    snapshot_id = request.snapshot_id
    if snapshot_id.offset == 0:
        raise CliError(
            "there is no state to write at offset 0", hint="name a later one", code=Exit.NOT_FOUND
        )
    path = file_path(folder, snapshot_id)
    if fs.exists(path):
        raise CliError(
            f"{path} exists",
            hint="`quorate snapshot list --verify` verifies it; --out names another folder",
            code=Exit.CONFLICT,
        )
    if load_watermarks(fs, partition) is None:
        return
    if not request.log_digest:
        raise CliError(
            f"the log digest at offset {snapshot_id.offset} is not known here, so the file would "
            "differ from those of other replicas",
            hint="use the directory of another replica",
            code=Exit.REFUSED,
        )
    if not request.voters:
        raise CliError(
            "the log names no voters: they are configured (bootstrap.voters), and a checkpoint "
            "of this node would have them",
            hint="let the node write its checkpoints itself (snapshot.interval_ms)",
            code=Exit.REFUSED,
        )
