"""A result as a table for people."""

from __future__ import annotations

import io
import shutil
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
    """Write the fields of a result, one per line, then its rows.

    On a terminal long cells are folded so that lines fit it; nothing is ever cut. A field that is a
    list of mappings has a line for each of them.
    """
    made = io.StringIO()
    is_terminal = stream.isatty()
    console = Console(
        file=made,
        # A line of a file or a pipe is as long as its cells.
        width=shutil.get_terminal_size().columns if is_terminal else _WIDTH_MAX,
        no_color=not colour,
        force_terminal=None if colour else False,
        highlight=False,
    )
    if fields:
        _write_fields(fields, console)
    if rows is not None:
        if fields:
            console.print()
        console.print(_table(rows, columns, folds=is_terminal))
    # The library fills the last column with spaces.
    stream.write("".join(f"{line.rstrip(' ')}\n" for line in made.getvalue().splitlines()))


def _write_fields(fields: Mapping[str, object], console: Console) -> None:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for key, value in fields.items():
        first, *others = lines_of(value)
        grid.add_row(Text(f"{visible(key)}:"), Text(first))
        for line in others:
            grid.add_row(Text(""), Text(line))
    console.print(grid)


def lines_of(value: object) -> list[str]:
    """Return the lines of one field: one, or one for each mapping of a list, in columns."""
    if not isinstance(value, list | tuple) or not value:
        return [as_text(value)]
    if not all(isinstance(each, Mapping) for each in value):
        return [as_text(value)]
    keys = list(dict.fromkeys(key for each in value for key in each))
    cells = [[as_text(each[key]) if key in each else "" for key in keys] for each in value]
    widths = [max(len(row[place]) for row in cells) for place in range(len(keys))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def _table(rows: Sequence[Mapping[str, object]], columns: Sequence[str], *, folds: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    shown = list(columns) or sorted({key for row in rows for key in row})
    for column in shown:
        numbers = bool(rows) and all(
            isinstance(row.get(column), int | float) and not isinstance(row.get(column), bool)
            for row in rows
        )
        table.add_column(
            column.upper(),
            justify="right" if numbers else "left",
            no_wrap=numbers or not folds,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(Text(as_text(row.get(column))) for column in shown))
    return table
