"""What a report on an audit trail says: five sections, each a chart and a table, by SQL in DuckDB.

Baseline rows restate what was; they begin a partition's or broker's rows and count as no change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from audit.database import AuditDatabase
from audit.questions import LATEST

TABLES_READ = ("history", "partitions", "configs", "brokers")
"""The tables that a report is made of."""
TABLE_ROWS_MAX = 20


class ChartKind(StrEnum):
    """How the chart of a section is drawn."""

    OVER_TIME = "over_time"
    """The first column is a time, the others are counts in the unit that begins there."""
    BARS = "bars"
    """The first column is a name, the second its count."""
    HISTOGRAM = "histogram"
    """One column of numbers."""


@dataclass(frozen=True, slots=True)
class Section:
    """One topic of the report. Rows are mappings with equal keys."""

    name: str
    title: str
    meaning: str
    total: int
    """How many things the section counts, in all."""
    counted: str
    """What they are."""
    chart: ChartKind
    chart_rows: Sequence[dict[str, Any]]
    rows: Sequence[dict[str, Any]]
    """At most ``TABLE_ROWS_MAX``, the most remarkable first."""
    reading: str = ""
    """What the chart shows, and what that may mean."""
    order: str = ""
    """Which rows come first."""
    unit: str = ""
    """Of a chart over time: ``minute``, ``hour`` or ``day``."""


_UNITS = (("minute", 3 * 3600), ("hour", 5 * 86_400))
"""The unit of a chart over time, and the seconds up to which it is used."""

_CHURN = """
    FROM leaders WHERE cause <> 'PartitionRecord'
"""
_ISR_STEPS = """
    WITH steps AS (
        SELECT topic, partition, topic_id, append_time, is_baseline,
               len(isr) AS in_sync, len(replicas) AS replicas,
               lag(len(isr)) OVER each AS in_sync_before, lead(append_time) OVER each AS next_time
        FROM partitions AS p WHERE effective_offset <= %(as_of)d
        WINDOW each AS (
            PARTITION BY topic_id, partition ORDER BY effective_offset, p.offset, change_index
        )
    )
"""
_FENCED = """
    WITH steps AS (
        SELECT broker_id, fenced, append_time, effective_offset, b.offset AS record_offset,
               lag(fenced) OVER each AS fenced_before
        FROM brokers AS b WHERE effective_offset <= %(as_of)d AND change = 'set'
        WINDOW each AS (PARTITION BY broker_id ORDER BY effective_offset, b.offset, change_index)
    ),
    phases AS (
        SELECT broker_id, fenced, append_time,
               epoch(lead(append_time) OVER each - append_time) AS seconds
        FROM steps WHERE fenced_before IS NULL OR fenced <> fenced_before
        WINDOW each AS (PARTITION BY broker_id ORDER BY effective_offset, record_offset)
    )
"""
_DRIFT = """
    WITH settings AS (
        SELECT resource_type, resource_name, config_name, count(*) AS changes,
               first(old_value ORDER BY c.offset) AS value_before,
               last(value ORDER BY c.offset) AS value_now,
               last(principal ORDER BY c.offset) AS last_principal, max(time) AS last_change
        FROM config_changes AS c GROUP BY ALL
    ),
    drifted AS (SELECT * FROM settings WHERE value_before IS DISTINCT FROM value_now)
