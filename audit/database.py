"""The tables of an audit trail in DuckDB, in this process: answers without Java.

``audit.questions`` has the questions; ``audit.views`` answers the same ones in Spark, with the same
rows in the same order.

A database reads the files of an export where they lie. A log is replayed first, or the part of it
that no earlier question has replayed.
"""

from __future__ import annotations

import importlib.util
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from audit import questions
from audit.arrow_schema import arrow_schema
from audit.errors import AuditError, QueryError
from audit.export_contents import complete_ranges, damaged_file, readable
from audit.export_files import ExportFolder
from audit.interruptible import run_interruptible
from audit.questions import BASELINES, BASELINES_OF_HISTORY, LATEST, Query
from audit.schema import HISTORY, PARTITIONS, TABLES
from quorum.errors import StorageError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from audit.plan import ReadPlan

_WORD = re.compile(r"\w+")
_PARAMETER = re.compile(r":(\w+)")
_NAMES = {name: name for name in (*TABLES, BASELINES)}


def require_duckdb() -> None:
    """Check that DuckDB is installed.

    Raises:
        AuditError: It is not; the message names the extra to install.
    """
    if importlib.util.find_spec("duckdb") is None:
        raise AuditError("DuckDB is not installed; run: pip install 'quorate[parquet]'")


class AuditDatabase:
    """Answers questions and queries. It can read its own tables only, and write nothing."""

    def __init__(self, connection: DuckDBPyConnection, files: Sequence[Path] = ()) -> None:
        self._connection = connection
        self._files = files

    def ask(self, query: Query) -> pa.Table:
        """Return the answer to a question.

        Raises:
            ExportDamagedError: A file of an export is damaged.
        """
        return self._run(_text(query), query.arguments)

    def ask_sql(self, text: str) -> pa.Table:
        """Return the answer to a query in DuckDB's SQL.

        Tables and views (``questions.views``) stand by their names.

        Raises:
            QueryError: It is not one single query, or not valid.
            ExportDamagedError: A file of an export is damaged.
        """
        import duckdb

        try:
            statements = self._connection.extract_statements(text)
        except duckdb.Error as error:
            raise _invalid(error, text) from error
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise QueryError("expected one SELECT, DESCRIBE or SHOW TABLES; nothing else is run")
        return self._run(text, {})

    def _run(self, text: str, arguments: Mapping[str, str]) -> pa.Table:
        import duckdb

        def run() -> pa.Table:
            relation = self._connection.sql(text, params=dict(arguments) or None)
            return relation.to_arrow_table()

        try:
            return run_interruptible(run, self._connection.interrupt)
        except duckdb.Error as error:
            mistakes = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)
            if not isinstance(error, mistakes):
                run_interruptible(self._check_files, self._connection.interrupt)
            raise _invalid(error, text) from error

    def _check_files(self) -> None:
        """Check that the engine can read every row of the export's files.

        Raises:
            ExportDamagedError: One is damaged.
            StorageError: One cannot be read.
        """
        import duckdb

        _check_footers(self._files)
        for path in self._files:
            listed = _literal(str(path))
            try:
                rows = self._connection.sql(f"FROM read_parquet({listed})")
                rows.aggregate("max(hash(columns(*)))").fetchall()
            except duckdb.Error as error:
                raise damaged_file(path) from error


@contextmanager
def database_of_export(folder: Path, *, as_of: int = LATEST) -> Iterator[AuditDatabase]:
    """Open the complete files of an export; the views show the state as of an offset (exclusive).

    Raises:
        AuditError: The folder contains no export, or DuckDB is not installed.
        ExportDamagedError: A file of the export is missing or damaged.
    """
    export = ExportFolder(folder)
    if not complete_ranges(export):
        raise AuditError(f"{folder}: contains no export")
    with _connection() as connection:
        paths = _create_tables(connection, {table: export.files(table) for table in TABLES})
        _create_view(connection, BASELINES, _text(Query(BASELINES_OF_HISTORY)))
        for name, query in questions.views(as_of):
            _create_view(connection, name, _text(query))
        yield _locked(connection, paths, exported=[Path(path) for path in paths])


