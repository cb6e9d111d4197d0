"""Rows of an Arrow table are written as the same rows are one by one."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from quorate.cli import arrow_rows
from quorate.cli.arrow_rows import ArrowRows
from quorate.cli.output import LONG_ROWS_MIN, Result, render

VALUES: dict[str, tuple[pa.DataType, list[object]]] = {
    "text": (
        pa.string(),
        ["a", None, "", 'quoted "x"\\', "é数", "two\nlines\x1b[1m", "\u202e", "a"],
    ),
    "long_text": (pa.large_string(), ["b", None, "ä"]),
    "number": (pa.int32(), [1, -1, None, 2**31 - 1]),
    "leader": (pa.int32(), [-1, 3]),
    "size": (pa.uint64(), [0, 2**64 - 1]),
    "flag": (pa.bool_(), [True, None, False]),
    "time": (pa.timestamp("us", "UTC"), [datetime(2026, 11, 28, 1, 2, 3, 4999, UTC), None]),
    "list": (pa.list_(pa.int32()), [[1, -1], [], None]),
    "part": (pa.struct([("x", pa.int32())]), [{"x": -1}, None]),
    "ratio": (pa.float64(), [0.5, -1.0, float("inf"), None]),
    "sum": (pa.decimal128(38, 0), [Decimal(7), None]),
    "nothing": (pa.null(), [None]),
    "100%": (pa.int8(), [5]),
}


def table_of(size: int) -> pa.Table:
    columns = {}
    for name, (kind, values) in VALUES.items():
        filled = (values * (size // len(values) + 1))[:size]
        columns[name] = pa.chunked_array(
            [pa.array(filled[:7], kind), pa.array(filled[7:], kind)], kind
        )
    return pa.table(columns)


@pytest.mark.parametrize("output", ["table", "json", "jsonl", "yaml"])
@pytest.mark.parametrize("size", [0, 1, 40, LONG_ROWS_MIN + 5])
@pytest.mark.parametrize("is_wide", [True, False], ids=["every column", "one column at a time"])
def test_columns_are_written_as_rows(
    output: str, size: int, is_wide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_rows, "_ROWS_PER_BLOCK", 300)
    table = table_of(size)
    for names in [list(VALUES)] if is_wide else [[name] for name in VALUES]:
        rows = ArrowRows(table.select(names))
        texts = []
        for each in (rows, list(rows)):
            stream = io.StringIO()
            result = Result("T", {"as_of_offset": 7}, rows=each, columns=names)
            render(result, output, stream, colour=False)
            texts.append(stream.getvalue())
        assert texts[0] == texts[1]
        assert len(rows) == len(list(rows)) == size


def test_many_rows_are_encoded_by_different_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Value by value a question with 300,000 rows takes more than a second longer."""
    seen = []

    def counted(name: str, value: object) -> str:
        seen.append(name)
        return str(value)

    found = pa.table({"topic": ["a", "b"] * 5_000, "is_derived": [True, False] * 5_000})
    texts = ArrowRows(found).cells(["topic", "is_derived"], counted)
    assert list(map(len, texts)) == [10_000, 10_000]
    assert len(seen) == 4
    assert texts[0][:2] == ["a", "b"]


def test_a_row_can_be_taken_by_its_place() -> None:
    rows = ArrowRows(pa.table({"a": [1, 2, 3]}))
    assert rows[1] == {"a": 2}
    assert rows[-2:] == [{"a": 2}, {"a": 3}]
