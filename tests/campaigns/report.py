"""The report of a campaign: figures, a table, and the problems."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Say = Callable[[str], None]
PROBLEMS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one run. It has passed if it did enough and found no problem."""

    campaign: str
    seed: int
    seconds: float
    figures: Mapping[str, Any]
    """Numbers and texts by name, the most important first."""
    rows: Sequence[Mapping[str, Any]] = ()
    """One row for each method, damage or fault."""
    problems: Sequence[str] = ()
    shortfalls: Sequence[str] = field(default=())
    """What the run was asked for and did not do."""

    @property
    def is_good(self) -> bool:
        """Whether no problem was found and enough took place."""
        return self.exit_code() == 0

    def exit_code(self) -> int:
        """0: passed; 3: a problem was found; 1: no problem, but too little took place."""
        if self.problems:
            return 3
        if self.shortfalls:
            return 1
        return 0

    def document(self) -> dict[str, Any]:
        """Return the report as a document for JSON and the evidence."""
        return {
            "campaign": self.campaign,
            "seed": self.seed,
            "seconds": round(self.seconds, 1),
            "figures": dict(self.figures),
            "rows": [dict(row) for row in self.rows],
            "problems": list(self.problems),
            "shortfalls": list(self.shortfalls),
            "check_result": "passed" if self.is_good else "failed",
        }

    def json(self) -> str:
        """Return the document as JSON text."""
        return json.dumps(self.document(), indent=2)

    def lines(self) -> list[str]:
        """Return the report as a table for people."""
        lines = ["", f"{self.campaign}, seed {self.seed}, {self.seconds:.0f} s", ""]
        lines += [f"{name:44} {value}" for name, value in self.figures.items()]
        if self.rows:
            head = list(self.rows[0])
            widths = [max(len(str(each)) for each in (name, *(row[name] for row in self.rows)))
                      for name in head]  # fmt: skip
            lines.append("")
            for cells in (head, *([str(row[name]) for name in head] for row in self.rows)):
                lines.append("  ".join(each.ljust(width) for each, width in zip(cells, widths)))
        for title, found in (("WRONG", self.problems), ("TOO LITTLE", self.shortfalls)):
            if found:
                lines += ["", f"{title} ({len(found)})", *found[:PROBLEMS_SHOWN]]
        lines += ["", "passed" if self.is_good else "FAILED"]
        return lines
