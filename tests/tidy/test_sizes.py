"""Files stay below 400 lines and functions below 70, so that each holds one idea."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
GENERATED = re.compile(r"_pb2|^quorate/client/results/")


def python_files() -> list[Path]:
    """Python files that people wrote: tracked or new, generated ones left out."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "*.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    return [
        ROOT / name
        for name in sorted(listed)
        if name and (ROOT / name).is_file() and not GENERATED.search(name)
    ]


FILES = python_files()


def function_lengths(source: str) -> list[tuple[str, int]]:
    return [
        (node.name, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def test_there_is_something_to_check() -> None:
    assert len(FILES) > 50


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_sizes(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    lines = source.count("\n")
    assert lines <= FILE_LINES_MAX
    too_long = [entry for entry in function_lengths(source) if entry[1] > FUNCTION_LINES_MAX]
    assert too_long == []


def test_the_rule_counts_decorated_and_nested_functions() -> None:
    source = "def outer():\n    def inner():\n        pass\n    return inner\n"
    assert function_lengths(source) == [("outer", 4), ("inner", 2)]
