"""Pages of benchmarks begin with one table and one plot, whose figures are those of a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
IMAGES = DOCS / "images"


def figures(part: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((IMAGES / f"bench-{part}.json").read_text(encoding="utf-8"))
    return found


def shown_first(page: str) -> list[str]:
    """Tables and plots of a page in their order."""
    blocks = page.split("\n\n")
    return [
        "table" if block.startswith("|") else "plot"
        for block in blocks
        if block.startswith(("|", "!["))
    ]


def test_the_page_shows_one_table_and_one_plot_first() -> None:
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    assert shown_first(page)[:2] == ["table", "plot"]
    assert "(images/bench-writes.svg)" in page


@pytest.mark.parametrize("part", ["writes", "scale"])
def test_a_plot_is_kept_beside_its_figures(part: str) -> None:
    """The labels that its command writes are in it."""
    drawn = (IMAGES / f"bench-{part}.svg").read_text(encoding="utf-8")
    names = {
        "writes": ["quorate", *figures("writes")["peers"]] if part == "writes" else [],
        "scale": ["checkpoint to image", "iteration", "lookup of a topic", "1,000,000"],
    }
    assert [name for name in names[part] if f"<!-- {name} -->" not in drawn] == []


def test_the_plot_has_the_figures_of_the_full_table() -> None:
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    rows = {
        cells[0]: [cell.split(",")[0:2] for cell in page_cells(cells[1:])]
        for line in page.partition("## The full tables")[2].splitlines()
        if line.startswith("|") and (cells := line.strip("| ").split(" | "))
    }
    kept = figures("writes")
    systems = [kept["writes"], *(peer["writes"] for peer in kept["peers"].values())]
    for number, loads in enumerate(systems):
        for load in loads:
            rate, p50 = rows[str(load["clients"])][number]
            assert (float(rate), float(p50)) == (load["rate"], load["p50_ms"])


def page_cells(cells: list[str]) -> list[str]:
    """Cells "1,151, 0.82 / 1.8" as "1151,0.82"."""
    return [
        f"{rate.replace(',', '')},{rest.partition(' / ')[0]}"
        for rate, _, rest in (cell.partition(", ") for cell in cells)
    ]