@contextmanager
def database_of_log(
    plan: ReadPlan,
    tables: Collection[str] = TABLES,
    *,
    as_of: int = LATEST,
    types: Collection[str] = (),
    topic: str | None = None,
    cache: Path | None = None,
    processes: int = 1,
) -> Iterator[AuditDatabase]:
    """Replay a planned log into these tables; other tables do not exist.

    There are the views over these tables, as of an offset (exclusive). ``types`` limits the rows of
    ``history``; ``topic`` says that of ``partitions`` the rows of one topic are enough, where no
    others are kept. ``cache`` is a folder for rows that the next question need not make again
    (``audit.log_cache``). Up to two ``processes`` make these. Limited rows are not kept, because
    few of them are quickly made.

    Raises:
        AuditError: DuckDB is not installed.
        LogDamagedError, CorruptBatchError, SnapshotCorruptError, StorageError: As ``read_tables``.
    """
    # Loaded here: an export needs none of what replays, which takes a third of a second to load.
    from audit.log_cache import LogCache
    from audit.reader import read_table, read_tables

    ends = [] if plan.baseline is None else [plan.baseline.end_offset]
    baselines = pa.table({"end_offset": pa.array(ends, pa.int64())})
    whole = [name for name in TABLES if name in tables and not (types and name == HISTORY)]
    kept = None if cache is None else LogCache(cache, plan, processes=processes)
    few: list[str] = []
    if topic is not None and PARTITIONS in whole and not (kept and kept.has_some(PARTITIONS)):
        # Making these takes a fourth of the time that it takes to make and keep all of them.
        whole.remove(PARTITIONS)
        few = [PARTITIONS]
    files = {} if not whole else None if kept is None else kept.files(whole)
    with _connection() as connection:
        paths: list[str] = []
        for table, rows in read_tables(plan, few, topic=topic).items():
            connection.register(table, rows)
        if files is not None:
            paths = _create_tables(connection, files)
        else:
            for table, rows in read_tables(plan, whole).items():
                connection.register(table, rows)
        if HISTORY in tables and HISTORY not in whole:
            found = read_table(plan, HISTORY, types=types)
            connection.register(HISTORY, pa.Table.from_batches(found, arrow_schema(HISTORY)))
        connection.register(BASELINES, baselines)
        for name, query in questions.views(as_of):
            if query.tables <= {BASELINES, *tables}:
                _create_view(connection, name, _text(query))
        yield _locked(connection, paths)


def tables_named(text: str) -> set[str]:
    """Return the tables that a query may read: those it names, and those of views that it names."""
    words = {word.lower() for word in _WORD.findall(text)}
    found = words & set(TABLES)
    for name, query in questions.views():
        if name in words:
            found |= query.tables - {BASELINES}
    return found


@contextmanager
def _connection() -> Iterator[DuckDBPyConnection]:
    require_duckdb()
    import duckdb

    with tempfile.TemporaryDirectory(prefix="quorate-audit-") as scratch:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "temp_directory": scratch,
        }
        with duckdb.connect(":memory:", config=settings) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            # As in Spark: null is less than everything.
            connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
            yield connection


def _create_tables(
    connection: DuckDBPyConnection, files: Mapping[str, Sequence[Path]]
) -> list[str]:
    """Create a view over the files of each table; return their paths.

    Raises:
        ExportDamagedError, StorageError: A file is damaged, or cannot be read; named by the error.
    """
    import duckdb

    all_paths = []
    for table, found in files.items():
        paths = [str(file.resolve()) for file in found]
        if paths:
            # By name: a table may have got columns since the first of its files was written.
            listed = ", ".join(_literal(path) for path in paths)
            text = f"FROM read_parquet([{listed}], union_by_name = true)"
            try:
                _create_view(connection, table, text)
            except duckdb.Error as error:
                _check_footers(found)
                raise StorageError(" ".join(str(error).split()), found[0]) from error
        else:
            connection.register(table, arrow_schema(table).empty_table())
        all_paths += paths
    return all_paths


def _check_footers(files: Sequence[Path]) -> None:
    """Check that the footer of each file can be read.

    Raises:
        ExportDamagedError: One is damaged.
        StorageError: One cannot be read.
    """
    for path in files:
        with readable(path):
            pq.read_metadata(path)


def _locked(
    connection: DuckDBPyConnection, files: list[str], *, exported: Sequence[Path] = ()
) -> AuditDatabase:
    """Leave nothing to be read but the tables: no other file, no network, no Python variable."""
    connection.execute("SET python_enable_replacements = false")
    connection.execute("SET allowed_paths = ?", [files])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return AuditDatabase(connection, exported)


def _create_view(connection: DuckDBPyConnection, name: str, text: str) -> None:
    # It opens the files that the view reads.
    run_interruptible(
        lambda: connection.execute(f"CREATE VIEW {name} AS {text}"), connection.interrupt
    )


def _text(query: Query) -> str:
    return _PARAMETER.sub(r"$\1", query.text.format_map(_NAMES))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _invalid(error: Exception, text: str) -> QueryError:
    message = " ".join(str(error).split("\n\nLINE ")[0].split())
    hint = ""
    if "syntax error" in message and re.search(r'(?<![".\w])offset\b(?!")', text, re.IGNORECASE):
        hint = "; the column offset needs double quotes, because OFFSET is a word of SQL"
    if message.startswith("Permission Error"):
        hint = "; a query reads the tables of the audit trail and nothing else"
    return QueryError(f"{message}{hint}")
