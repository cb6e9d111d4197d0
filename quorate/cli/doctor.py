"""``quorate doctor``: what is wrong here, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from quorate.cli.command import LocalCommand, pass_session
from quorate.cli.exits import CliError, Exit
from quorate.cli.node_options import config_options, load_unjudged
from quorate.cli.output import Result
from quorate.cli.session import Session
from quorate.cli.snapshot import verify_in_place
from quorate.doctor.finding import CheckResult, Finding
from quorum.errors import QuorateError, StorageError
from quorum.log.filesystem import OsFileSystem
from quorum.log.layout import partition_directory
from quorum.types import DigestAt

_SEE_DAMAGE = "see docs/operations/recover.md, section Damage"


@click.command(cls=LocalCommand)
@config_options
@click.option("--disk", is_flag=True, help="Also measure synced writes in the data directory.")
@click.option(
    "--deep", is_flag=True, help="Also read every segment and checkpoint, and prove the log digest."
)
@pass_session
def doctor(
    session: Session, file: Path | None, settings: tuple[str, ...], disk: bool, deep: bool
) -> None:
    """Check this installation and, with a configuration, a node's environment.

    Exit code 3 when something failed; warnings alone are no failure.
    """
    # Loaded here: help needs neither a configuration nor logs.
    from quorate.doctor.checks import examine_installation, examine_node, measure_disk

    findings = list(examine_installation())
    if file is not None or settings:
        config = load_unjudged(file, settings).config
        findings += examine_node(config)
        if disk:
            findings.append(measure_disk(config.node.data_dir))
        if deep:
            findings += _read_everything(session, config.node.data_dir)
    session.show(
        Result(
            "Doctor",
            rows=[
                {
                    "check": finding.check,
                    "check_result": finding.check_result.value,
                    "seen": finding.seen,
                    "remedy": finding.remedy or None,
                }
                for finding in findings
            ],
            columns=("check", "check_result", "seen", "remedy"),
        )
    )
    failed = sum(finding.check_result is CheckResult.FAILED for finding in findings)
    if failed:
        raise CliError(f"{failed} check(s) failed", code=Exit.UNHEALTHY)


def _read_everything(session: Session, data_dir: Path) -> list[Finding]:
    from quorate.doctor.checks import checkpoint_files, segment_files

    segments, checkpoints = segment_files(data_dir), checkpoint_files(data_dir)
    findings = list(_read_chain(data_dir))
    with session.progress("reading", len(segments) + len(checkpoints)) as bar:
        for path in (*segments, *checkpoints):
            findings.append(_read_one(path, is_checkpoint=path in checkpoints))
            bar.advance(1)
    return findings


def _read_chain(data_dir: Path) -> Iterator[Finding]:
    """What no checksum of a batch covers, offsets and epochs, as far as the log is on disk."""
    from quorate.verification.log_files import missing_beginning
    from quorum.log.high_watermark_file import load_watermarks
    from quorum.log.verify import verify_log

    fs, partition = OsFileSystem(), partition_directory(data_dir)
    marks = load_watermarks(fs, partition)
    if marks is None:
        return
    try:
        damage = verify_log(
            fs, partition, DigestAt(marks.durable_offset, marks.digest)
        ).damage or missing_beginning(fs, partition, marks.durable_offset)
    except StorageError as error:
        yield Finding(
            "log digest", CheckResult.FAILED, str(error), "check owner, mode and the disk"
        )
        return
    if damage is not None:
        yield Finding("log digest", CheckResult.FAILED, str(damage), _SEE_DAMAGE)
    else:
        yield Finding("log digest", CheckResult.OK, f"right up to offset {marks.durable_offset}")


def _read_one(path: Path, *, is_checkpoint: bool) -> Finding:
    from quorate.cli.dump import read_batches

    check = f"content of {path.name}"
    try:
        if is_checkpoint:
            records = verify_in_place(path).records
        else:
            records = sum(batch.header.record_count for batch in read_batches(path))
    except QuorateError as error:
        # The last batches of a running node's log may be half written at this moment.
        return Finding(check, CheckResult.FAILED, str(error), _SEE_DAMAGE)
    return Finding(check, CheckResult.OK, f"{records} records")
