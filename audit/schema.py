"""The tables of the audit trail: every column with its type and meaning, as plain data.

``history_rows`` and ``typed_tables`` make the rows. ``audit.arrow_schema`` converts the columns for
Arrow, ``spark_schema`` for Spark.

Two kinds of table:

- ``history``: one row per record of the log, including control records, plus the partition
  changes that follow from a broker event (requirement 630.17).
- Typed tables, one per family: one row per change of one entity, holding its whole state after
  the change. The state of everything as of an offset is therefore the last row of each key.

Offsets are half-open: a row is part of the state as of offset N if ``effective_offset`` is at
most N.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ColumnType(StrEnum):
    """The column types in use, by their names in Spark SQL."""

    BOOLEAN = "boolean"
    INT = "int"
    LONG = "bigint"
    DOUBLE = "double"
    TEXT = "string"
    TIME = "timestamp"
    INTS = "array<int>"
    TEXTS = "array<string>"


@dataclass(frozen=True, slots=True)
class Column:
    """One column. The ``key`` columns of a typed table identify the entity."""

    name: str
    type: ColumnType
    meaning: str
    key: bool = False


_B, _I, _L, _T = ColumnType.BOOLEAN, ColumnType.INT, ColumnType.LONG, ColumnType.TEXT

POSITION: tuple[Column, ...] = (
    Column("offset", _L, "Offset of the record; for a baseline row the last offset it covers."),
    Column(
        "change_index",
        _I,
        "0 for a record in the log, from 1 for changes derived from it; "
        "for a baseline row its number within the checkpoint.",
    ),
    Column("epoch", _I, "Epoch of the leader that wrote the record."),
    Column("batch_base_offset", _L, "First offset of the batch; 0 for a baseline row."),
    Column("batch_end_offset", _L, "End offset of the batch, exclusive."),
    Column("append_time", ColumnType.TIME, "When the leader appended it, milliseconds, UTC."),
    Column("record_type", _T, "Name of the record type, such as PartitionChangeRecord."),
    Column(
        "principal",
        _T,
        "Client: tls:, scram:, jwt: or unauthenticated: and its name; null if the log has none.",
    ),
    Column("client_id", _T, "Client id that the client sent."),
    Column("request_id", _T, "Id of the client's request."),
    Column("reason", _T, "Reason that the client gave."),
    Column("traceparent", _T, "Trace of the request (W3C)."),
    Column("is_derived", _B, "Not in the log itself: follows from the event at this offset."),
    Column("is_baseline", _B, "From the checkpoint that covers offsets the log no longer has."),
    Column("commit_state", _T, "'committed', or 'unknown' if the directory does not record it."),
)
"""First columns of every table: offset, time, client and reason."""

HISTORY = "history"
PARTITIONS = "partitions"

_HISTORY: tuple[Column, ...] = (
    Column("version", _I, "Schema version of the record as written; null for control records."),
    Column("is_control", _B, "Control record, written by the quorum itself."),
    Column("topic", _T, "Topic name, also if the record contains only the id."),
    Column("topic_id", _T, "Topic id, base64url."),
    Column("partition", _I, "Partition number."),
    Column("broker_id", _I, "Broker, or controller for controller registrations."),
    Column("resource_type", _T, "Resource type of a configuration: topic, broker, ..."),
    Column("resource_name", _T, "Resource name; empty for the cluster default."),
    Column("config_name", _T, "Configuration key."),
    Column("feature", _T, "Feature name."),
    Column("producer_id", _L, "Id of the producer."),
    Column("entity", _T, "Name of any other entity: user, ACL id, token, transactional id."),
    Column("payload", _T, "The whole record as JSON; credentials are hidden."),
    Column("digest", _T, "Log digest at batch_end_offset, hexadecimal; null if not known."),
)

CHANGE: tuple[Column, ...] = (
    Column(
        "effective_offset",
        _L,
        "First as-of offset (inclusive) at which the change is visible: "
        "end of its batch, or of its metadata transaction.",
    ),
    Column("change", _T, "'set' or 'delete'; a deletion has only the key columns."),
)
"""Columns of every typed table after the position."""

SET = "set"
DELETE = "delete"
COMMITTED = "committed"
UNKNOWN = "unknown"

_TYPED: dict[str, tuple[Column, ...]] = {
    "topics": (
        Column("topic_id", _T, "Topic id, base64url.", key=True),
        Column("topic", _T, "Topic name, also in a deletion."),
    ),
    "partitions": (
        Column("topic_id", _T, "Topic id, base64url.", key=True),
        Column("partition", _I, "Partition number.", key=True),
        Column("topic", _T, "Topic name, also in a deletion."),
        Column("leader", _I, "Leading broker, -1 for none."),
        Column("leader_epoch", _I, "Increases with every change that names a leader."),
        Column("partition_epoch", _I, "Increases with every change."),
        Column("replicas", ColumnType.INTS, "Brokers that hold it, preferred leader first."),
        Column("isr", ColumnType.INTS, "In-sync replicas."),
        Column("removing_replicas", ColumnType.INTS, "Removed by a reassignment."),
        Column("adding_replicas", ColumnType.INTS, "Added by a reassignment."),
        Column("elr", ColumnType.INTS, "Eligible leader replicas."),
        Column("last_known_elr", ColumnType.INTS, "Last known eligible leader replicas."),
        Column("leader_recovery_state", _I, "0 recovered, 1 recovering from an unclean election."),
        Column("directories", ColumnType.TEXTS, "Log directory of each replica, base64url."),
    ),
    "configs": (
        Column(
            "resource_type", _T, "topic, broker, broker_logger, client_metrics or group.", key=True
        ),
        Column(
            "resource_name", _T, "Name; empty with type broker for the cluster default.", key=True
        ),
        Column("config_name", _T, "Configuration key.", key=True),
        Column("value", _T, "New value; null in a deletion."),
        Column("old_value", _T, "Previous value; null if none was set."),
    ),
    "brokers": (
        Column("broker_id", _I, "Broker.", key=True),
        Column("broker_epoch", _L, "Epoch of the registration."),
        Column("incarnation_id", _T, "Incarnation id of the broker process."),
        Column("rack", _T, "Rack, null for none."),
        Column("fenced", _B, "Whether it is fenced."),
        Column("in_controlled_shutdown", _B, "Whether it is in controlled shutdown."),
        Column("endpoints", ColumnType.TEXTS, "NAME://host:port of each listener."),
        Column("log_dirs", ColumnType.TEXTS, "Online log directories, base64url."),
    ),
    "controllers": (
        Column("controller_id", _I, "Controller.", key=True),
        Column("incarnation_id", _T, "Incarnation id of the controller process."),
        Column("endpoints", ColumnType.TEXTS, "NAME://host:port of each listener."),
    ),
    "features": (
        Column("feature", _T, "Feature name.", key=True),
        Column("level", _I, "Finalised level; null in a deletion."),
    ),
    "producer_ids": (
        Column(
            "kind",
            _T,
            "'block' for the counter of producer ids, 'producer' for a producer.",
            key=True,
        ),
        Column("producer_id", _L, "The producer; null for the counter.", key=True),
        Column("producer_epoch", _I, "Epoch of the producer."),
        Column("next_producer_id", _L, "All ids below are allocated."),
    ),
    "client_quotas": (
        Column("entity", _T, "Parts of the entity as JSON, sorted by type.", key=True),
        Column("quota", _T, "Quota key.", key=True),
        Column("value", ColumnType.DOUBLE, "The limit; null in a deletion."),
    ),
    "acls": (
        Column("acl_id", _T, "ACL id, base64url.", key=True),
        Column("resource_type", _I, "Kafka's number of the resource type."),
        Column("resource_name", _T, "Resource or prefix."),
        Column("pattern_type", _I, "Kafka's number of the pattern type."),
        Column("acl_principal", _T, "Principal that the ACL applies to."),
        Column("host", _T, "Host that the ACL applies to."),
        Column("operation", _I, "Kafka's number of the operation."),
        Column("permission_type", _I, "Kafka's number: 2 deny, 3 allow."),
    ),
}

TYPED_TABLES: tuple[str, ...] = tuple(_TYPED)
TABLES: tuple[str, ...] = (HISTORY, *TYPED_TABLES)


def columns(table: str) -> tuple[Column, ...]:
    """Return every column of a table, in order.

    Raises:
        KeyError: There is no such table.
    """
    if table == HISTORY:
        return (*POSITION, *_HISTORY)
    return (*POSITION, *CHANGE, *_TYPED[table])


def own_columns(table: str) -> tuple[Column, ...]:
    """Return the columns of a typed table after ``POSITION`` and ``CHANGE``."""
    return _TYPED[table]


def key_columns(table: str) -> tuple[str, ...]:
    """Return the names of the columns that identify the entity of a typed row."""
    return tuple(column.name for column in _TYPED[table] if column.key)


def spark_schema(table: str, names: tuple[str, ...] = ()) -> str:
    """Return the table's schema as Spark DDL, of the columns ``names`` if there are any."""
    return ", ".join(
        f"`{column.name}` {column.type.value}"
        for column in columns(table)
        if not names or column.name in names
    )