"""


def make_report(database: AuditDatabase, as_of: int = LATEST) -> list[Section]:
    """Return the sections of a report as of an offset (exclusive), the database's own.

    Raises:
        QueryError: The database lacks one of ``TABLES_READ``.
    """
    asked = _Asked(database, as_of)
    return [
        _leadership(asked), _principals(asked), _configs(asked), _isr(asked), _fencing(asked)
    ]  # fmt: skip


def covered(database: AuditDatabase, as_of: int = LATEST) -> tuple[datetime, datetime] | None:
    """Return the times of the oldest and of the newest record; None if there is no record."""
    rows = database.ask_sql(
        "SELECT min(append_time) AS oldest, max(append_time) AS newest "  # noqa: S608 - a number
        f"FROM history WHERE batch_end_offset <= {as_of}"
    ).to_pylist()
    oldest, newest = rows[0]["oldest"], rows[0]["newest"]
    return None if oldest is None else (oldest, newest)


class _Asked:
    """Queries with the offset, the unit of time and the common parts filled in."""

    def __init__(self, database: AuditDatabase, as_of: int) -> None:
        self._database = database
        common = {"churn": _CHURN, "isr": _ISR_STEPS, "fenced": _FENCED, "drift": _DRIFT}
        self._parts: dict[str, object] = {
            name: text % {"as_of": as_of} for name, text in common.items()
        }
        self._parts |= {"as_of": as_of, "most": TABLE_ROWS_MAX}
        seconds = self.rows(
            "SELECT coalesce(epoch(max(append_time) - min(append_time)), 0) AS seconds "
            "FROM history WHERE batch_end_offset <= %(as_of)d"
        )[0]["seconds"]
        self.unit = next((unit for unit, until in _UNITS if seconds <= until), "day")
        self._parts["unit"] = self.unit

    def rows(self, text: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._database.ask_sql(text % self._parts).to_pylist()
        return found

    def total(self, text: str) -> int:
        return int(self.rows(text)[0]["total"])


def _leadership(asked: _Asked) -> Section:
    return Section(
        "leadership", "Leadership churn",
        "Changes of a partition's leader after its creation. Without leader: nobody could lead.",
        asked.total("SELECT count(*) AS total %(churn)s"), "leader changes", ChartKind.OVER_TIME,
        asked.rows(
            "SELECT date_trunc('%(unit)s', from_time) AS period, "
            "count(*) FILTER (WHERE leader >= 0) AS new_leader, "
            "count(*) FILTER (WHERE leader < 0) AS without_leader %(churn)s "
            "GROUP BY period ORDER BY period"
        ),
        asked.rows(
            "SELECT topic, partition, count(*) AS changes, "
            "count(*) FILTER (WHERE leader < 0) AS without_leader, max(from_time) AS last_change "
            "%(churn)s GROUP BY ALL ORDER BY changes DESC, topic, partition LIMIT %(most)d"
        ),
        f"Each group of bars is one {asked.unit}. High bars: brokers stopped or failed, or leaders "
        "were moved. Bars without leader: clients could neither read nor write these partitions.",
        "Partitions with the most changes first.", asked.unit,
    )  # fmt: skip


def _principals(asked: _Asked) -> Section:
    rows = asked.rows(
        "SELECT coalesce(h.principal, '(not recorded)') AS principal, count(*) AS records, "
        "count(DISTINCT batch_base_offset) AS requests, max(append_time) AS last_change "
        "FROM history AS h WHERE NOT is_derived AND NOT is_baseline AND NOT is_control "
        "AND batch_end_offset <= %(as_of)d GROUP BY ALL ORDER BY records DESC, 1 LIMIT %(most)d"
    )
    total = asked.total(
        "SELECT count(*) AS total FROM history WHERE NOT is_derived AND NOT is_baseline "
        "AND NOT is_control AND batch_end_offset <= %(as_of)d"
    )
    return Section(
        "principals", "Changes per principal",
        "Records that each principal wrote. Derived changes are not counted.",
        total, "records", ChartKind.BARS,
        [{"principal": row["principal"], "records": row["records"]} for row in rows], rows,
        "One bar per principal. \"(not recorded)\" wrote without a name: the cluster did not ask "
        "for one, or a node wrote by itself.",
        "Principals with the most records first.",
    )  # fmt: skip


def _configs(asked: _Asked) -> Section:
    return Section(
        "configs", "Configuration drift",
        "Settings whose value is not the one they had before their first change.",
        asked.total("%(drift)s SELECT count(*) AS total FROM drifted"), "settings differ",
        ChartKind.BARS,
        asked.rows(
            "%(drift)s SELECT config_name, count(*) AS settings FROM drifted GROUP BY ALL "
            "ORDER BY settings DESC, config_name LIMIT %(most)d"
        ),
        asked.rows(
            "%(drift)s SELECT * FROM drifted ORDER BY changes DESC, resource_type, "
            "resource_name, config_name LIMIT %(most)d"
        ),
        "One bar per setting: the number of resources where it has another value now.",
        "Settings with the most changes first; - means that no value was set.",
    )  # fmt: skip


def _isr(asked: _Asked) -> Section:
    return Section(
        "isr", "ISR stability",
        "How often a partition lost or regained an in-sync replica, and how long it had too few. "
        "A phase that still lasts is not counted in the seconds.",
        asked.total(
            "%(isr)s SELECT count(*) FILTER (WHERE in_sync < in_sync_before AND NOT "
            "is_baseline) AS total FROM steps"
        ),
        "shrinks", ChartKind.OVER_TIME,
        asked.rows(
            "%(isr)s SELECT date_trunc('%(unit)s', append_time) AS period, "
            "count(*) FILTER (WHERE in_sync < in_sync_before) AS shrinks, "
            "count(*) FILTER (WHERE in_sync > in_sync_before) AS expansions FROM steps "
            "WHERE in_sync <> in_sync_before AND NOT is_baseline GROUP BY period ORDER BY period"
        ),
        asked.rows(
            "%(isr)s SELECT topic, partition, "
            "count(*) FILTER (WHERE in_sync < in_sync_before) AS shrinks, "
            "count(*) FILTER (WHERE in_sync > in_sync_before) AS expansions, "
            "coalesce(sum(epoch(next_time - append_time)) FILTER (WHERE in_sync < replicas), 0) "
            "AS seconds_below FROM steps GROUP BY topic_id, topic, partition HAVING shrinks > 0 "
            "ORDER BY shrinks DESC, topic, partition LIMIT %(most)d"
        ),
        f"Each group of bars is one {asked.unit}. Shrinks and as many expansions: replicas fell "
        "behind and came back. Shrinks alone: replicas are missing still.",
        "Partitions with the most shrinks first; seconds below is how long replicas were missing.",
        asked.unit,
    )  # fmt: skip


def _fencing(asked: _Asked) -> Section:
    return Section(
        "fencing", "Time to unfence",
        "How long brokers were fenced, from registration or fencing until they were unfenced.",
        asked.total("%(fenced)s SELECT count(seconds) AS total FROM phases WHERE fenced"),
        "times unfenced", ChartKind.HISTOGRAM,
        asked.rows(
            "%(fenced)s SELECT seconds FROM phases WHERE fenced AND seconds IS NOT NULL "
            "ORDER BY seconds"
        ),
        asked.rows(
            "%(fenced)s SELECT broker_id, count(seconds) AS times, median(seconds) AS "
            "median_seconds, max(seconds) AS max_seconds, count(*) > count(seconds) AS "
            "still_fenced FROM phases WHERE fenced GROUP BY ALL "
            "ORDER BY max_seconds DESC, broker_id LIMIT %(most)d"
        ),
        "Each bar counts how often a broker was fenced for so many seconds. Bars far to the right: "
        "brokers that took long to come back.",
        "Brokers that were fenced longest first.",
    )  # fmt: skip
