"""A result as a table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from quorate.cli.cells import as_text
from quorate.visible_text import visible

_WIDTH_MAX = 1 << 16


def write_table(
    fields: Mapping[str, object],
    rows: Sequence[Mapping[str, object]] | None,
    columns: Sequence[str],
    stream: IO[str],
    *,
    colour: bool,
) -> None:
    """Write the fields of a result, one per line, then its rows."""
    # Wide enough for every cell: a cut value is worse than a long line.
    console = Console(
        file=stream,
        width=_WIDTH_MAX,
        no_color=not colour,
        force_terminal=None if colour else False,
        highlight=False,
    )
    if fields:
        width = max(len(visible(key)) for key in fields)
        for key, value in fields.items():
            name = f"{visible(key)}:"
            console.print(Text(f"{name:<{width + 1}}  {as_text(value)}"))
    if rows is None:
        return
    if fields:
        console.print()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    shown = list(columns) or sorted({key for row in rows for key in row})
    for column in shown:
        numbers = bool(rows) and all(
            isinstance(row.get(column), int | float) and not isinstance(row.get(column), bool)
            for row in rows
        )
        table.add_column(column.upper(), justify="right" if numbers else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(as_text(row.get(column))) for column in shown))
    console.print(table)
