"""What differs between two positions, from the changes in between."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from quorate.console.paging import PAGE_ROWS, select_page
from quorate.timetravel.moments import parse_moment
from quorum.errors import QuorumUsageError
from statemachine.redaction import REDACTED


def diff_document(
    db: sqlite3.Connection,
    start_text: str,
    until_text: str,
    page: int,
    *,
    known_from: int,
    end: int,
) -> dict[str, Any]:
    """Return the entities that differ between two offsets or times, and who changed them.

    An empty text means: the oldest state that is known, the newest state. The state as of an offset
    has every change that is visible below it.

    Raises:
        QuorumUsageError: A text is neither an offset nor a time, or its state is not known.
    """
    start = _offset(db, start_text, known_from, known_from, end)
    until = _offset(db, until_text, end, known_from, end)
    if start > until:
        raise QuorumUsageError(f"offset {start} is behind offset {until}; exchange the two")
    entities = select_page(
        db,
        "SELECT kind, name, min(id) AS first, max(id) AS last, count(*) AS changes FROM change "
        "WHERE until > ? AND until <= ? GROUP BY kind, name ORDER BY kind, name",
        (start, until),
        page,
        rows=PAGE_ROWS,
    )
    rows = [row for each in entities.rows if (row := _row(db, each)) is not None]
    return {
        "from": start_text,
        "to": until_text,
        "from_offset": start,
        "to_offset": until,
        "known_from": known_from,
        **entities.fields(),
        "rows": rows,
    }


def _offset(db: sqlite3.Connection, text: str, default: int, known_from: int, end: int) -> int:
    if not text:
        return default
    moment = parse_moment(text)
    offset = moment.offset
    if offset is None:
        # Append times of two leaders need not rise: the first change that is later decides.
        found = db.execute("SELECT min(start) FROM change WHERE time > ?", (moment.time_ms,))
        offset = found.fetchone()[0]
        offset = end if offset is None else offset
    if not known_from <= offset <= end:
        raise QuorumUsageError(
            f"the state as of offset {offset:,} is not known here, only those from {known_from:,} "
            f"to {end:,}; the command quorate diff reads older ones from a node's directory or a "
            "backup"
        )
    return offset


def _row(db: sqlite3.Connection, entity: dict[str, Any]) -> dict[str, Any] | None:
    first = db.execute("SELECT before FROM change WHERE id = ?", (entity["first"],)).fetchone()
    last = db.execute(
        "SELECT after, start, time, principal, client_id, reason, derived FROM change WHERE id = ?",
        (entity["last"],),
    ).fetchone()
    before = None if first["before"] is None else json.loads(first["before"])
    after = None if last["after"] is None else json.loads(last["after"])
    old, new = before or {}, after or {}
    # Secrets are not kept here, so another one looks like the one before: it counts as changed.
    hidden = {name for name in old if old[name] == new.get(name) == REDACTED}
    if before == after and not hidden:
        return None
    change = "added" if before is None else "removed" if after is None else "changed"
    return {
        "kind": entity["kind"],
        "name": entity["name"],
        "change": change,
        "changes": entity["changes"],
        "fields": {
            name: {"before": old.get(name), "after": new.get(name)}
            for name in {**old, **new}
            if old.get(name) != new.get(name) or name in hidden
        },
        "start": last["start"],
        "time": last["time"],
        "principal": last["principal"],
        "client_id": last["client_id"],
        "reason": last["reason"],
        "derived": bool(last["derived"]),
    }
