"""A name that does not exist, and one that was perhaps meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

_ALIKE: Final = (
    ("list", "describe", "get", "show", "ls"),
    ("add", "create", "register", "new"),
    ("remove", "delete", "unregister", "drop", "rm"),
    ("set", "alter", "update", "change"),
)
"""Verbs of the same meaning. Each noun has one or two of each row, by the words that Kafka uses."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question with the nearest known name; empty if none is near."""
    near = get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else ""


def verb_alike(name: str, known: Iterable[str]) -> str:
    """Return a question with the known verb of the same meaning as ``name``; empty if none is."""
    held = set(known)
    for verbs in _ALIKE:
        if name in verbs and (meant := [verb for verb in verbs if verb in held]):
            return f"did you mean {meant[0]}?"
    return ""
