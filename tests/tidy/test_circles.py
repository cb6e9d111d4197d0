"""Imports run one way, file by file: those under ``if TYPE_CHECKING`` too."""

from __future__ import annotations

import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_no_file_imports_what_imports_it() -> None:
    first, *others = PROJECT["tool"]["importlinter"]["root_packages"]
    graph = grimp.build_graph(first, *others, exclude_type_checking_imports=False, cache_dir=None)
    assert graph.find_modules_directly_imported_by("simulation.invariants.invariant")
    order = TopologicalSorter(
        {each: graph.find_modules_directly_imported_by(each) for each in graph.modules}
    )
    try:
        order.prepare()
    except CycleError as error:
        raise AssertionError(f"a circle: {' <- '.join(error.args[1])}") from None
