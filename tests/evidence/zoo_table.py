"""The bug zoo's part of docs/evidence/: the published hunt, and the lane's last run.

The lane publishes its finds in ``tests/simulation/zoo/found.json``. This part and the tables of
docs/testing/bug-zoo.md are both made from that file, so they cannot differ. Finds that were
published after the recorded run are counted.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence

from tests.evidence.record import Entry
from tests.evidence.tables import not_run, origin, shown
from tests.simulation.zoo.published import Row, published
from tests.support.doc_regions import table

LANE = "zoo"


def zoo(entries: Mapping[str, Entry]) -> str:
    """The figures of the published hunt, below the line of the lane's last run."""
    entry = entries.get(LANE)
    return _part(entry, published()) if entry is not None else not_run(LANE)


def _part(entry: Entry, rows: Sequence[Row]) -> str:
    seeds = sorted(row.seed for row in rows if row.seed > 0)
    missed = _missed(entry)
    later = published_since(entry, rows)
    figures: list[tuple[str, object]] = [
        ("bugs", len(rows)),
        ("found by seeds", len(seeds)),
        ("shown by scenarios", sum(row.seed == 0 for row in rows)),
        (
            "not found in that run, or found by another check than expected",
            ", ".join(missed) or "none",
        ),
        ("seeds until found, median", statistics.median(seeds) if seeds else 0),
        ("seeds until found, most", seeds[-1] if seeds else 0),
        ("processor seconds of all hunts", round(sum(row.seconds for row in rows))),
        ("bugs added, removed or found differently since that run", len(later)),
    ]
    caught = Counter(row.caught_by for row in rows)
    return "\n\n".join(
        (
            origin(entry),
            table(["Figure", "Value"], [(name, shown(value)) for name, value in figures]),
            table(["Caught by", "Bugs"], [(name, str(n)) for name, n in caught.most_common()]),
        )
    )


def published_since(entry: Entry, rows: Sequence[Row]) -> list[str]:
    """Return the names of bugs for which the published hunt and the recorded run differ."""
    ran = {row["name"]: (row["seed"], row["caught_by"]) for row in entry.figures.get("rows", ())}
    shown_now = {row.name: (row.seed, row.caught_by) for row in rows}
    return sorted(
        name for name in ran.keys() | shown_now.keys() if ran.get(name) != shown_now.get(name)
    )


def _missed(entry: Entry) -> list[str]:
    """Return the finds of a failed run, which did not publish them."""
    return [
        row["name"]
        for row in entry.figures.get("rows", ())
        if row["seed"] < 0 or not row["is_expected"]
    ]
