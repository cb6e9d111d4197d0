"""``quorate audit``: questions to the trail, answered by Spark."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorate.cli.audit_extra import need_arrow, reported_damage
from quorate.cli.command import LocalGroup, pass_session
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.session import Session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from audit.views import AuditTables

_PARTITION_COLUMNS = (
    "topic", "partition", "leader", "leader_epoch", "replicas", "isr", "changed_offset",
    "changed_time", "changed_by", "principal",
)  # fmt: skip
_LEADER_COLUMNS = (
    "topic", "partition", "leader", "leader_epoch", "from_offset", "until_offset", "from_time",
    "cause", "principal",
)  # fmt: skip
_CONFIG_COLUMNS = (
    "offset", "time", "resource_type", "resource_name", "config_name", "old_value", "value",
    "principal", "reason",
)  # fmt: skip


def _common(command: Callable[..., None]) -> Callable[..., None]:
    options = (
        click.option(
            "--export", "folder", type=click.Path(exists=True, file_okay=False, path_type=Path),
            help="Folder that `quorate export` wrote.",
        ),
        click.option(
            "--log", "log", type=click.Path(exists=True, path_type=Path),
            help="A data directory or log file, read directly instead of an export.",
        ),
        click.option(
            "--as-of", type=click.IntRange(min=0), metavar="OFFSET",
            help="Only what was visible below this offset (default: everything).",
        ),
        click.option(
            "--uncommitted", is_flag=True,
            help="With --log: also what is not known to be committed, such as all that lies behind "
            "the newest checkpoint of one Kafka controller among several.",
        ),
        click.option("--topic", help="Only this topic."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.group(cls=LocalGroup)
def audit() -> None:
    """Ask who did what to the metadata, and when. Needs Java, or the extra `spark`."""


@audit.command("partitions")
@_common
@pass_session
def partitions(
    session: Session, folder: Path | None, log: Path | None, as_of: int | None,
    uncommitted: bool, topic: str | None,
) -> None:  # fmt: skip
    """Show the state of all partitions as of an offset, and what made it so."""

    def ask(tables: AuditTables, as_of: int) -> DataFrame:
        from audit.views import state_as_of

        return _of_topic(state_as_of(tables, "partitions", as_of), "topic", topic)

    _answer(session, "AuditPartitions", _PARTITION_COLUMNS, ask, folder, log, as_of, uncommitted)


@audit.command("leaders")
@_common
@pass_session
def leaders(
    session: Session, folder: Path | None, log: Path | None, as_of: int | None,
    uncommitted: bool, topic: str | None,
) -> None:  # fmt: skip
    """Show who led each partition, from when to when, and why it changed."""

    def ask(tables: AuditTables, as_of: int) -> DataFrame:
        from audit.views import leadership_timeline

        return _of_topic(leadership_timeline(tables, as_of), "topic", topic)

    _answer(session, "AuditLeaders", _LEADER_COLUMNS, ask, folder, log, as_of, uncommitted)


@audit.command("configs")
@_common
@pass_session
def configs(
    session: Session, folder: Path | None, log: Path | None, as_of: int | None,
    uncommitted: bool, topic: str | None,
) -> None:  # fmt: skip
    """Show who changed which configuration, from what to what, when and why."""

    def ask(tables: AuditTables, as_of: int) -> DataFrame:
        from audit.views import config_changes

        changes = config_changes(tables, as_of)
        if topic is not None:
            changes = changes.filter(changes["resource_type"] == "topic")
        return _of_topic(changes, "resource_name", topic)

    _answer(session, "AuditConfigs", _CONFIG_COLUMNS, ask, folder, log, as_of, uncommitted)


def _of_topic(rows: DataFrame, column: str, topic: str | None) -> DataFrame:
    return rows if topic is None else rows.filter(rows[column] == topic)


def _answer(
    session: Session,
    kind: str,
    columns: tuple[str, ...],
    ask: Callable[[AuditTables, int], DataFrame],
    folder: Path | None,
    log: Path | None,
    as_of: int | None,
    uncommitted: bool,
) -> None:
    if (folder is None) == (log is None):
        raise CliError("name either --export or --log", code=Exit.USAGE)
    if uncommitted and log is None:
        raise CliError(
            "--uncommitted reads a log; an export has what `quorate export` took in",
            code=Exit.USAGE,
        )
    need_arrow()
    from audit.export_files import ExportFolder
    from audit.session import local_session, require_pyspark
    from audit.views import LATEST, tables_of_export, tables_of_log

    require_pyspark()
    if folder is None:
        end_offset = _look_at(session, log or Path(), uncommitted=uncommitted)
    else:
        end_offset = max((each.end for each in ExportFolder(folder).ranges()), default=0)
    source = folder or log or Path()
    with session.progress("asking Spark", None), local_session(source=source) as spark:
        if folder is not None:
            tables = tables_of_export(spark, folder)
        else:
            tables = tables_of_log(spark, log or Path(), with_unknown=uncommitted)
        found = ask(tables, LATEST if as_of is None else as_of).collect()
    rows = [{name: _plain(value) for name, value in row.asDict().items()} for row in found]
    answered = end_offset if as_of is None else min(as_of, end_offset)
    session.show(Result(kind, {"as_of_offset": answered}, rows=rows, columns=columns))


def _look_at(session: Session, log: Path, *, uncommitted: bool) -> int:
    """Warn of what is wrong with a log; returns the offset that it can be read up to.

    Before Spark: that would wrap what is wrong into an error of its own, and starts slowly.
    """
    from audit.directory import plan_source

    with reported_damage():
        plan = plan_source(log, with_unknown=uncommitted)
        whole = plan_source(log, with_unknown=True) if plan.problems else plan
    for problem in plan.problems:
        session.warn(problem)
    if plan.end_offset < whole.end_offset:
        session.warn(
            f"{log}: answered as of offset {plan.end_offset}; what follows, up to "
            f"{whole.end_offset}, is not known to be committed, and --uncommitted takes it in"
        )
    return plan.end_offset


def _plain(value: Any) -> object:
    """Spark gives times without a zone, in that of this process."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value
