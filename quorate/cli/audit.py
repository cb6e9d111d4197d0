"""``quorate audit``: questions to the audit trail."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import click

from quorate.cli.audit_answer import DUCKDB, SPARK, AuditSource, Shown, answer, answer_sql
from quorate.cli.audit_report import write_report
from quorate.cli.audit_source import query_of_stdin
from quorate.cli.command import LocalGroup, pass_session, wide_option
from quorate.cli.ranges import WholeNumber
from quorate.cli.session import Session

_PARTITION = Shown(
    ("topic", "partition", "leader", "replicas", "isr", "changed_time", "principal"),
    (
        "topic", "partition", "leader", "leader_epoch", "replicas", "isr", "changed_offset",
        "changed_time", "changed_by", "principal",
    ),
)  # fmt: skip
_LEADER = Shown(
    ("topic", "partition", "leader", "from_time", "cause", "principal"),
    (
        "topic", "partition", "leader", "leader_epoch", "from_offset", "until_offset", "from_time",
        "cause", "principal",
    ),
)  # fmt: skip
_CONFIG = Shown(
    ("offset", "time", "resource_name", "config_name", "value", "principal", "reason"),
    (
        "offset", "time", "resource_type", "resource_name", "config_name", "old_value", "value",
        "principal", "reason",
    ),
)  # fmt: skip
_QUORUM = Shown(
    ("offset", "time", "epoch", "cause", "leader", "voters", "principal", "reason"),
    (
        "offset", "time", "epoch", "cause", "leader_before", "leader", "voters_before", "voters",
        "principal", "reason",
    ),
)  # fmt: skip


def _reads(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say what to read, and hand them over as an ``AuditSource``."""

    @functools.wraps(command)
    def with_source(
        folder: Path | None, log: Path | None, as_of: int | None, uncommitted: bool,
        cache: bool, engine: str = DUCKDB, **others: object,
    ) -> None:  # fmt: skip
        command(source=AuditSource(folder, log, as_of, uncommitted, engine, cache), **others)

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
            "--as-of", type=WholeNumber(min=0), metavar="OFFSET",
            help="Only what was visible below this offset (default: everything).",
        ),
        click.option(
            "--uncommitted", is_flag=True,
            help="With --log: also what is not known to be committed, such as all that lies behind "
            "the newest checkpoint of one Kafka controller among several.",
        ),
        click.option(
            "--no-cache", "cache", flag_value=False, default=True, type=bool,
            help="With --log: keep no rows in ~/.cache/quorate/audit for the next question, and "
            "use none.",
        ),
    )  # fmt: skip
    return _with_options(with_source, options)


_ENGINE = click.option(
    "--engine", type=click.Choice([DUCKDB, SPARK]), default=DUCKDB, show_default=True,
    help="What answers: DuckDB in this process, or Spark, which starts a Java runtime.",
)  # fmt: skip


def _asks(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a question: what to read, what of it, and what answers."""
    topic = click.option("--topic", help="Only this topic.")
    return _with_options(_reads(command), (topic, _ENGINE))


def _with_options(
    command: Callable[..., None], options: tuple[Callable[..., Callable[..., None]], ...]
) -> Callable[..., None]:
    for option in reversed(options):
        command = option(command)
    return command


@click.group(cls=LocalGroup)
def audit() -> None:
    """Ask who did what to the metadata, and when. Needs the extra `parquet`, and no Java."""


@audit.command("partitions")
@_asks
@wide_option
@pass_session
def partitions(session: Session, source: AuditSource, topic: str | None) -> None:
    """Show the state of all partitions as of an offset, and what made it so."""
    from audit.questions import state_as_of

    query = state_as_of("partitions", source.limit(), topic=topic)
    answer(session, "AuditPartitions", _PARTITION, query, source)


@audit.command("leaders")
@_asks
@wide_option
@pass_session
def leaders(session: Session, source: AuditSource, topic: str | None) -> None:
    """Show who led each partition, from when to when, and why it changed."""
    from audit.questions import leadership_timeline

    query = leadership_timeline(source.limit(), topic=topic)
    answer(session, "AuditLeaders", _LEADER, query, source)


@audit.command("configs")
@_asks
@wide_option
@pass_session
def configs(session: Session, source: AuditSource, topic: str | None) -> None:
    """Show who changed which configuration, from what to what, when and why."""
    from audit.questions import config_changes

    query = config_changes(source.limit(), topic=topic)
    answer(session, "AuditConfigs", _CONFIG, query, source)


@audit.command("quorum")
@_ENGINE
@_reads
@wide_option
@pass_session
def quorum(session: Session, source: AuditSource) -> None:
    """Show who changed the voters or had leadership transferred, when and why.

    A leader that was elected without a transfer has neither principal nor reason. A reason without
    a principal is a node's own.
    """
    from audit.questions import quorum_changes

    answer(session, "AuditQuorum", _QUORUM, quorum_changes(source.limit()), source)


@audit.command("query")
@click.option(
    "--sql", "text", required=True, metavar="SQL",
    help="One query in DuckDB's SQL; - reads it from standard input.",
)  # fmt: skip
@_reads
@pass_session
def query(session: Session, source: AuditSource, text: str) -> None:
    """Answer a query of your own, without being able to change anything.

    Tables: those of the export (docs/reference/audit-tables.md). Views: TABLE_state for the state
    of each of them as of --as-of, leaders, config_changes, quorum_changes. `SHOW TABLES` and
    `DESCRIBE NAME` work.
    """
    answer_sql(session, query_of_stdin() if text == "-" else text, source)


@audit.command("report")
@click.option(
    "--to", "target", required=True,
    type=click.Path(dir_okay=False, readable=False, path_type=Path),
    help="The HTML file to write; replaced if it exists.",
)  # fmt: skip
@_reads
@pass_session
def report(session: Session, source: AuditSource, target: Path) -> None:
    """Write a report as one HTML page with charts. Needs the extra `plots` as well.

    Leadership churn, changes per principal, configuration drift, ISR stability, time to unfence.
    """
    write_report(session, source, target)
