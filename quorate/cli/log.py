"""``quorate log``: look into segment and checkpoint files."""

from __future__ import annotations

from pathlib import Path

import click

from quorate.cli.command import LocalGroup, pass_session
from quorate.cli.exits import CliError, Exit
from quorate.cli.log_verify import verify
from quorate.cli.ranges import WholeNumber
from quorate.cli.session import Session
from quorum.errors import StorageError
from quorum.log.filesystem import OsFileSystem
from quorum.log.layout import partition_directory, segment_bases, segment_path


@click.group(cls=LocalGroup)
def log() -> None:
    """Read log segments and checkpoints, ours or Kafka's. Needs no running node."""


log.add_command(verify)


@log.command("dump")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, path_type=Path),
)
@click.option("--records/--no-records", "with_records", default=True, help="Also show records.")
@click.option("--from-offset", type=WholeNumber(min=0), default=0, help="First offset wanted.")
@click.option("--to-offset", type=WholeNumber(min=0), help="First offset not wanted.")
@click.option("--show-secrets", is_flag=True, help="Show keys and salts of credentials.")
@pass_session
def dump(
    session: Session,
    files: tuple[Path, ...],
    with_records: bool,
    from_offset: int,
    to_offset: int | None,
    show_secrets: bool,
) -> None:
    """Print every batch of FILES and the records inside, one line each.

    A data directory or metadata partition directory among FILES stands for its log segments.
    Exit code 4 says that no batch has an offset that is wanted.
    With -o json or yaml each file is one document with a row per batch, with jsonl each batch is a
    line. Every checksum is proven; damage ends the dump with exit code 8, naming the position,
    and the document says so in its last field, error. Of a directory without a stored high
    watermark, such as a Kafka controller's, contradictions with the epochs of the batches are
    reported as a warning.
    """
    # Loaded here: help needs neither logs nor checkpoints.
    from quorate.cli.dump_view import OffsetRange, show_file

    if to_offset is not None and to_offset < from_offset:
        raise CliError(
            f"--to-offset {to_offset} is below --from-offset {from_offset}", code=Exit.USAGE
        )
    paths = [path for given in files for path in _files_of(given)]
    if session.output == "json" and len(paths) > 1:
        raise CliError(
            "several files are no single JSON document",
            hint="use -o jsonl or yaml",
            code=Exit.USAGE,
        )
    offsets = OffsetRange(from_offset, to_offset)
    for path in paths:
        show_file(
            session,
            path,
            kind="LogDump",
            with_records=with_records,
            offsets=offsets,
            show_secrets=show_secrets,
        )
    for given in files:
        if given.is_dir():
            _warn_of_epochs(session, given)
    if not offsets.found and (from_offset or to_offset is not None):
        end = "" if to_offset is None else f" and below {to_offset}"
        raise CliError(
            f"there is no batch with offsets from {from_offset} on{end}",
            hint=f"there are offsets {offsets.first} to {offsets.last}"
            if offsets.first is not None
            else "",
            code=Exit.NOT_FOUND,
        )


def _warn_of_epochs(session: Session, given: Path) -> None:
    from quorum.log.high_watermark_file import load_watermarks
    from quorum.log.readonly import open_readonly

    directory = _partition_of(given)
    if load_watermarks(OsFileSystem(), directory) is not None:
        # Our own log: there is nothing to report, and a second reading takes as long as the dump.
        return
    try:
        log = open_readonly(directory)
    except StorageError as error:
        # The dump stands: what its node trims meanwhile is missed by this second reading alone.
        session.warn(f"{directory}: the epochs of the batches could not be checked: {error}")
        return
    log.close()
    for problem in log.epoch_problems:
        session.warn(problem)


def _partition_of(given: Path) -> Path:
    directory = partition_directory(given)
    return directory if directory.is_dir() else given


def _files_of(given: Path) -> list[Path]:
    """The segments of a directory in order; a file stands for itself."""
    if not given.is_dir():
        return [given]
    directory = _partition_of(given)
    bases = segment_bases(OsFileSystem().list_directory(directory))
    if not bases:
        raise CliError(f"{given}: no log segments", code=Exit.NOT_FOUND)
    return [segment_path(directory, base) for base in bases]
