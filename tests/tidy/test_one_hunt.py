"""The evidence and the page about testing show the same hunt for the bugs of the zoo."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.evidence import zoo_table
from tests.evidence.lanes import BY_NAME
from tests.evidence.record import PASSED, Entry
from tests.simulation.zoo import published as hunt
from tests.simulation.zoo.table import BUGS
from tests.support import doc_simulation

ROOT = Path(__file__).resolve().parents[2]
ENTRY = Entry("zoo", "full", "python -m x", "abc", "2026-01-02 03:04", 5.0, 0.5, PASSED)


def figures_of(text: str) -> tuple[int, int, int]:
    """Bugs, bugs found by seeds, and the last seed, as the evidence states them."""
    names = ("bugs", "found by seeds", "seeds until found, most")
    found = [re.search(rf"^\| {name} \| ([\d,]+) \|$", text, re.M) for name in names]
    bugs, by_seeds, last = (int(each[1].replace(",", "")) for each in found if each is not None)
    return bugs, by_seeds, last


def summed_up(text: str) -> tuple[int, int, int]:
    """The same, as the page about testing does."""
    sentence = re.search(r"(\d+) bugs: (\d+) found by seeds, .* the last after (\d+);", text)
    assert sentence is not None
    return int(sentence[1]), int(sentence[2]), int(sentence[3])


def test_both_pages_state_the_published_hunt() -> None:
    testing = (ROOT / "docs" / "testing" / "bug-zoo.md").read_text(encoding="utf-8")
    figures = figures_of((ROOT / "docs" / "evidence" / "bug-zoo.md").read_text(encoding="utf-8"))
    assert figures == summed_up(testing)
    assert figures[0] == len(hunt.published()) == len(BUGS)


@pytest.mark.parametrize("scale", ["quick", "full"])
def test_the_lane_publishes_the_hunt_that_it_records(scale: str) -> None:
    assert "--publish" in BY_NAME["zoo"].arguments(scale)


def test_publishing_alone_renews_both_pages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Method: another bug in the published hunt; the record stays as it is."""
    rows = hunt.published()
    monkeypatch.setattr(hunt, "RESULT", tmp_path / "found.json")
    hunt.publish([*rows, replace(rows[0], name="one-more", seed=4_321)])
    figures = figures_of(zoo_table.zoo({"zoo": ENTRY}))
    assert figures == summed_up(doc_simulation.zoo_figures())
    assert (figures[0], figures[2]) == (len(rows) + 1, 4_321)


def test_what_was_published_since_the_recorded_run_is_counted() -> None:
    rows = hunt.published()[:3]
    ran = [{"name": row.name, "seed": row.seed, "caught_by": row.caught_by} for row in rows]
    entry = replace(ENTRY, figures={"rows": ran})
    assert zoo_table.published_since(entry, rows) == []
    moved = [replace(rows[0], seed=rows[0].seed + 1), rows[1]]
    assert zoo_table.published_since(entry, moved) == sorted([rows[0].name, rows[2].name])


def test_a_failed_run_lists_what_it_missed() -> None:
    missed = {"name": "unseen", "seed": -1, "caught_by": "", "is_expected": False}
    entry = replace(ENTRY, exit_code=1, figures={"rows": [missed]})
    text = zoo_table.zoo({"zoo": entry})
    assert "**This run failed**" in text
    assert "| unseen |" in text
