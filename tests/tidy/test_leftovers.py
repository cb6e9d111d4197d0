"""No markers, prints, breakpoints, skipped tests or machine paths are left in the tree."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = "tests/tidy/test_leftovers.py"
PRODUCT = (
    "quorum",
    "statemachine",
    "snapshot",
    "metrics",
    "history",
    "quorate",
    "audit",
    "simulation",
)

MARKERS = re.compile(r"\b(TODO|FIXME|XXX|HACK|WIP)\b")
STUBS = re.compile(
    r"raise NotImplementedError|^\s*(breakpoint\(\)|import pdb|pdb\.set_trace)", re.M
)
PRINTS = re.compile(r"^\s*print\((?!.*noqa: T201 - )", re.M)
SKIPS = re.compile(
    r"pytest\.mark\.(skip|xfail)\b|pytest\.(skip|xfail)\((?!.*(not installed|needs|set [A-Z_]+ ))"
)
HOME_PATHS = re.compile(
    r"(?<![\w.])/(home|Users|root)/[\w.]+|[A-Z]:\\\\Users|/wor[k]/(main|shared)\b"
)


def text_files() -> dict[str, str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    found = {}
    for name in listed:
        path = ROOT / name
        if not name or not path.is_file() or "_pb2" in name or path.stat().st_size > 1 << 20:
            continue
        try:
            found[name] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    return found


TEXTS = text_files()
PYTHON = {name: text for name, text in TEXTS.items() if name.endswith(".py") and name != HERE}


def hits(pattern: re.Pattern[str], texts: dict[str, str]) -> list[str]:
    return [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match.group().strip()}"
        for name, text in texts.items()
        for match in pattern.finditer(text)
    ]


def product(texts: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in texts.items() if name.split("/")[0] in PRODUCT}


def test_no_markers() -> None:
    assert hits(MARKERS, {name: text for name, text in TEXTS.items() if name != HERE}) == []


def test_no_stubs_or_breakpoints() -> None:
    assert hits(STUBS, PYTHON) == []


def test_no_prints_in_product_code() -> None:
    assert hits(PRINTS, product(PYTHON)) == []


def test_no_machine_paths() -> None:
    assert hits(HOME_PATHS, {name: text for name, text in TEXTS.items() if name != HERE}) == []


def test_tests_are_skipped_only_for_want_of_a_tool() -> None:
    tests = {name: text for name, text in PYTHON.items() if name.startswith("tests/")}
    assert hits(SKIPS, tests) == []


@pytest.mark.parametrize(
    ("pattern", "bad"),
    [
        (MARKERS, "x = 1  # TODO later"),
        (STUBS, "    raise NotImplementedError"),
        (STUBS, "    breakpoint()"),
        (PRINTS, "    print('x')"),
        (SKIPS, "@pytest.mark.xfail"),
        (HOME_PATHS, "open('/home/someone/x')"),
    ],
)
def test_the_patterns_catch_what_they_are_for(pattern: re.Pattern[str], bad: str) -> None:
    assert hits(pattern, {"x.py": bad})


def test_test_files_have_names_of_their_own() -> None:
    """Two test files of one name confuse reports and editors."""
    names = [Path(name).name for name in PYTHON if Path(name).name.startswith("test_")]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_tests_are_not_packages() -> None:
    assert [
        name for name in TEXTS if name.startswith("tests/") and name.endswith("__init__.py")
    ] == []
