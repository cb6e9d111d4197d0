"""The timeouts that a program gives: numbers of seconds, checked where they come in."""

from __future__ import annotations

import math


def default_timeout(seconds: float) -> float:
    """Return the timeout of a client's calls.

    Raises:
        ValueError: It is not above 0.
    """
    if not seconds > 0:
        raise ValueError(f"timeout_seconds must be above 0, not {seconds}")
    return seconds


def call_timeout(seconds: float | None, default: float) -> float:
    """Return the timeout of one call; None means the client's own.

    The time that is left of a longer one may be 0 or less: then the call ends at once.

    Raises:
        ValueError: It is no number, and would never end the call.
    """
    if seconds is None:
        return default
    if math.isnan(seconds):
        raise ValueError("a timeout must be a number of seconds, not nan")
    return seconds
