"""Every DESIGN.md names the modules of its folder, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quorum.core.contract.output import Output
from quorum.core.node.raft_node import RaftNode

ROOT = Path(__file__).resolve().parents[2]
NAMED_BY_THEIR_SUBJECT = {
    "quorate/cli": "one module per command",
    "quorum/core/messages": "one module per group of messages",
    "simulation/faults": "one module per group of faults; `table.py` lists them",
    "simulation/invariants": "one module per property; `table.py` lists them",
    "simulation/scenario": "the format is in docs/testing/scenarios.md",
    "simulation/scenario/commands": "one module per command",
    "quorum/runtime": "its modules are in the table of quorum/DESIGN.md",
}
"""Folders whose DESIGN.md lists no modules, with the reason."""
DESIGNS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in ROOT.rglob("DESIGN.md")
    if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
)


def modules_of(folder: Path) -> set[str]:
    """Return the names of a folder's modules and packages."""
    return {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}


@pytest.mark.parametrize("name", DESIGNS)
def test_every_module_is_named(name: str) -> None:
    folder = (ROOT / name).parent
    if folder.relative_to(ROOT).as_posix() in NAMED_BY_THEIR_SUBJECT:
        return
    words = set(re.findall(r"\w+", (ROOT / name).read_text("utf-8")))
    assert modules_of(folder) - words == set()


@pytest.mark.parametrize("name", DESIGNS)
def test_modules_that_a_table_names_exist(name: str) -> None:
    """Method: the first column of tables; names with a path or a suffix other than ``.py`` too."""
    folder = (ROOT / name).parent
    cells = re.findall(r"^\| ([^|]+) \|", (ROOT / name).read_text("utf-8"), re.M)
    named = {each for cell in cells for each in re.findall(r"`([\w/]+\.py)`", cell)}
    assert {each for each in named if not (folder / each).exists()} == set()


def test_the_core_names_its_modules_and_entry_points() -> None:
    """Goal: the package list of the core's design is complete, package by package."""
    core = ROOT / "quorum" / "core"
    text = (core / "DESIGN.md").read_text("utf-8")
    listed = {}
    for line in re.findall(r"^(\w+ +\w+(?:  \w+)*)$", text, re.M):
        package, *modules = line.split()
        listed[package] = set(modules)
    found = {each.name: modules_of(each) for each in core.iterdir() if modules_of(each)}
    assert listed == found
    entry_points = {
        name
        for name, member in vars(RaftNode).items()
        if not name.startswith("_")
        and getattr(member, "__annotations__", {}).get("return") in (Output, "Output")
    }
    assert set(re.findall(r"^\| `(\w+)\(now_ms", text, re.M)) == entry_points
