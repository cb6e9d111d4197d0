"""The promises of docs/guarantees.md, docs/guarantees/ and docs/requirements.md, and their backing.

A promise is a paragraph that begins with a bold label (``**D1.**``, ``**630.4.**``), or one below
it without a label of its own, and ends with a line ``Shown by:`` and its backing. So is each row of
docs/reference/kraft-differences.md, whose last cell is the backing. Backing is in backticks and
separated by commas:

* ``path/of/test_file.py::test_name``: a test;
* ``folder/name.scn``: a scenario below tests/scenario/testdata;
* ``invariant name``: a standing invariant of the simulator, checked after every event;
* ``rule name``: a rule of the history checker.

``python -m tests.evidence.guarantees [PYTEST OPTION...]`` runs all tests and scenarios named.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from simulation.invariants.table import ALL
from tests.evidence.record import ROOT

DOCS = ROOT / "docs"
PAGES = (
    DOCS / "guarantees.md",
    *sorted(DOCS.glob("guarantees/*.md")),
    *sorted(DOCS.glob("requirements*.md")),
)
SCENARIOS = ROOT / "tests" / "scenario" / "testdata"
DIFFERENCES = ROOT / "docs" / "reference" / "kraft-differences.md"
_DIFFERENCES = "## Differences from KRaft"
_LABEL = re.compile(r"^\*\*([A-Z]+\d+[a-z]?|\d{3}\.\d+)\.\*\* ", re.M)
_UNLABELLED = "before the first label"
_BACKED = re.compile(r"^Shown by: (.+)", re.M | re.S)


@dataclass(frozen=True, slots=True)
class Promise:
    """One labelled sentence."""

    label: str
    backing: tuple[str, ...]


def promises(text: str) -> list[Promise]:
    """All of a page, in order."""
    found: list[Promise] = []
    name, number = _UNLABELLED, 0
    for paragraph in re.split(r"\n\s*\n", text):
        label = _LABEL.match(paragraph)
        backed = _BACKED.search(paragraph)
        if label is not None:
            name, number = label[1], 1
        elif backed is None:
            continue
        else:
            number += 1
        names = re.findall(r"`([^`]+)`", backed[1]) if backed else []
        found.append(Promise(name if number == 1 else f"{name} ({number})", tuple(names)))
    return found


def differences(text: str) -> list[Promise]:
    """Each row of the tables of differences from KRaft, by its first cell."""
    rows = re.findall(r"^\| (.+) \|$", text.partition(_DIFFERENCES)[2], re.M)
    cells = [row.split(" | ") for row in rows]
    return [
        Promise(f"KRaft: {row[0]}", tuple(re.findall(r"`([^`]+)`", row[3] if row[3:] else "")))
        for row in cells
        if row[0] != "KRaft"
    ]


def problem_with(name: str) -> str:
    """Return why this backing is not valid; empty if it exists."""
    kind, _, rest = name.partition(" ")
    if rest and kind == "invariant":
        known = rest in {each.name for each in ALL}
    elif rest and kind == "rule":
        known = rest in _rules()
    elif name.endswith(".scn"):
        known = (SCENARIOS / name).is_file()
    else:
        path, _, test = name.partition("::")
        known = bool(test) and test in _tests_of(ROOT / path)
    return "" if known else f"{name} does not exist"


@cache
def _rules() -> frozenset[str]:
    """Return the names of the rules, which are string literals where violations are reported."""
    sources = (ROOT / "history").glob("*.py")
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    return frozenset(re.findall(r'"([a-z]+(?:-[a-z]+)*)"', text))


@cache
def _tests_of(path: Path) -> frozenset[str]:
    """Test functions, and methods as ``Class::name``. Parsed, not imported."""
    if not path.is_file():
        return frozenset()
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            for each in node.body:
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                    found.add(f"{node.name}::{each.name}")
    return frozenset(name for name in found if name.rpartition(":")[2].startswith("test_"))


def node_ids(found: list[Promise]) -> list[str]:
    """Return the arguments for pytest, each once, in the order of the page."""
    ids = []
    for promise in found:
        for name in promise.backing:
            if name.endswith(".scn"):
                ids.append(f"tests/scenario/testdata/{name}")
            elif "::" in name:
                ids.append(name)
    return list(dict.fromkeys(ids))


def all_promises() -> list[Promise]:
    """Return the promises of all pages and of the table of differences."""
    found = [each for page in PAGES for each in promises(page.read_text(encoding="utf-8"))]
    return found + differences(DIFFERENCES.read_text(encoding="utf-8"))


def main(arguments: list[str]) -> int:
    """Run every test and scenario that backs a promise."""
    return int(pytest.main([*node_ids(all_promises()), *arguments]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
