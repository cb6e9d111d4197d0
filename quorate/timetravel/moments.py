"""Moments: an offset, a time or "newest", and how they are written.

What they stand for in a source is in ``positions``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from quorum.errors import QuorumUsageError

_NUMBER = re.compile(r"[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class Moment:
    """A wanted position: at most one field is set; with none it is the newest committed offset."""

    offset: int | None = None
    """The state as of an offset: every change that is visible below it."""
    time_ms: int | None = None
    """The state in front of the first record that was appended later, milliseconds since 1970."""


NEWEST = Moment()


def parse_time(text: str) -> int:
    """Return a time as milliseconds since 1970.

    ``text`` is ISO 8601, such as ``2026-11-26T12:00:00Z``; without an offset from UTC it is UTC.
    A number is milliseconds since 1970.

    Raises:
        QuorumUsageError: It is neither.
    """
    if _NUMBER.fullmatch(text):
        return int(text)
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError as error:
        raise QuorumUsageError(
            f"{text!r} is no time; write it as 2026-11-26T12:00:00Z, or as milliseconds since 1970"
        ) from error
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    return int(parsed.timestamp() * 1000)


def time_text(time_ms: int) -> str | None:
    """Return milliseconds since 1970 as ISO 8601 in UTC; None for "no time" (negative)."""
    if time_ms < 0:
        return None
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return None


def parse_moment(text: str) -> Moment:
    """Return the position that ``text`` names: digits are an offset, anything else a time.

    Raises:
        QuorumUsageError: It is neither.
    """
    if _NUMBER.fullmatch(text):
        return Moment(offset=int(text))
    return Moment(time_ms=parse_time(text))
