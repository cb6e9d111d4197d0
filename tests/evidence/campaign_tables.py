"""The campaigns' part of docs/evidence/live-clusters.md: what was done, and with which outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.evidence.record import Entry
from tests.evidence.tables import not_run, origin, shown
from tests.support.doc_regions import table

PREFIX = "campaign-"


def calls(entries: Mapping[str, Entry]) -> str:
    """Mutated calls, method by method."""
    return _part(entries, "calls")


def damages(entries: Mapping[str, Entry]) -> str:
    """Damaged files, by manner."""
    return _part(entries, "damages")


def damages_of_two(entries: Mapping[str, Entry]) -> str:
    """Damaged files at two nodes at once."""
    return _part(entries, "damages-of-two")


def environment(entries: Mapping[str, Entry]) -> str:
    """Faults of the environment: the effect of each, and how the cluster reacted."""
    return _part(entries, "environment")


def _part(entries: Mapping[str, Entry], name: str) -> str:
    entry = entries.get(PREFIX + name)
    if entry is None:
        return not_run(PREFIX + name)
    figures = entry.figures
    if "figures" not in figures:
        return origin(entry)
    pairs = [("seed", figures["seed"]), *figures["figures"].items()]
    pairs += [("problems", len(figures["problems"])), ("too little", len(figures["shortfalls"]))]
    parts = [
        origin(entry),
        table(["Figure", "Value"], [(name, shown(each)) for name, each in pairs]),
    ]
    if rows := figures["rows"]:
        parts.append(_rows(rows))
    for title in ("problems", "shortfalls"):
        parts += [f"- {title}: {each}" for each in figures[title]]
    return "\n\n".join(parts)


def _rows(rows: list[dict[str, Any]]) -> str:
    # The keys in docs/evidence.json are sorted; here the columns that name a row come first.
    names = [name for name in ("method", "damage", "fault") if name in rows[0]]
    names += [name for name in rows[0] if name not in names]
    head = [name.replace("_", " ").capitalize() for name in names]
    return table(head, [[shown(row[name]) for name in names] for row in rows])
