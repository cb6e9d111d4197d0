"""``quorate history``: what clients saw, checked against what Quorate promises."""

from __future__ import annotations

from pathlib import Path

import click

from history.check import Report, check
from history.search import STEPS_MAX, CheckResult
from history.storage import HistoryFormatError, load
from quorate.cli.command import LocalGroup, pass_session
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.ranges import WholeNumber
from quorate.cli.session import Session
from quorate.visible_text import visible

_COLUMNS = (
    "file",
    "check_result",
    "operations",
    "keys",
    "log_batches",
    "log_gaps",
    "watched",
    "steps",
    "violations",
)


@click.group(cls=LocalGroup)
def history() -> None:
    """Check recorded client histories. Needs no running node."""


@history.command("check")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option(
    "--steps",
    type=WholeNumber(min=1),
    default=STEPS_MAX,
    show_default=True,
    help="Bound of each search; what exceeds it is undecided.",
)
@pass_session
def check_command(session: Session, files: tuple[Path, ...], steps: int) -> None:
    """Check histories: linearizability, read levels, lost and repeated writes, watches.

    Exit codes: 0 all valid, 3 something was violated, 1 undecided within the budget, 8 not a
    history.
    """
    rows = []
    reports = []
    for path in files:
        try:
            with session.progress(f"checking {path.name}", None):
                report = check(load(path), steps_max=steps)
        except HistoryFormatError as error:
            raise CliError(str(error), code=Exit.DAMAGED) from error
        reports.append(report)
        rows.append(_row(path, report))
    session.show(Result("HistoryCheck", rows=rows, columns=_COLUMNS))
    for path, report in zip(files, reports):
        for line in report.explanation():
            click.echo(visible(f"{path.name}: {line}"), err=True)
    check_results = {report.check_result for report in reports}
    if CheckResult.INVALID in check_results:
        count = sum(len(report.violations) for report in reports)
        raise CliError(f"{count} violation(s)", code=Exit.UNHEALTHY)
    if CheckResult.UNKNOWN in check_results:
        raise CliError("undecided", hint="repeat with a larger --steps", code=Exit.FAILED)


def _row(path: Path, report: Report) -> dict[str, object]:
    return {
        "file": str(path),
        "check_result": report.check_result.value,
        "operations": report.operations,
        "keys": report.keys,
        "log_batches": report.batches,
        "log_gaps": report.gaps,
        "log_offsets_unread": report.unread,
        "watched": report.deliveries,
        "steps": report.steps,
        "violations": len(report.violations),
        "rules": sorted({each.rule for each in report.violations}),
        "undecided": report.undecided,
        "outcomes": report.outcomes,
    }
