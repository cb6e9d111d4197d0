"""An Arrow table as rows of plain values, the way results are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def rows_of(table: pa.Table) -> list[dict[str, object]]:
    """Return the rows of a table as text, numbers, booleans, None, lists and mappings.

    Times become text in UTC with milliseconds. A time without a zone is taken for UTC.
    """
    names = table.schema.names
    columns = [_values(column) for column in table.columns]
    return [dict(zip(names, row)) for row in zip(*columns)]


def _values(column: pa.ChunkedArray) -> Sequence[object]:
    kind = column.type
    if pa.types.is_timestamp(kind):
        # Column by column: a hundred thousand rows take a second, and one by one several.
        cut = pc.cast(pc.cast(column, pa.timestamp("ms", kind.tz), safe=False), pa.timestamp("ms"))
        dated = pc.utf8_replace_slice(pc.cast(cut, pa.string()), 10, 11, "T")
        column = pc.binary_join_element_wise(dated, "Z", "")
    values: list[object] = column.to_pylist()
    if _is_plain(column.type) or (pa.types.is_list(kind) and _is_plain(kind.value_type)):
        return values
    return [_plain(value) for value in values]


def _is_plain(kind: pa.DataType) -> bool:
    tests: tuple[Callable[[Any], bool], ...] = (
        pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_boolean,
        pa.types.is_null,
    )  # fmt: skip
    return any(test(kind) for test in tests)


def _plain(value: Any) -> object:
    if isinstance(value, datetime):
        zoned = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return zoned.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, float) and not -float("inf") < value < float("inf"):
        return str(value)
    return value if isinstance(value, str | int | float | bool | None) else str(value)
