"""Answers an audit question, or a query of one's own, from an export or a log, by one engine."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from quorate.cli.audit_extra import need_arrow, reported_damage
from quorate.cli.audit_source import (
    check_is_no_export,
    check_one_source,
    check_text,
    no_export,
    unknown_table,
)
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.session import Session

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from audit.database import AuditDatabase
    from audit.plan import ReadPlan
    from audit.questions import Query

DUCKDB, SPARK = "duckdb", "spark"


@dataclass(frozen=True, slots=True)
class AuditSource:
    """What a command is to read, the folder of an export or a log, and by which engine."""

    folder: Path | None
    log: Path | None
    as_of: int | None
    uncommitted: bool
    engine: str = DUCKDB
    keep: bool = True
    """Whether rows of a log are kept for the next question."""

    def check(self) -> None:
        """Check the options against each other.

        Raises:
            CliError: They contradict each other, or pyarrow is not installed.
            AuditError: The engine is not installed.
        """
        check_one_source(self.folder, self.log)
        if self.uncommitted and self.log is None:
            raise CliError(
                "--uncommitted reads a log; an export has what `quorate export` took in",
                code=Exit.USAGE,
            )
        if self.engine == SPARK:
            # First: its extra brings pyarrow as well.
            from audit.session import require_pyspark

            require_pyspark()
        need_arrow()
        if self.engine != SPARK:
            from audit.database import require_duckdb

            require_duckdb()

    def limit(self) -> int:
        """Return the as-of offset to ask for."""
        from audit.questions import LATEST

        return LATEST if self.as_of is None else self.as_of

    def answered_to(self, end_offset: int) -> int:
        """Return the offset that an answer from a source with this end is true for."""
        return end_offset if self.as_of is None else min(self.as_of, end_offset)


class Shown(NamedTuple):
    """The columns of a table: those that fit a terminal, and all, for ``--wide``."""

    narrow: Sequence[str]
    wide: Sequence[str]


def answer(session: Session, kind: str, shown: Shown, query: Query, source: AuditSource) -> None:
    """Show the answer to an audit question.

    Raises:
        CliError: The options contradict each other, an extra is missing, or the log is damaged.
        QuorateError: The source cannot answer.
    """
    source.check()
    topic = query.arguments.get("topic")
    check_text(topic or "", "--topic")
    plan, end_offset = look_at(session, source)
    if source.engine == SPARK:
        rows = _ask_spark(session, query, source)
    else:
        with (
            session.progress("reading", None),
            database(source, plan, query.tables, query.types, topic) as found,
        ):
            rows = found.ask(query)
    is_missing = topic is not None and not rows.num_rows
    if not is_missing or session.output != "table":
        _show(session, kind, shown, rows, source.answered_to(end_offset))
    if is_missing:
        raise CliError(
            f"nothing was found for the topic {topic!r} as of offset "
            f"{source.answered_to(end_offset)}",
            hint="capital and small letters differ in its name",
            code=Exit.NOT_FOUND,
        )


def answer_sql(session: Session, text: str, source: AuditSource) -> None:
    """Show the answer to a query of somebody's own.

    Raises:
        CliError: As ``answer``; or the query is not valid.
        QuorateError: The source cannot answer.
    """
    check_text(text, "the query")
    source.check()
    from audit.database import tables_named
    from audit.errors import QueryError
    from audit.questions import views
    from audit.schema import TABLES

    plan, end_offset = look_at(session, source)
    with session.progress("reading", None), database(source, plan, tables_named(text)) as found:
        try:
            table = found.ask_sql(text)
        except QueryError as error:
            unknown = unknown_table(str(error), [*TABLES, *(name for name, _ in views())])
            raise unknown or CliError(str(error), code=Exit.USAGE) from error
    columns = table.schema.names
    repeated = sorted({name for name in columns if columns.count(name) > 1})
    if repeated:
        raise CliError(
            f"several columns of the answer are called {', '.join(repeated)}",
            hint="give them names with AS",
            code=Exit.USAGE,
        )
    _show(session, "AuditQuery", Shown(columns, columns), table, source.answered_to(end_offset))


def database(
    source: AuditSource,
    plan: ReadPlan | None,
    tables: Collection[str],
    types: Collection[str] = (),
    topic: str | None = None,
) -> AbstractContextManager[AuditDatabase]:
    """Open a source in DuckDB; of a log as ``database_of_log`` has it."""
    from audit.caches import cache_folder
    from audit.database import database_of_export, database_of_log

    if plan is None:
        return database_of_export(source.folder or Path(), as_of=source.limit())
    cache = cache_folder(os.environ) / "audit" if source.keep else None
    return database_of_log(
        plan,
        tables,
        as_of=source.limit(),
        types=types,
        topic=topic,
        cache=cache,
        processes=len(os.sched_getaffinity(0)),
    )


def _ask_spark(session: Session, query: Query, source: AuditSource) -> pa.Table:
    from audit.session import local_session
    from audit.views import tables_of_export, tables_of_log

    path = source.folder or source.log or Path()
    with session.progress("asking Spark", None), local_session(source=path) as spark:
        if source.folder is not None:
            tables = tables_of_export(spark, source.folder)
        else:
            tables = tables_of_log(spark, path, with_unknown=source.uncommitted)
        return tables.ask(query).toArrow()


def look_at(session: Session, source: AuditSource) -> tuple[ReadPlan | None, int]:
    """Return the plan of a log, None for an export, and the offset that the source ends at.

    Warns of what is wrong with a log, before an engine would wrap that into an error of its own.
    """
    if source.log is None:
        from audit.export_contents import complete_ranges
        from audit.export_files import ExportFolder

        folder = source.folder or Path()
        ranges = complete_ranges(ExportFolder(folder))
        if not ranges:
            raise no_export(folder)
        return None, _up_to(session, source, ranges[-1].end)
    from audit.directory import plan_source

    log = source.log
    check_is_no_export(log)
    with reported_damage():
        plan = plan_source(log, with_unknown=source.uncommitted)
        whole = plan_source(log, with_unknown=True) if plan.problems else plan
    for problem in plan.problems:
        session.warn(problem)
    if plan.end_offset < whole.end_offset:
        session.warn(
            f"{log}: answered as of offset {plan.end_offset}; what follows, up to "
            f"{whole.end_offset}, is not known to be committed, and --uncommitted takes it in"
        )
        return plan, plan.end_offset
    return plan, _up_to(session, source, plan.end_offset)


def _up_to(session: Session, source: AuditSource, end_offset: int) -> int:
    """Return the end of a source; warn if the question is about what lies behind it."""
    if source.as_of is not None and source.as_of > end_offset:
        session.warn(
            f"{source.folder or source.log}: ends at offset {end_offset}, below --as-of "
            f"{source.as_of}; answered as of {end_offset}"
        )
    return end_offset


def _show(session: Session, kind: str, shown: Shown, found: pa.Table, offset: int) -> None:
    from audit.cycle_collection import rare_collections
    from quorate.cli.arrow_rows import ArrowRows

    with rare_collections():
        fields = {"as_of_offset": offset}
        rows = ArrowRows(found)
        session.show(Result(kind, fields, rows=rows, columns=shown.narrow, wide=shown.wide))
