"""``quorate snapshot``: checkpoints of a data directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorate.cli.command import LocalGroup, pass_session
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.session import Session
from quorate.cli.snapshot_create import create
from quorate.cli.snapshot_now import now
from quorum.errors import SnapshotCorruptError, StorageError
from quorum.log.filesystem import OsFileSystem
from quorum.log.layout import partition_directory, segment_bases

if TYPE_CHECKING:
    from snapshot.verifier import CheckpointSummary

_COLUMNS = ("end_offset", "epoch", "state", "bytes", "records", "kraft_version", "digest", "file")


@click.group(cls=LocalGroup)
def snapshot() -> None:
    """List, read and write checkpoint files. Only `now` needs a running node."""


snapshot.add_command(create)
snapshot.add_command(now)


@snapshot.command("list")
@click.argument("data_dir", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--verify",
    is_flag=True,
    help="Prove every file, and compare it with the log.",
)
@pass_session
def list_snapshots(session: Session, data_dir: Path, verify: bool) -> None:
    """List the checkpoints in DATA_DIR, or in a metadata partition directory."""
    # Loaded here: help needs neither logs nor checkpoints.
    from snapshot.naming import FileState, parse_name

    directory = partition_directory(data_dir)
    if not directory.is_dir():
        directory = data_dir
    names = OsFileSystem().list_directory(directory)
    if directory == data_dir and not segment_bases(names) and not any(map(parse_name, names)):
        raise CliError(
            f"{data_dir}: contains neither log segments nor checkpoints",
            hint="name a data directory, or the metadata partition directory in it",
            code=Exit.NOT_FOUND,
        )
    rows = []
    damaged = 0
    for name in names:
        parsed = parse_name(name)
        if parsed is None:
            continue
        snapshot_id, state = parsed
        row: dict[str, object] = {
            "end_offset": snapshot_id.offset,
            "epoch": snapshot_id.epoch,
            "state": state.name.lower(),
            "bytes": _size(directory / name),
            "file": name,
        }
        if verify and state is FileState.SEALED:
            try:
                with session.progress(f"verifying {name}", None):
                    summary = verify_in_place(directory / name)
            except SnapshotCorruptError as error:
                row["state"] = "damaged"
                row["problem"] = str(error)
                damaged += 1
            else:
                row["records"] = summary.records
                row["kraft_version"] = summary.head.kraft_version
                row["digest"] = summary.digest.hex()
        rows.append(row)
    shown = [column for column in (*_COLUMNS, "problem") if any(column in row for row in rows)]
    session.show(Result("SnapshotList", rows=rows, columns=shown))
    if damaged:
        raise CliError(
            f"{damaged} damaged checkpoint(s)",
            hint="a running node replaces them; see docs/operations/recover.md, section Damage",
            code=Exit.DAMAGED,
        )


def verify_in_place(path: Path) -> CheckpointSummary:
    """Read a checkpoint from end to end, and compare its position with the log beside it.

    Raises:
        SnapshotCorruptError: It is damaged, or another one than its name says.
        StorageError: A file cannot be read.
    """
    from quorate.replica.checkpoint_position import contradiction
    from quorum.log.readonly import open_readonly
    from snapshot.reader import CheckpointReader

    reader = CheckpointReader(path)
    summary = reader.verify()
    if reader.snapshot_id is not None:
        log = open_readonly(path.parent)
        try:
            problem = contradiction(reader.snapshot_id, summary.head, log)
        finally:
            log.close()
        if problem:
            raise SnapshotCorruptError(f"not the checkpoint of its position: {problem}", path)
    return summary


@snapshot.command("dump")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--records/--no-records", "with_records", default=True, help="Also show records.")
@click.option("--show-secrets", is_flag=True, help="Show keys and salts of credentials.")
@pass_session
def dump(session: Session, file: Path, with_records: bool, show_secrets: bool) -> None:
    """Print every batch of the checkpoint FILE and the records inside.

    The whole file is verified first: header, footer, checksums, and that nothing is missing.
    """
    from quorate.cli.dump_view import show_file
    from snapshot.reader import CheckpointReader

    try:
        with session.progress(f"verifying {file.name}", None):
            CheckpointReader(file).verify()
    except SnapshotCorruptError as error:
        raise CliError(str(error), hint="`quorate log dump` shows what can be read",
                       code=Exit.DAMAGED) from error  # fmt: skip
    show_file(
        session, file, kind="SnapshotDump", with_records=with_records, show_secrets=show_secrets
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise StorageError(f"cannot look at it: {error.strerror}", path) from error
