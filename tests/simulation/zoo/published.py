"""Results of the last full hunt, stored for the tables of the documents and the CI lane."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

RESULT = Path(__file__).with_name("found.json")


@dataclass(frozen=True, slots=True)
class Row:
    """One bug and the result of its hunt."""

    name: str
    what: str
    source: str
    ran: str
    """The profile, or the scenario."""
    seed: int
    """The first seed that shows it, tried from 1 in order; 0 for a scenario, -1 if not found."""
    caught_by: str
    seconds: float
    """Processor time from the first seed to the find."""
    is_expected: bool = True
    """Whether ``caught_by`` is one of those that it is known for."""

    @property
    def is_found(self) -> bool:
        """Whether a check found it."""
        return self.seed >= 0


def missed(rows: list[Row]) -> list[Row]:
    """Return the rows of bugs that were not found, or by another check than expected."""
    return [row for row in rows if not row.is_found or not row.is_expected]


def publish(rows: list[Row]) -> None:
    """Replace the published rows of the same bugs; rows are sorted by name."""
    known = {row.name: row for row in published()} | {row.name: row for row in rows}
    content = [asdict(known[name]) for name in sorted(known)]
    RESULT.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def published() -> list[Row]:
    """The result as last published."""
    if not RESULT.exists():
        return []
    return [Row(**each) for each in json.loads(RESULT.read_text(encoding="utf-8"))]
