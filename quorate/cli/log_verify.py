"""``quorate log verify``: prove a log's files again, also while its node runs."""

from __future__ import annotations

from pathlib import Path

import click

from quorate.cli.command import LocalCommand, pass_session
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.session import Session
from quorum.errors import LogDamagedError
from quorum.log.filesystem import OsFileSystem
from quorum.log.high_watermark_file import load_watermarks
from quorum.log.layout import WATERMARK_NAME, partition_directory, segment_bases
from quorum.log.log_start_file import LogStart, LogStartFile
from quorum.log.verify import verify_log
from quorum.ports import FileSystem
from quorum.types import DigestAt


@click.command("verify", cls=LocalCommand)
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@pass_session
def verify(session: Session, directory: Path) -> None:
    """Prove every batch of a log of ours, and the digest chain over all of them.

    DIRECTORY is a data directory or the partition directory in it; its node may be running.
    What is proven reaches up to the stored durable end; behind it a batch may be half written.
    Changes nothing. Ends with exit code 8 on damage, naming the first offset that is not intact.
    """
    fs = OsFileSystem()
    partition = partition_directory(directory)
    if not partition.is_dir():
        partition = directory
    marks = load_watermarks(fs, partition)
    if marks is None:
        raise CliError(
            f"{partition}: no readable {WATERMARK_NAME}, which says how far the log must reach",
            hint="`quorate log dump` proves the checksums of any segment",
            code=Exit.NOT_FOUND,
        )
    end = DigestAt(marks.durable_offset, marks.digest)
    found = verify_log(fs, partition, end)
    damage = found.damage or missing_beginning(fs, partition, end.offset)
    session.show(
        Result(
            "LogVerification",
            {
                "directory": str(partition),
                "end_offset": end.offset,
                "digest": end.value.hex() or None,
                "batches": found.batches,
                "size_bytes": found.size_bytes,
                "is_intact": damage is None,
                "damaged_offset": -1 if damage is None else damage.offset,
                "damage": None if damage is None else str(damage),
            },
        )
    )
    if damage is not None:
        raise CliError(
            str(damage), hint="see docs/operations/recover.md, section Damage", code=Exit.DAMAGED
        )


def missing_beginning(fs: FileSystem, partition: Path, end_offset: int) -> LogDamagedError | None:
    """What is wrong when the first segments are gone; None when nothing is."""
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
