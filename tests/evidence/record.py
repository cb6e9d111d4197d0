"""The record behind docs/evidence.md: what was run, of which commit, when, and what came out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs" / "evidence.json"
VERSION = 1
PASSED = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """The last run of one lane."""

    lane: str
    scale: str
    """``quick`` or ``full``."""
    command: str
    """As a person types it at the root of a checkout."""
    commit: str
    """Short hash; with ``+`` behind it if the checkout had changes that are in no commit."""
    date: str
    """Day and minute of the start, UTC."""
    seconds: float
    load_average: float
    """Load of the minute before the start: above the number of processors, times mean little."""
    exit_code: int
    figures: dict[str, Any] = field(default_factory=dict)
    python: str = ""
    """Version of the interpreter; empty in old records."""

    @property
    def has_passed(self) -> bool:
        """Return whether the command itself reported it."""
        return self.exit_code == PASSED


def load(path: Path = RECORD) -> dict[str, Entry]:
    """Entries by lane; none if nothing was recorded yet.

    Raises:
        ValueError: The file is not such a record.
    """
    if not path.exists():
        return {}
    document = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise ValueError(f"{path}: not a record of version {VERSION}")
    entries = [Entry(**each) for each in document["entries"]]
    return {entry.lane: entry for entry in entries}


def save(entries: Iterable[Entry], path: Path = RECORD) -> None:
    """Replace the file; order is that of the lanes' names, so that differences can be read."""
    rows = [asdict(each) for each in sorted(entries, key=lambda entry: entry.lane)]
    text = json.dumps({"version": VERSION, "entries": rows}, indent=1, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")
