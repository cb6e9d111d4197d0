"""The bug zoo's part of docs/evidence.md: the published hunt, and the run of the lane behind it.

There is one hunt, ``tests/simulation/zoo/found.json``: the lane publishes its finds there, and this
page as well as the tables of docs/testing.md are made from that file. So neither can be renewed
without the other. Finds published after the recorded run are counted.
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
    """Figures of the published hunt, below the lane's last run."""
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
        ("not found, or by what they are not known for, in that run", ", ".join(missed) or "none"),
        ("seeds until found, median", statistics.median(seeds) if seeds else 0),
        ("seeds until found, most", seeds[-1] if seeds else 0),
        ("processor seconds, all hunts", round(sum(row.seconds for row in rows))),
        ("bugs that came, went or were found elsewhere since that run", len(later)),
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
    """What a run that failed did not publish."""
    return [
        row["name"]
        for row in entry.figures.get("rows", ())
        if row["seed"] < 0 or not row["is_expected"]
    ]
