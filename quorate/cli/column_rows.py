"""Rows of a result that are kept as columns, so that many of them are written column by column."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence


class ColumnRows(Sequence[Mapping[str, object]]):
    """Rows, and their texts. Each text is what would be made of the row by itself."""

    @abstractmethod
    def json_blocks(
        self, encode: Callable[[object], str], *, between: str, behind_name: str
    ) -> Iterator[list[str]]:
        """Yield some rows at a time as JSON objects.

        ``encode`` makes the JSON text of a value, ``between`` and ``behind_name`` are the
        separators of an object.
        """

    @abstractmethod
    def cells(
        self, columns: Sequence[str], as_text: Callable[[str, object], str]
    ) -> list[list[str]]:
        """Return the texts of these columns; ``as_text`` makes that of a name and a value."""

    @abstractmethod
    def are_numbers(self, column: str) -> bool:
        """Whether there are values in this column, and all of them are numbers."""
