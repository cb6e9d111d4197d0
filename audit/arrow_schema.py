"""The columns of a table as an Arrow schema; apart from ``schema``, which needs no Arrow."""

from __future__ import annotations

import pyarrow as pa

from audit.schema import ColumnType, columns

_ARROW: dict[ColumnType, pa.DataType] = {
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.INT: pa.int32(),
    ColumnType.LONG: pa.int64(),
    ColumnType.DOUBLE: pa.float64(),
    ColumnType.TEXT: pa.string(),
    ColumnType.TIME: pa.timestamp("ms", tz="UTC"),
    ColumnType.INTS: pa.list_(pa.field("element", pa.int32())),
    ColumnType.TEXTS: pa.list_(pa.field("element", pa.string())),
}


def arrow_schema(table: str) -> pa.Schema:
    """Return the table's schema in Arrow and Parquet."""
    return pa.schema([pa.field(column.name, _ARROW[column.type]) for column in columns(table)])
