"""A name that does not exist, and one that was perhaps meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question with the nearest known name; empty if none is near."""
    near = get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else ""
