"""An Arrow table as rows of plain values, the way results are shown.

Most columns have few different values, so each value is put into words once, and Arrow joins the
texts. Row by row a hundred thousand rows take a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, overload

import pyarrow as pa
import pyarrow.compute as pc

from quorate.cli.column_rows import ColumnRows

_ROWS_PER_BLOCK = 1 << 14
"""Few enough for Arrow's limit of two gigabytes of text in one array."""


class ArrowRows(ColumnRows):
    """The rows of a table as text, numbers, booleans, None, lists and mappings.

    Times become text in UTC with milliseconds. A time without a zone is taken for UTC.
    """

    def __init__(self, table: pa.Table) -> None:
        """The names of the columns differ."""
        self._table = pa.table(
            [_with_text_times(column) for column in table.columns], table.schema.names
        )

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @overload
    def __getitem__(self, place: int) -> Mapping[str, object]: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Mapping[str, object]]: ...
    def __getitem__(
        self, place: int | slice
    ) -> Mapping[str, object] | Sequence[Mapping[str, object]]:
        return list(self)[place]

    def __iter__(self) -> Iterator[dict[str, object]]:
        names = self._table.schema.names
        columns = [_values(column) for column in self._table.columns]
        return (dict(zip(names, row)) for row in zip(*columns))

    def json_blocks(
        self, encode: Callable[[object], str], *, between: str, behind_name: str
    ) -> Iterator[list[str]]:
        """Yield some rows at a time as JSON objects; see ``ColumnRows``."""
        names = self._table.schema.names
        ahead = [
            f"{between if number else '{'}{encode(name)}{behind_name}"
            for number, name in enumerate(names)
        ]
        for block in _blocks(self._table):
            parts: list[object] = []
            for text, column in zip(ahead, block.columns):
                parts += [text, _texts(column, encode)]
            joined = pc.binary_join_element_wise(*parts, "}", "")
            yield joined.to_pylist()

    def cells(
        self, columns: Sequence[str], as_text: Callable[[str, object], str]
    ) -> list[list[str]]:
        """Return the texts of these columns."""
        return [
            [
                text
                for block in _blocks(self._table.select([name]))
                for text in _texts(block.column(0), partial(as_text, name)).to_pylist()
            ]
            for name in columns
        ]

    def are_numbers(self, column: str) -> bool:
        """Whether there are values in this column, and all of them are numbers."""
        found = self._table.column(column)
        if pa.types.is_integer(found.type):
            return bool(len(found)) and not found.null_count
        # A number that JSON has no form for is shown as text.
        kinds = set(map(type, _values(found))) if pa.types.is_floating(found.type) else set()
        return kinds == {float}


def _blocks(table: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, table.num_rows, _ROWS_PER_BLOCK):
        yield table.slice(start, _ROWS_PER_BLOCK)


def _texts(column: pa.ChunkedArray, convert: Callable[[Any], str]) -> pa.ChunkedArray:
    """Return the text of each value, none of them null."""
    if pa.types.is_integer(column.type):
        # A table has a word for -1 in some columns.
        texts = pc.fill_null(pc.cast(column, pa.string()), convert(None))
        return pc.if_else(pc.equal(texts, "-1"), convert(-1), texts)
    if not (pa.types.is_string(column.type) or pa.types.is_boolean(column.type)):
        return pa.array(map(convert, _values(column)), pa.string())
    encoded = pc.dictionary_encode(column, null_encoding="encode").combine_chunks()
    return pa.array(map(convert, encoded.dictionary.to_pylist()), pa.string()).take(encoded.indices)


def _with_text_times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if not pa.types.is_timestamp(kind):
        return column
    cut = pc.cast(pc.cast(column, pa.timestamp("ms", kind.tz), safe=False), pa.timestamp("ms"))
    dated = pc.utf8_replace_slice(pc.cast(cut, pa.string()), 10, 11, "T")
    return pc.binary_join_element_wise(dated, "Z", "")


def _values(column: pa.ChunkedArray) -> Sequence[object]:
    kind = column.type
    values: list[object] = column.to_pylist()
    if _is_plain(kind) or (pa.types.is_list(kind) and _is_plain(kind.value_type)):
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
