"""A result as a table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO

from quorate.cli.cells import as_text, named_text
from quorate.cli.table_cells import GAP, TableCells, width_of
from quorate.visible_text import visible

_WIDTH_MAX = 1 << 16
PLAIN_ROWS_MIN = 1_000
"""From so many rows on, nothing is folded: the library needs half a millisecond per row."""
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


def write_table(
    fields: Mapping[str, object],
    rows: Sequence[Mapping[str, object]] | None,
    columns: Sequence[str],
    stream: IO[str],
    *,
    colour: bool,
) -> None:
    """Write the fields of a result, one per line, then its rows. Without rows ``columns``, if there
    are any, are the fields to be shown.

    On a terminal long cells are folded so that lines fit it, unless there are ``PLAIN_ROWS_MIN``
    rows or more; nothing is ever cut. A field that is a list of mappings has a line for each of
    them.
    """
    is_terminal = stream.isatty()
    # A line of a file or a pipe is as long as its cells.
    width = _terminal_width() if is_terminal else _WIDTH_MAX
    if rows is None and columns:
        fields = {name: fields[name] for name in columns}
    if fields:
        stream.writelines(f"{line}\n" for line in _field_lines(fields, width))
    if rows is None:
        return
    if fields:
        stream.write("\n")
    shown = _row_lines(TableCells.of(rows, columns), width, is_long=len(rows) >= PLAIN_ROWS_MIN)
    if shown and colour and is_terminal:
        shown[0] = f"{_BOLD}{shown[0]}{_PLAIN}"
    stream.writelines(f"{line}\n" for line in shown)


def _terminal_width() -> int:
    import shutil

    return shutil.get_terminal_size().columns


def _field_lines(fields: Mapping[str, object], width: int) -> list[str]:
    named = [
        (f"{visible(key)}:", [named_text(key, value)] if value == -1 else lines_of(value))
        for key, value in fields.items()
    ]
    room = max(len(key) for key, _ in named)
    lines = [
        f"{key if place == 0 else '':{room}}{GAP}{line}".rstrip(" ")
        for key, texts in named
        for place, line in enumerate(texts)
    ]
    if _fit(lines, width):
        return lines
    from quorate.cli.folded_tables import folded_fields

    return folded_fields(named, width=width)


def _row_lines(cells: TableCells, width: int, *, is_long: bool) -> list[str]:
    lines = cells.lines()
    if is_long or _fit(lines, width):
        return lines
    from quorate.cli.folded_tables import folded_rows

    return folded_rows(cells, width=width)


def _fit(lines: Sequence[str], width: int) -> bool:
    return width == _WIDTH_MAX or all(width_of(line) <= width for line in lines)


def lines_of(value: object) -> list[str]:
    """Return the lines of one field: one, or one for each mapping of a list, in columns.

    Nothing, an empty text and an empty list are a dash alike.

    In such a line a truth value is a word of its own if it holds: ``is_cordoned`` as ``cordoned``.
    """
    if value == "" or (isinstance(value, list | tuple) and not value):
        return [as_text(None)]
    if not isinstance(value, list | tuple):
        return [as_text(value)]
    if not all(isinstance(each, Mapping) for each in value):
        return [as_text(value)]
    keys = list(dict.fromkeys(key for each in value for key in each))
    cells = [[_in_line(key, each) for key in keys] for each in value]
    widths = [max(len(row[place]) for row in cells) for place in range(len(keys))]
    return [
        GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def _in_line(key: str, each: Mapping[str, object]) -> str:
    value = each.get(key, "")
    if isinstance(value, bool):
        return visible(key.removeprefix("is_")) if value else ""
    return named_text(key, value)
