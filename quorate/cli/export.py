"""``quorate export``: the committed log of a directory as Parquet files."""

from __future__ import annotations

from pathlib import Path

import click

from quorate.cli.audit_extra import (
    DAMAGE_HINT,
    need_arrow,
    reported_damage,
    reported_truncation,
)
from quorate.cli.command import LocalCommand, pass_session
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.session import Session

_COLUMNS = ("table", "rows")


@click.command("export", cls=LocalCommand)
@click.argument("directory", required=False, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, path_type=Path),
    help="What to export; the same as DIRECTORY.",
)
@click.option(
    "--to",
    "target",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the export; made if missing, continued if it has one.",
)
@click.option(
    "--uncommitted",
    is_flag=True,
    help="Also export what is not known to be committed; such rows are marked.",
)
@click.option(
    "--only-before-damage",
    is_flag=True,
    help="Export the part of a damaged log before the damage; the exit code stays 8.",
)
@pass_session
def export(
    session: Session,
    directory: Path | None,
    source: Path | None,
    target: Path,
    uncommitted: bool,
    only_before_damage: bool,
) -> None:
    """Export the metadata log in DIRECTORY as Parquet files. Needs no running node and no Java.

    DIRECTORY is a node's data directory, ours or a Kafka controller's, a copy of one, or a single
    segment or checkpoint file. Running it again exports what is new; nothing is written twice.

    Exit code 3 says that the log no longer contains what was exported, and from where on; 8 that
    the log is damaged, and where. Then nothing is written without --only-before-damage.
    """
    if (directory is None) == (source is None):
        raise CliError("name one directory to export, either way", code=Exit.USAGE)
    need_arrow()
    from audit.export import export_log

    done = 0
    with session.progress(f"exporting to {target}", 1.0) as bar:

        def advance(offsets: int, total: int) -> None:
            nonlocal done
            bar.advance((offsets - done) / max(total, 1))
            done = offsets

        with reported_truncation(), reported_damage():
            report = export_log(
                directory or source or Path(),
                target,
                with_unknown=uncommitted,
                only_before_damage=only_before_damage,
                progress=advance,
            )
    for problem in report.problems:
        if problem != report.damage:
            session.warn(problem)
    for name in report.removed:
        session.announce(f"removed the leftover {name} of an interrupted export")
    for name in report.repaired:
        session.announce(f"{name} was missing from the export and is written again")
    session.show(
        Result(
            "Export",
            fields={
                "start_offset": report.start_offset,
                "end_offset": report.end_offset,
                "ranges_written": len(report.written),
                "position": None if report.position is None else report.position.to_json(),
            },
            rows=[{"table": table, "rows": count} for table, count in report.rows.items()],
            columns=_COLUMNS,
        )
    )
    if report.damage:
        raise CliError(
            f"exported below offset {report.end_offset} only: {report.damage}",
            hint=DAMAGE_HINT,
            code=Exit.DAMAGED,
        )
