"""The audit questions, as Spark SQL over the tables of an export or of a log directory.

- What was the state of everything as of an offset?
- Who led which partition, from when to when, and why did it change?
- Who changed which configuration, from what to what, when and why?

Typed rows hold the whole state after each change, as replayed. A question only selects rows; no
code here interprets records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from audit.errors import AuditError
from audit.export_files import ExportFolder
from audit.schema import DELETE, HISTORY, SET, key_columns, own_columns, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LATEST = (1 << 63) - 1
"""As-of offset that selects everything."""

# A baseline restates everything: an entity that it does not name no longer exists.
_RESET = """
    SELECT coalesce(max(batch_end_offset), 0) AS offset
    FROM {history} WHERE is_baseline AND batch_end_offset <= :as_of
"""

_STATE = """
    WITH reset AS (%(reset)s),
    ranked AS (
        SELECT changes.*, row_number() OVER (
            PARTITION BY %(keys)s
            ORDER BY effective_offset DESC, changes.offset DESC, change_index DESC
        ) AS age
        FROM {changes} AS changes CROSS JOIN reset
        WHERE effective_offset <= :as_of AND (
            effective_offset > reset.offset
            OR (is_baseline AND effective_offset = reset.offset)
        )
    )
    SELECT %(columns)s, offset AS changed_offset, append_time AS changed_time,
           record_type AS changed_by, principal, reason
    FROM ranked WHERE age = 1 AND change = '%(set)s'
    ORDER BY %(order)s
"""

_LEADERS = """
    WITH resets AS (
        SELECT DISTINCT batch_end_offset AS offset
        FROM {history} WHERE is_baseline AND batch_end_offset <= :as_of
    ),
    steps AS (
        SELECT *, lag(leader_epoch) OVER each AS leader_epoch_before,
               lag(change) OVER each AS change_before
        FROM {changes} WHERE effective_offset <= :as_of
        WINDOW each AS (
            PARTITION BY topic_id, partition ORDER BY effective_offset, offset, change_index
        )
    ),
    turns AS (
        SELECT *, lead(effective_offset) OVER each AS next_offset,
               lead(append_time) OVER each AS next_time
        FROM steps
        WHERE change = '%(delete)s' OR is_baseline OR change_before IS NULL
           OR change_before = '%(delete)s' OR leader_epoch <> leader_epoch_before
        WINDOW each AS (
            PARTITION BY topic_id, partition ORDER BY effective_offset, offset, change_index
        )
    )
    SELECT topic, topic_id, partition, leader, leader_epoch,
           effective_offset AS from_offset, append_time AS from_time,
           coalesce(next_offset, (
               SELECT min(offset) FROM resets WHERE offset > effective_offset
           )) AS until_offset,
           next_time AS until_time, record_type AS cause, is_derived, principal, reason
    FROM turns WHERE change = '%(set)s'
    ORDER BY topic, topic_id, partition, from_offset, turns.offset, change_index
"""

_CONFIG_CHANGES = """
    SELECT resource_type, resource_name, config_name, old_value, value, change,
           effective_offset AS offset, append_time AS time, record_type AS cause,
           principal, client_id, request_id, reason
    FROM {changes} WHERE effective_offset <= :as_of AND NOT is_baseline
    ORDER BY effective_offset, {changes}.offset, change_index, config_name
"""


@dataclass(frozen=True, slots=True)
class AuditTables:
    """The tables of one audit trail; each is opened when a question needs it."""

    spark: SparkSession
    open_table: Callable[[str], DataFrame]

    def ask(self, query: str, table: str, as_of: int) -> DataFrame:
        """Run a query of this module over ``table``."""
        frames = {"changes": self.open_table(table)}
        if "{history}" in query:
            frames["history"] = self.open_table(HISTORY)
        return self.spark.sql(query, args={"as_of": as_of}, **frames)


def tables_of_export(spark: SparkSession, folder: Path) -> AuditTables:
    """Open the complete files of an export; a table without rows is empty, not missing.

    Raises:
        AuditError: The folder contains no export.
    """
    export = ExportFolder(folder)
    if not export.ranges():
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
    """

    def open_table(table: str) -> DataFrame:
        read = spark.read.format("cluster_metadata").option("path", str(source))
        read = read.option("uncommitted", str(with_unknown).lower())
        return read.option("table", table).load()

    return AuditTables(spark, open_table)


def state_as_of(tables: AuditTables, table: str, as_of: int = LATEST) -> DataFrame:
    """Return every entity of a typed table as of an offset (exclusive), sorted by key.

    Each row names the record that last changed it, when, by whom and why.
    """
    keys = key_columns(table)
    names = [column.name for column in own_columns(table)]
    order = ["topic", *keys] if "topic" in names else keys
    query = _STATE % {
        "reset": _RESET,
        "keys": ", ".join(keys),
        "columns": ", ".join(names),
        "order": ", ".join(order),
        "set": SET,
    }
    return tables.ask(query, table, as_of)


def leadership_timeline(tables: AuditTables, as_of: int = LATEST) -> DataFrame:
    """Return the leaders of each partition, one row per leader epoch, as of an offset.

    A leader led [from_offset, until_offset); null means that it still leads. Leader -1 means none.
    ``cause`` names the record that began the row.
    """
    return tables.ask(_LEADERS % {"set": SET, "delete": DELETE}, "partitions", as_of)


def config_changes(tables: AuditTables, as_of: int = LATEST) -> DataFrame:
    """Return every change of a configuration below an offset: who, when, what, why."""
    return tables.ask(_CONFIG_CHANGES, "configs", as_of)
