"""The cells of a table: what is written, and how it is laid out where nothing has to be folded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quorate.cli.cells import named_text
from quorate.cli.column_rows import ColumnRows

GAP = "  "
"""Between two columns."""


@dataclass(frozen=True, slots=True)
class TableCells:
    """Texts by column, the columns' names, and which columns hold numbers only."""

    names: tuple[str, ...]
    are_numbers: tuple[bool, ...]
    columns: tuple[list[str], ...]

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> TableCells:
        """Return the cells of ``columns``; of all columns, by name, if none are given."""
        if isinstance(rows, ColumnRows) and columns:
            return cls(
                tuple(column.upper() for column in columns),
                tuple(map(rows.are_numbers, columns)),
                tuple(rows.cells(columns, named_text)),
            )
        shown = tuple(columns) or tuple(sorted({key for row in rows for key in row}))
        values = [[row.get(column) for row in rows] for column in shown]
        return cls(
            tuple(column.upper() for column in shown),
            tuple(map(_are_numbers, values)),
            tuple(
                [named_text(name, each) for each in column]
                for name, column in zip(shown, values, strict=True)
            ),
        )

    def lines(self) -> list[str]:
        """Return the header and the rows, each column as wide as its widest cell."""
        columns = [[name, *cells] for name, cells in zip(self.names, self.columns, strict=True)]
        formats = []
        for number, (cells, is_number) in enumerate(zip(columns, self.are_numbers, strict=True)):
            if all(map(str.isascii, cells)):
                formats.append(f"%{'' if is_number else '-'}{max(map(len, cells))}s")
            else:
                columns[number] = _padded(cells)
                formats.append("%s")
        row_format = GAP.join(formats)
        return [(row_format % row).rstrip(" ") for row in zip(*columns, strict=True)]


def width_of(text: str) -> int:
    """Columns of a terminal that a text takes: two for each Chinese character, for example."""
    if text.isascii():
        return len(text)
    # Loading the library takes longer than many a command.
    from rich.cells import cell_len

    return cell_len(text)


def _are_numbers(values: Sequence[object]) -> bool:
    kinds = set(map(type, values))
    return bool(kinds) and kinds <= {int, float}


def _padded(cells: list[str]) -> list[str]:
    widths = [width_of(cell) for cell in cells]
    width = max(widths)
    return [cell + " " * (width - own) for cell, own in zip(cells, widths, strict=True)]
