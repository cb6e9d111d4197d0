"""Tables whose cells are folded to the width of a terminal, by a library that loads slowly."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from quorate.cli.table_cells import TableCells


def folded_fields(fields: Sequence[tuple[str, Sequence[str]]], *, width: int) -> list[str]:
    """Return the lines of each field, values folded to ``width``."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for key, (first, *others) in fields:
        grid.add_row(Text(key), Text(first))
        for line in others:
            grid.add_row(Text(""), Text(line))
    return _printed(grid, width)


def folded_rows(cells: TableCells, *, width: int) -> list[str]:
    """Return the header and the rows, long cells folded to ``width``; nothing is ever cut."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name, is_number in zip(cells.names, cells.are_numbers, strict=True):
        table.add_column(
            name, justify="right" if is_number else "left", no_wrap=is_number, overflow="fold"
        )
    for row in zip(*cells.columns, strict=True):
        table.add_row(*(Text(cell) for cell in row))
    return _printed(table, width)


def _printed(table: Table, width: int) -> list[str]:
    made = io.StringIO()
    Console(file=made, width=width, no_color=True, force_terminal=False, highlight=False).print(
        table
    )
    # The library fills the last column with spaces.
    return [line.rstrip(" ") for line in made.getvalue().splitlines()]
