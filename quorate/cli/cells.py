"""Values as text for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quorate.principal_text import PRINCIPAL_COLUMNS, principal_text
from quorate.visible_text import visible

_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS
_DAY_MS = 24 * _HOUR_MS


_WORD_FOR_MINUS_ONE: Final = {
    "leader": "none",
    "leader_id": "none",
    "previous_leader_id": "none",
    "leader_epoch": "unknown",
    "high_watermark": "unknown",
    "max_follower_lag": "unknown",
    "max_follower_lag_time_ms": "unknown",
    "relay_low": "unknown",
    "log_end_offset": "unknown",
    "lag": "unknown",
    "silent_ms": "unknown",
    "compared_end": "unknown",
    "damaged_offset": "none",
}
"""What -1 says under these names. Elsewhere it may be a number: a margin below 0, for example."""


def named_text(name: str, value: object) -> str:
    """A value as ``as_text``, in words where the value is none; documents keep the value.

    That is -1 of some numbers, and a principal without a name.
    """
    if name in PRINCIPAL_COLUMNS and isinstance(value, str):
        return as_text(principal_text(value))
    if value == -1 and (word := _WORD_FOR_MINUS_ONE.get(name)):
        return word
    return as_text(value)


def as_text(value: object) -> str:
    """A value in a table cell: one line, without control characters."""
    # Most cells are one of these, and a table may have millions.
    if type(value) is str and value.isprintable():
        return value
    if type(value) is int:
        return str(value)
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(
            f"{visible(str(key))}={named_text(str(key), item)}" for key, item in value.items()
        )
    if isinstance(value, list | tuple):
        return ", ".join(as_text(item) for item in value)
    return visible(str(value))


def ago(age_ms: int) -> str | None:
    """How long ago something was, in the largest unit that fits; None if that is not known."""
    if age_ms < 0:
        return None
    if age_ms < _MINUTE_MS:
        return f"{age_ms / 1000:.1f} s ago"
    for unit, length_ms in (("d", _DAY_MS), ("h", _HOUR_MS)):
        if age_ms >= length_ms:
            return f"{age_ms // length_ms} {unit} ago"
    return f"{age_ms // _MINUTE_MS} min ago"
