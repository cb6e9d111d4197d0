"""Pages of rows, and the words somebody looks for."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from quorum.errors import QuorumUsageError

PAGE_ROWS: Final = 50
_PAGE_MAX: Final = 1_000_000
TEXT_MAX: Final = 300


class NotFoundError(Exception):
    """There is no such entity; the message names it."""


def text_of(query: Mapping[str, str], name: str) -> str:
    """Return a parameter without blanks around it; empty if absent.

    Raises:
        QuorumUsageError: It is longer than ``TEXT_MAX``.
    """
    text = query.get(name, "").strip()
    if len(text) > TEXT_MAX:
        raise QuorumUsageError(f"{name} is longer than {TEXT_MAX} characters")
    return text


def number_of(query: Mapping[str, str], name: str, default: int, most: int = _PAGE_MAX) -> int:
    """Return a parameter that is a number in [0, most].

    Raises:
        QuorumUsageError: It is something else.
    """
    text = text_of(query, name)
    if not text:
        return default
    if not (text.isascii() and text.isdigit()) or int(text) > most:
        raise QuorumUsageError(f"{name} is no number from 0 to {most}: {text!r}")
    return int(text)


def like(text: str) -> str:
    """Return the LIKE pattern, with backslash as escape, of "contains this text"."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of a longer answer."""

    rows: list[dict[str, Any]]
    page: int
    has_more: bool

    def fields(self) -> dict[str, Any]:
        """The document's fields about paging."""
        return {"page": self.page, "has_more": self.has_more, "rows": self.rows}


def select_page(
    db: sqlite3.Connection, sql: str, values: Sequence[object], page: int, rows: int = PAGE_ROWS
) -> Page:
    """Return one page of a query that has neither LIMIT nor OFFSET."""
    found = db.execute(f"{sql} LIMIT ? OFFSET ?", (*values, rows + 1, page * rows)).fetchall()
    return Page([dict(each) for each in found[:rows]], page, len(found) > rows)
