"""``spark.read.format("cluster_metadata")``: the metadata log as a Spark data source.

This is the driver's half: it checks the options and plans the read, which fixes its end.
``source_reader`` reads on the executors, ``source_stream`` streams.

Options (only ``path`` is required):

- ``path``: directory or file, readable under this path by every executor; a ``file:`` URI is one.
- ``endpoint``: client addresses of nodes, separated by commas: the log is fetched over the network
  into the directory ``path`` first. With ``tlsCa``, ``tlsCert``, ``tlsKey``, ``user``,
  ``passwordFile``, ``tokenFile``.
- ``table``: ``history`` (default) or a typed table, see ``audit.schema``.
- ``startOffset``, ``endOffset``: first offset to read, first offset not to read.
- ``types``: record types of ``history`` to read, separated by commas.
- ``columns``: columns to return, separated by commas; all by default.
- ``asOfOffset``: the state of a typed table as of this offset, instead of its changes.
- ``uncommitted``: ``true`` also reads records not known to be committed; their rows are marked.
- ``minPartitions``: the number of tasks; by default as many as are worth it (``audit.splits``).
- ``maxOffsetsPerTrigger``: for streams, the approximate number of offsets per micro-batch.

Filters are not pushed down: pyspark 4.3.0 keeps pushed filters on a relation that is used
again, and later queries miss rows. Ranges, types and columns are therefore options.

See: SPARK-44076 (Python data source API), docs/audit-spark.md.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from audit.directory import plan_source
from audit.errors import AuditError
from audit.schema import HISTORY, TABLES, columns, spark_schema
from audit.source_endpoint import CONNECTION, fetch_copy
from audit.source_path import check_is_no_export, local_path
from audit.source_reader import HistoryReader, Question
from audit.source_stream import HistoryStream
from statemachine.records import RECORD_TYPES

_CONTROL_TYPES = frozenset(
    {"LeaderChange", "KRaftVersion", "Voters", "SnapshotHeader", "SnapshotFooter",
     "AbortMarker", "CommitMarker", "UnknownControl"}
)  # fmt: skip
_OPTIONS = frozenset(
    {
        "path",
        "table",
        "startoffset",
        "endoffset",
        "types",
        "asofoffset",
        "uncommitted",
        "maxoffsetspertrigger",
        "columns",
        "minpartitions",
        "endpoint",
        "tlsca",
        "tlscert",
        "tlskey",
        "user",
        "passwordfile",
        "tokenfile",
    }
)


class ClusterMetadataSource(DataSource):
    """The data source ``cluster_metadata``. Register it, or install ``pyspark_quorate``."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        # Not copied: a plain dict would lose that keys ignore case.
        super().__init__(options)
        unknown = sorted(key for key in options if key.lower() not in _OPTIONS)
        if unknown:
            raise AuditError(f"unknown option {', '.join(unknown)}")
        self._table = options.get("table", HISTORY)
        if self._table not in TABLES:
            raise AuditError(f"no table {self._table!r}; there are {', '.join(TABLES)}")

    @classmethod
    def name(cls) -> str:
        """Return the name to pass to ``format``."""
        return "cluster_metadata"

    def schema(self) -> str:
        """Return the requested columns of the requested table.

        Raises:
            AuditError: The table has no such column.
        """
        return spark_schema(self._table, self._columns())

    def reader(self, schema: StructType) -> DataSourceReader:
        """Plan the read of the directory, which fixes its end.

        Raises:
            AuditError: Options contradict each other, or there is nothing to read.
            LogDamagedError, StorageError: As ``directory.plan_source``.
        """
        del schema
        as_of = self._offset("asOfOffset")
        if as_of is not None and self._table == HISTORY:
            raise AuditError("asOfOffset needs a typed table, history has no state")
        start, end = self._offset("startOffset"), self._offset("endOffset")
        if as_of is not None and (start, end) != (None, None):
            raise AuditError("asOfOffset excludes startOffset and endOffset")
        question = self._question(as_of)
        plan = plan_source(self._fetched(), with_unknown=self._flag("uncommitted"))
        first = plan.first_offset if start is None else max(start, plan.first_offset)
        behind = plan.end_offset if end is None else min(end, plan.end_offset)
        return HistoryReader(plan, question, first, behind)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        """Follow the directory while its log grows.

        Raises:
            AuditError: An option is not available for streams.
        """
        del schema
        for option in ("asOfOffset", "endOffset", "uncommitted", "endpoint"):
            if option in self.options:
                raise AuditError(f"option {option} is not available for streams")
        question = self._question(None)
        path = self._path()
        check_is_no_export(path)
        return HistoryStream(
            str(path),
            question,
            self._offset("startOffset"),
            self._at_least_one("maxOffsetsPerTrigger"),
        )

    def _question(self, as_of: int | None) -> Question:
        tasks = self._at_least_one("minPartitions")
        return Question(self._table, self._types(), as_of, self._columns(), tasks)

    def _columns(self) -> tuple[str, ...]:
        wanted = _listed(self.options.get("columns", ""))
        known = [column.name for column in columns(self._table)]
        unknown = sorted(set(wanted) - set(known))
        if unknown:
            raise AuditError(
                f"table {self._table} has no column {', '.join(unknown)}; there are "
                f"{', '.join(known)}"
            )
        return tuple(name for name in known if name in wanted)

    def _path(self) -> Path:
        path = self.options.get("path")
        if not path:
            raise AuditError("option path is missing: set it to the directory or file to read")
        return local_path(path)

    def _fetched(self) -> Path:
        """Return the path, after a copy of the log was fetched into it if one is asked for.

        Raises:
            AuditError, StorageError: As ``fetch_copy``.
        """
        path, endpoint = self._path(), self.options.get("endpoint")
        given = {name: self.options[name] for name in CONNECTION if name in self.options}
        if endpoint is None:
            if given:
                raise AuditError(f"option {', '.join(given)} needs option endpoint")
            check_is_no_export(path)
            return path
        fetch_copy(path, _listed(endpoint), given)
        return path

    def _offset(self, option: str) -> int | None:
        text = self.options.get(option)
        if text is None:
            return None
        if not (text.isascii() and text.isdecimal()):
            raise AuditError(f"option {option} is {text!r}, expected a number")
        return int(text)

    def _at_least_one(self, option: str) -> int | None:
        number = self._offset(option)
        if number == 0:
            raise AuditError(f"option {option} is 0, expected at least 1")
        return number

    def _flag(self, option: str) -> bool:
        text = self.options.get(option, "false").lower()
        if text not in ("true", "false"):
            raise AuditError(f"option {option} is {text!r}, expected true or false")
        return text == "true"

    def _types(self) -> tuple[str, ...]:
        types = _listed(self.options.get("types", ""))
        known = _CONTROL_TYPES | {record_type.name for record_type in RECORD_TYPES.values()}
        unknown = sorted(set(types) - known)
        if unknown:
            raise AuditError(f"unknown record type {', '.join(unknown)} in option types")
        if types and self._table != HISTORY:
            raise AuditError("option types is only available for table history")
        return types


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
