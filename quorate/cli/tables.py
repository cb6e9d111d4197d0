"""A result as a table for people."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from quorate.cli.cells import as_text
from quorate.visible_text import visible

_WIDTH_MAX = 1 << 16
PLAIN_ROWS_MIN = 1_000
"""From so many rows on, columns are aligned here: the library needs half a millisecond per row."""


def write_table(
    fields: Mapping[str, object],
    rows: Sequence[Mapping[str, object]] | None,
    columns: Sequence[str],
    stream: IO[str],
    *,
    colour: bool,
) -> None:
    """Write the fields of a result, one per line, then its rows.

    On a terminal long cells are folded so that lines fit it, unless there are ``PLAIN_ROWS_MIN``
    rows or more; nothing is ever cut. A field that is a list of mappings has a line for each of
    them.
    """
    is_long = rows is not None and len(rows) >= PLAIN_ROWS_MIN
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
        if not is_long:
            console.print(_table(rows, columns, folds=is_terminal))
    # The library fills the last column with spaces.
    stream.write("".join(f"{line.rstrip(' ')}\n" for line in made.getvalue().splitlines()))
    if rows is not None and is_long:
        stream.writelines(_aligned(rows, columns))


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


def _shown(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> list[str]:
    return list(columns) or sorted({key for row in rows for key in row})


def _are_numbers(values: Sequence[object]) -> bool:
    kinds = set(map(type, values))
    return bool(kinds) and kinds <= {int, float}


def _aligned(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a table, column by column as wide as its widest cell."""
    padded = []
    for column in _shown(rows, columns):
        values = [row.get(column) for row in rows]
        cells = [column.upper(), *map(as_text, values)]
        padded.append(_padded(cells, to_the_right=_are_numbers(values)))
    for line in zip(*padded):
        yield "  ".join(line).rstrip(" ") + "\n"


def _padded(cells: list[str], *, to_the_right: bool) -> list[str]:
    if all(map(str.isascii, cells)):
        width = max(map(len, cells))
        return [cell.rjust(width) if to_the_right else cell.ljust(width) for cell in cells]
    lengths = list(map(cell_len, cells))
    width = max(lengths)
    return [cell + " " * (width - length) for cell, length in zip(cells, lengths)]


def _table(rows: Sequence[Mapping[str, object]], columns: Sequence[str], *, folds: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    shown = _shown(rows, columns)
    for column in shown:
        numbers = _are_numbers([row.get(column) for row in rows])
        table.add_column(
            column.upper(),
            justify="right" if numbers else "left",
            no_wrap=numbers or not folds,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(Text(as_text(row.get(column))) for column in shown))
    return table
