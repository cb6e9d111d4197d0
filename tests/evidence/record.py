"""The record behind docs/evidence.md: the commit, time and outcome of each lane's last run."""

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
    """The command as a person types it in the root of a checkout."""
    commit: str
    """Short hash, followed by ``+`` if the checkout had uncommitted changes."""
    date: str
    """Day and minute of the start, UTC."""
    seconds: float
    load_average: float
    """Load average of the minute before the start. Times are comparable only below the number of
    processors."""
    exit_code: int
    figures: dict[str, Any] = field(default_factory=dict)
    python: str = ""
    """Version of the interpreter; empty in old records."""

    @property
    def has_passed(self) -> bool:
        """Return whether the command itself reported it."""
        return self.exit_code == PASSED


def load(path: Path = RECORD) -> dict[str, Entry]:
    """Return the entries by lane; none if nothing was recorded yet.

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
    """Replace the file. Entries are in the order of the lanes, so that differences are readable."""
    rows = [asdict(each) for each in sorted(entries, key=lambda entry: entry.lane)]
    text = json.dumps({"version": VERSION, "entries": rows}, indent=1, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")
