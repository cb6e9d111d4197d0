"""Every scenario file begins with its goal."""

from __future__ import annotations

from pathlib import Path

SCENARIOS = Path(__file__).resolve().parents[1] / "scenario"


def header(text: str) -> str:
    lines = text.split("\n")
    return " ".join(line[1:].strip() for line in lines[: _first_other(lines)])


def _first_other(lines: list[str]) -> int:
    return next((n for n, line in enumerate(lines) if not line.startswith("#")), len(lines))


def test_scenarios_have_headers() -> None:
    bare = [
        str(path.relative_to(SCENARIOS))
        for path in sorted(SCENARIOS.rglob("*.scn"))
        if len(header(path.read_text(encoding="utf-8"))) < 40
    ]
    assert bare == []


def test_the_rule_sees_a_missing_header() -> None:
    assert header("cluster voters=(1)\n----\nok\n") == ""
    assert header("# a\n# b\n\ncluster\n") == "a b"
