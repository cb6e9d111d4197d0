"""The status of the quorum as a table of at most ``WIDTH_MAX`` columns."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Final

from quorate.cli.cells import as_text, named_text
from quorate.cli.table_cells import GAP

WIDTH_MAX: Final = 100
"""As wide as the help texts. Only a name or path that is longer than its place makes a longer line,
because it is to be copied in one piece."""


def narrow_fields(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of ``quorum describe status`` so that their table is narrow.

    A replica has one line, with as many of its endpoints as fit and the number of the others. Long
    texts go on in the next line.
    """
    width = WIDTH_MAX - max(len(f"{name}:{GAP}") for name in fields)
    return {name: _narrow(name, value, width) for name, value in fields.items()}


def _narrow(name: str, value: object, width: int) -> object:
    if name in ("current_voters", "current_observers") and isinstance(value, list):
        return _replicas(value, width)
    if name == "replay_stopped" and isinstance(value, list):
        return [line for each in value for line in _reason_lines(each, width)]
    if name == "stranded_observers" or len(text := as_text(value)) <= width:
        return value
    return [{"text": line} for line in _folded(text, width)]


def _replicas(replicas: Sequence[Mapping[str, object]], width: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = [
        {"id": each["id"], "directory_id": each.get("directory_id")} for each in replicas
    ]
    room = width - sum(
        max((len(named_text(key, row[key])) for row in rows), default=0) + len(GAP)
        for key in ("id", "directory_id")
    )
    for row, each in zip(rows, replicas, strict=True):
        endpoints = each.get("endpoints")
        row["endpoints"] = _endpoints(endpoints, room) if isinstance(endpoints, list) else ""
    return rows


def _endpoints(endpoints: Sequence[str], room: int) -> str:
    """Return the first endpoints that fit, and how many more there are."""
    for shown in range(len(endpoints), 0, -1):
        more = len(endpoints) - shown
        text = ", ".join(endpoints[:shown]) + (f" (+{more})" if more else "")
        if len(text) <= room:
            return text
    return f"{len(endpoints)} endpoint{'s' if len(endpoints) > 1 else ''} (see --wide)"


def _reason_lines(stopped: Mapping[str, object], width: int) -> list[dict[str, object]]:
    """Return a row for each line of the reason, the id in the first of them only."""
    node = as_text(stopped["id"])
    # Ids of other rows may be longer: 10 digits at most.
    lines = _folded(as_text(stopped["reason"]), width - 10 - len(GAP))
    return [{"id": "" if place else node, "reason": line} for place, line in enumerate(lines)]


def _folded(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
