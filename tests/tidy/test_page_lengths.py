"""No page takes longer than ten minutes to read; tables that are made by a command may."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.doc_regions import REGION

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted(DOCS.glob("**/*.md"))
WORDS_MAX = 2000
"""Ten minutes at 200 words a minute."""
INDEX = DOCS / "README.md"


def words_by_hand(text: str) -> int:
    """Words outside of the parts that are made from the code."""
    return len(REGION.sub("", text).split())


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_a_page_is_read_in_ten_minutes(path: Path) -> None:
    assert words_by_hand(path.read_text(encoding="utf-8")) <= WORDS_MAX


def test_the_index_names_the_longer_tables() -> None:
    longer = {
        str(path.relative_to(DOCS))
        for path in PAGES
        if len(path.read_text(encoding="utf-8").split()) > WORDS_MAX
    }
    last = INDEX.read_text(encoding="utf-8").split("\n\n")[-1]
    assert [name for name in sorted(longer) if f"({name})" not in last] == []


def test_the_rule_counts_what_is_written_by_hand() -> None:
    text = "one two\n<!-- generated: error-codes -->\nthree four five\n<!-- end -->\nsix\n"
    assert words_by_hand(text) == 3
