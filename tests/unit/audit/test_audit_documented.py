"""The documents list every table, column and option, and none that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

from audit.schema import CHANGE, POSITION, TYPED_TABLES, Column, columns, own_columns
from audit.source import _OPTIONS

DOCS = Path(__file__).resolve().parents[3] / "docs"
TABLES = (DOCS / "reference" / "audit-tables.md").read_text(encoding="utf-8")
GUIDE = (DOCS / "audit-spark.md").read_text(encoding="utf-8")


def documented(heading: str) -> list[tuple[str, ...]]:
    """The cells of the table below a heading."""
    section = TABLES.split(f"\n### {heading}", 1)[1].split("\n### ")[0]
    rows = [line for line in section.split("\n") if line.startswith("| `")]
    return [tuple(cell.strip() for cell in row.strip("|").split(" | ")) for row in rows]


def expected(wanted: tuple[Column, ...]) -> list[tuple[str, ...]]:
    return [
        (f"`{column.name}`" + (" (key)" if column.key else ""), column.type.value, column.meaning)
        for column in wanted
    ]


def test_every_column_is_documented() -> None:
    assert documented("Position") == expected(POSITION)
    assert documented("Change") == expected(CHANGE)
    assert documented("`history`") == expected(columns("history")[len(POSITION) :])
    for table in TYPED_TABLES:
        assert documented(f"`{table}`") == expected(own_columns(table))


def test_every_option_is_documented() -> None:
    section = GUIDE.split("| Option | Meaning |")[1].split("\n\n")[0]
    first_cells = [line.split("|")[1] for line in section.split("\n") if line.startswith("| `")]
    named = {name.lower() for cell in first_cells for name in re.findall(r"`(\w+)`", cell)}
    assert named == _OPTIONS
