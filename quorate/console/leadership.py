"""Leadership terms as rows: who led, from when, and until when that is known."""

from __future__ import annotations

from typing import Any, Final

from quorate.client.results.admin import DescribeQuorumResponse
from quorate.console.follower import Answer
from statemachine.image import Provenance

_UNKNOWN: Final = {"principal": None, "reason": None}


def leadership_document(
    rows: list[dict[str, Any]], answer: Answer | None, newest: Provenance, *, is_newest_page: bool
) -> dict[str, Any]:
    """Return terms, newest first, with ``known_until``: how far each is known to have lasted.

    The present one lasts until now. One that ended without a successor, or whose successor's
    beginning was trimmed, ends where its leader was last seen: by an answer of the quorum that
    named it, or by the ``newest`` records.
    """
    now = None if answer is None else answer.quorum
    now_ms = -1 if now is None else now.timestamp_ms
    present = now.leader_epoch if now is not None and now.leader_id >= 0 else None
    if now is not None and is_newest_page:
        rows = _with_trimmed_term(rows, now)
    shown = []
    for each in rows:
        until = each["until"]
        if until is None:
            is_present = each["epoch"] == present
            until = now_ms if is_present else _last_seen(each, answer, newest)
        shown.append({**each, "known_until": until})
    return {
        "now_ms": now_ms,
        "is_known": answer is not None,
        "has_leader": present is not None,
        "rows": shown,
    }


def _last_seen(term: dict[str, Any], answer: Answer | None, newest: Provenance) -> int:
    seen: list[int] = [term["time"]]
    if answer is not None and answer.led is not None and answer.led.epoch == term["epoch"]:
        seen.append(answer.led.time_ms)
    if newest.epoch == term["epoch"]:
        seen.append(newest.timestamp_ms)
    return max(seen)


def _with_trimmed_term(
    rows: list[dict[str, Any]], now: DescribeQuorumResponse
) -> list[dict[str, Any]]:
    """Put the present leadership in front if the log no longer has its beginning."""
    if now.leader_id < 0 or (rows and rows[0]["epoch"] >= now.leader_epoch):
        return rows
    term = {"epoch": now.leader_epoch, "start": -1, "time": -1, "leader": now.leader_id, **_UNKNOWN}
    return [{**term, "until": None}, *rows]
