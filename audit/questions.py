"""The audit questions as SQL, in the words that Spark and DuckDB have in common.

- What was the state of everything as of an offset?
- Who led which partition, from when to when, and why did it change?
- Who changed which configuration, from what to what, when and why?
- Who changed the voters or had leadership transferred, when and why?

Typed rows hold the whole state after each change, as replayed. A question only selects rows; no
code here interprets records.

Tables stand in braces, so that an engine can put in its own names for them. Both engines sort text
by bytes, and null first in ascending order. A topic is selected before its rows are numbered: an id
has one name for ever, so the answer is the same. ``offset`` is a keyword of DuckDB; it always
follows the name of its table here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from audit.schema import DELETE, SET, TYPED_TABLES, key_columns, own_columns

LATEST = (1 << 63) - 1
"""As-of offset that selects everything."""

BASELINES = "baselines"
"""A table of one column: ``end_offset`` of each baseline of the audit trail.

A baseline restates everything: an entity that it does not name no longer exists.
"""
BASELINES_OF_HISTORY = (
    "SELECT DISTINCT batch_end_offset AS end_offset FROM {history} WHERE is_baseline"
)
"""Makes that table, where it is not known without the rows."""

_STATE = """
    WITH reset AS (
        SELECT coalesce(max(end_offset), 0) AS reset_offset
        FROM {baselines} WHERE end_offset <= %(as_of)d
    ),
    ranked AS (
        SELECT changes.*, row_number() OVER (
            PARTITION BY %(keys)s
            ORDER BY effective_offset DESC, changes.offset DESC, change_index DESC
        ) AS age
        FROM {%(table)s} AS changes CROSS JOIN reset
        WHERE effective_offset <= %(as_of)d AND (
            effective_offset > reset_offset OR (is_baseline AND effective_offset = reset_offset)
        )%(only)s
    )
    SELECT %(columns)s, ranked.offset AS changed_offset, append_time AS changed_time,
           record_type AS changed_by, principal, reason
    FROM ranked WHERE age = 1 AND change = '%(set)s'
    ORDER BY %(order)s
"""

_LEADERS = """
    WITH steps AS (
        SELECT *, lag(leader_epoch) OVER each AS leader_epoch_before,
               lag(change) OVER each AS change_before
        FROM {partitions} AS changes WHERE effective_offset <= %(as_of)d%(only)s
        WINDOW each AS (
            PARTITION BY topic_id, partition
            ORDER BY effective_offset, changes.offset, change_index
        )
    ),
    turns AS (
        SELECT *, lead(effective_offset) OVER each AS next_offset,
               lead(append_time) OVER each AS next_time
        FROM steps
        WHERE change = '%(delete)s' OR is_baseline OR change_before IS NULL
           OR change_before = '%(delete)s' OR leader_epoch <> leader_epoch_before
        WINDOW each AS (
            PARTITION BY topic_id, partition ORDER BY effective_offset, steps.offset, change_index
        )
    )
    SELECT topic, topic_id, partition, leader, leader_epoch,
           effective_offset AS from_offset, append_time AS from_time,
           coalesce(next_offset, (
               SELECT min(end_offset) FROM {baselines}
               WHERE end_offset > effective_offset AND end_offset <= %(as_of)d
           )) AS until_offset,
           next_time AS until_time, record_type AS cause, is_derived, principal, reason
    FROM turns WHERE change = '%(set)s'
    ORDER BY topic, topic_id, partition, from_offset, turns.offset, change_index
"""

_CONFIG_CHANGES = """
    SELECT resource_type, resource_name, config_name, old_value, value, change,
           effective_offset AS offset, append_time AS time, record_type AS cause,
           principal, client_id, request_id, reason
    FROM {configs} AS changes
    WHERE effective_offset <= %(as_of)d AND NOT is_baseline%(only)s
    ORDER BY effective_offset, changes.offset, change_index, config_name
