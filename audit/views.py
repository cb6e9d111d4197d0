"""The tables of an audit trail in Spark, and the answers to the audit questions over them.

``audit.questions`` has the questions. ``audit.database`` answers the same ones without Java.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from audit import questions
from audit.errors import AuditError
from audit.export_contents import complete_ranges
from audit.export_files import ExportFolder
from audit.questions import BASELINES, BASELINES_OF_HISTORY, LATEST, Query
from audit.schema import TABLES, spark_schema
from audit.source_path import local_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class AuditTables:
    """The tables of one audit trail; each is opened when a question needs it."""

    spark: SparkSession
    open_table: Callable[[str], DataFrame]
    baselines: list[int] | None = None
    """End offsets of the baselines; None means that ``history`` has them."""
    _opened: dict[str, DataFrame] = field(default_factory=dict)

    def ask(self, query: Query) -> DataFrame:
        """Return the answer to a question."""
        frames = {table: self._frame(table) for table in sorted(query.tables)}
        return self.spark.sql(query.text, args=dict(query.arguments), **frames)

    def _frame(self, table: str) -> DataFrame:
        if table not in self._opened:
            is_table = table != BASELINES
            self._opened[table] = self.open_table(table) if is_table else self._open_baselines()
        return self._opened[table]

    def _open_baselines(self) -> DataFrame:
        if self.baselines is None:
            return self.ask(Query(BASELINES_OF_HISTORY))
        return self.spark.createDataFrame([(end,) for end in self.baselines], "end_offset bigint")


def tables_of_export(spark: SparkSession, folder: Path) -> AuditTables:
    """Open the complete files of an export; a table without rows is empty, not missing.

    Raises:
        AuditError: The folder contains no export.
        ExportDamagedError: A file of the export is missing or damaged.
    """
    export = ExportFolder(folder)
    if not complete_ranges(export):
        raise AuditError(f"{folder}: contains no export")

    def open_table(table: str) -> DataFrame:
        schema = spark_schema(table)
        files = [str(path) for path in export.files(table)]
        if not files:
            return spark.createDataFrame([], schema)
        return spark.read.schema(schema).parquet(*files)

    return AuditTables(spark, open_table)


def tables_of_log(spark: SparkSession, source: Path, *, with_unknown: bool = False) -> AuditTables:
    """Open the tables of a log directory or file; the data source reads them when they are used.

    ``with_unknown`` includes records that are not known to be committed.

    Raises:
        AuditError, LogDamagedError, StorageError: As ``directory.plan_source``.
    """
    from audit.directory import plan_source

    # Planned before the tables are: a baseline that they have and this plan lacks adds no row
    # that the state does not have, but one that only this plan has would hide what is below it.
    baseline = plan_source(source, with_unknown=with_unknown).baseline

    def open_table(table: str) -> DataFrame:
        read = spark.read.format("cluster_metadata").option("path", str(source))
        read = read.option("uncommitted", str(with_unknown).lower())
        return read.option("table", table).load()

    return AuditTables(spark, open_table, [] if baseline is None else [baseline.end_offset])


def register_views(
    spark: SparkSession, path: Path | str, *, as_of: int = LATEST, with_unknown: bool = False
) -> list[str]:
    """Make an export, a log directory or a log file queryable by SQL; return the views' names.

    Creates or replaces one temporary view per table, and the views of ``questions.views`` as of an
    offset (exclusive). Over a log, the data source ``cluster_metadata`` must be registered.

    Raises:
        AuditError, LogDamagedError, StorageError: As ``tables_of_export`` and ``tables_of_log``.
    """
    source = local_path(str(path))
    if ExportFolder(source).ranges():
        tables = tables_of_export(spark, source)
    else:
        tables = tables_of_log(spark, source, with_unknown=with_unknown)
    names = []
    for table in TABLES:
        tables.ask(questions.whole_table(table)).createOrReplaceTempView(table)
        names.append(table)
    for name, query in questions.views(as_of):
        tables.ask(query).createOrReplaceTempView(name)
        names.append(name)
    return names


def state_as_of(tables: AuditTables, table: str, as_of: int = LATEST) -> DataFrame:
    """Return every entity of a typed table as of an offset, see ``questions.state_as_of``."""
    return tables.ask(questions.state_as_of(table, as_of))


def leadership_timeline(tables: AuditTables, as_of: int = LATEST) -> DataFrame:
    """Return the leaders of each partition, see ``questions.leadership_timeline``."""
    return tables.ask(questions.leadership_timeline(as_of))


def config_changes(tables: AuditTables, as_of: int = LATEST) -> DataFrame:
    """Return every change of a configuration, see ``questions.config_changes``."""
    return tables.ask(questions.config_changes(as_of))


def quorum_changes(tables: AuditTables, as_of: int = LATEST) -> DataFrame:
    """Return every change of leader and of the voters, see ``questions.quorum_changes``."""
    return tables.ask(questions.quorum_changes(as_of))