"""

_QUORUM_CHANGES = """
    WITH records AS (
        SELECT history.offset AS record_offset, history.*,
               CASE WHEN record_type = 'Voters'
                    THEN regexp_extract_all(payload, '"key":."id":([0-9]+)', 1) END AS voters,
               CASE WHEN record_type = 'LeaderChange'
                    THEN CAST(regexp_extract(payload, '"leaderId":([0-9]+)', 1) AS INT)
               END AS leader
        FROM {history} AS history
        WHERE is_control AND record_type IN ('LeaderChange', 'Voters')
          AND batch_end_offset <= %(as_of)d
    ),
    steps AS (
        SELECT *, lag(voters) OVER each AS voters_before, lag(leader) OVER each AS leader_before
        FROM records
        WINDOW each AS (PARTITION BY record_type ORDER BY record_offset, change_index)
    )
    SELECT record_offset AS offset, epoch, append_time AS time, record_type AS cause,
           leader_before, leader, voters_before, voters, principal, reason
    FROM steps WHERE NOT is_baseline
    ORDER BY record_offset, change_index
"""

_TABLE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Query:
    """One question: SQL with tables in braces and parameters as ``:name``."""

    text: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    types: frozenset[str] = frozenset()
    """Record types that it needs of ``history``; empty for all."""

    @property
    def tables(self) -> frozenset[str]:
        """The tables that it reads."""
        return frozenset(_TABLE.findall(self.text))


def whole_table(table: str) -> Query:
    """Ask for all rows of a table."""
    return Query("SELECT * FROM {%s}" % table)  # noqa: S608, UP031 - a table of ours


def state_as_of(table: str, as_of: int = LATEST, *, topic: str | None = None) -> Query:
    """Ask for every entity of a typed table as of an offset (exclusive), sorted by key.

    Each row names the record that last changed it, when, by whom and why. ``topic`` limits a table
    with a column ``topic`` to one.
    """
    keys = key_columns(table)
    names = [column.name for column in own_columns(table)]
    parts = {
        "as_of": as_of,
        "table": table,
        "keys": ", ".join(keys),
        "columns": ", ".join(names),
        "order": ", ".join(["topic", *keys] if "topic" in names else keys),
        "set": SET,
        "only": "" if topic is None else " AND topic = :topic",
    }
    return Query(_STATE % parts, _topic_argument(topic))


def leadership_timeline(as_of: int = LATEST, *, topic: str | None = None) -> Query:
    """Ask for the leaders of each partition, one row per leader epoch, as of an offset.

    A leader led [from_offset, until_offset); null means that it still leads. Leader -1 means none.
    ``cause`` names the record that began the row.
    """
    only = "" if topic is None else " AND topic = :topic"
    parts = {"as_of": as_of, "set": SET, "delete": DELETE, "only": only}
    return Query(_LEADERS % parts, _topic_argument(topic))


def config_changes(as_of: int = LATEST, *, topic: str | None = None) -> Query:
    """Ask for every change of a configuration below an offset: who, when, what, why."""
    only = "" if topic is None else " AND resource_type = 'topic' AND resource_name = :topic"
    return Query(_CONFIG_CHANGES % {"as_of": as_of, "only": only}, _topic_argument(topic))


def quorum_changes(as_of: int = LATEST) -> Query:
    """Ask for every change of leader and of the voters below an offset: who asked, when, and why.

    One row per record, with what was there before it; null where that is not known. A leader that
    nobody asked for has neither principal nor reason.
    """
    text = _QUORUM_CHANGES % {"as_of": as_of}
    return Query(text, types=frozenset({"LeaderChange", "Voters"}))


def views(as_of: int = LATEST) -> Iterator[tuple[str, Query]]:
    """Yield the name and the query of each view: the answers, for queries of one's own.

    ``<table>_state`` is the state of a typed table as of the offset; ``leaders``,
    ``config_changes`` and ``quorum_changes`` are the other questions.
    """
    for table in TYPED_TABLES:
        yield f"{table}_state", state_as_of(table, as_of)
    yield "leaders", leadership_timeline(as_of)
    yield "config_changes", config_changes(as_of)
    yield "quorum_changes", quorum_changes(as_of)


def _topic_argument(topic: str | None) -> dict[str, str]:
    return {} if topic is None else {"topic": topic}
