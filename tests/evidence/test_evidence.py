"""Figures are read from what commands leave, also if they fail; the pages show the record."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.evidence import __main__ as command
from tests.evidence import readers, tables
from tests.evidence.collect import collect
from tests.evidence.lanes import BY_NAME, LANES, Figures, Lane
from tests.evidence.record import Entry, load, save

ENTRY = Entry("calm", "quick", "python -m x", "abc", "2026-01-02 03:04", 5.0, 0.5, 0)


def lane_of(folder: Path, program: str, figures: Figures) -> Lane:
    """Return a lane whose command runs a module with this source."""
    (folder / "program.py").write_text(program)
    arguments = ("program", "FILE")
    return Lane("made-up", "", arguments, arguments, figures)


@pytest.mark.parametrize(
    ("program", "figures", "status", "found"),
    [
        ("print('a line'); print('{\"n\": 3}')", Figures.PRINTED, 0, {"n": 3}),
        ("import sys; print('{\"n\": 3}'); sys.exit(3)", Figures.PRINTED, 3, {"n": 3}),
        ("import sys; open(sys.argv[1], 'w').write('[1]')", Figures.FILE, 0, {"rows": [1]}),
    ],
)
def test_figures_and_the_check_result_are_the_commands_own(
    tmp_path: Path, program: str, figures: Figures, status: int, found: dict[str, object]
) -> None:
    entry, _ = collect(lane_of(tmp_path, program, figures), "quick", tmp_path)
    assert (entry.exit_code, entry.figures) == (status, found)


@pytest.mark.parametrize("figures", list(Figures))
def test_a_command_that_leaves_no_figures_has_failed(tmp_path: Path, figures: Figures) -> None:
    entry, output = collect(lane_of(tmp_path, "print('all is well')", figures), "quick", tmp_path)
    assert not entry.has_passed
    assert "unreadable" in entry.figures
    assert "all is well" in output


def test_a_report_of_tests_counts_them_and_keeps_what_they_recorded(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    path.write_text(
        "<testsuites><testsuite><testcase name='a'><properties><property name='kills' value='50'/>"
        "<property name='name' value='x'/></properties></testcase>"
        "<testcase name='b'><failure message=''/></testcase>"
        "<testcase name='c'><skipped message=''/></testcase>"
        "<testcase name='d'><error message=''/></testcase></testsuite></testsuites>"
    )
    assert readers.junit(path) == {
        "tests": 4, "passed": 1, "failed": 2, "skipped": 1, "recorded": {"kills": 50, "name": "x"},
    }  # fmt: skip


def test_a_record_survives_and_others_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    assert load(path) == {}
    entries = {"calm": ENTRY, "bench": replace(ENTRY, lane="bench", figures={"a": [1]})}
    save(entries.values(), path)
    assert load(path) == entries
    path.write_text(json.dumps({"version": 2, "entries": []}))
    with pytest.raises(ValueError, match="version 1"):
        load(path)


def test_the_page_after_a_run_is_that_of_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: figures in another order than that of the record."""
    figures = {"tests": 1, "passed": 1, "recorded": {"b": 1, "a": 2}}
    entry = replace(ENTRY, lane="kill-nine", figures=figures)
    path, pages = tmp_path / "evidence.json", []
    monkeypatch.setattr(command, "collect", lambda lane, scale: (entry, ""))
    monkeypatch.setattr(command, "load", lambda: load(path))
    monkeypatch.setattr(command, "save", lambda entries: save(entries, path))
    monkeypatch.setattr(command, "render", lambda entries: pages.append(tables.kill_nine(entries)))
    assert command.run_lanes(["kill-nine"], "quick") == 0
    assert pages == [tables.kill_nine(load(path))]


def test_the_page_lists_skipped_and_failed_lanes() -> None:
    assert tables.calm({}) == "Not run yet: `python -m bench.calm --minutes 60`"
    failed = replace(ENTRY, exit_code=1, figures={"elections": 2, "minutes": 1.0})
    assert "**This run failed** (exit code 1)" in tables.calm({"calm": failed})
    assert "| elections | 2 |" in tables.calm({"calm": failed})
    rows = tables.runs({"calm": failed})
    assert "**failed** (1), quick" in rows
    assert rows.count("not run") == len(LANES) - 1


def test_results_and_actions_are_shown_separately() -> None:
    counts = {"events": 900, "acknowledged": 5, "reads": 4, "crash": 2, "corruption": 3}
    figures = {
        "seeds": 7, "failed_seeds": [4], "events_per_cpu_second": 10_000, "simulated_seconds": 9,
        "longest_healing_ms": 250, "rows": [{"what": a, "count": b} for a, b in counts.items()],
    }  # fmt: skip
    entries = {"simulation-crash": replace(ENTRY, lane="simulation-crash", figures=figures)}
    assert "| crash | 7 | 1 | 900 | 10,000 | 9 | 5 | 5 | 4 | 250 | abc |" in (
        tables.simulation(entries)
    )
    lines = tables.faults(entries).splitlines()
    assert lines.index("| events | 900 |") < lines.index("| crash | 2 |")


def test_lanes_have_names_of_their_own() -> None:
    assert len(BY_NAME) == len(LANES)
    for lane in LANES:
        takes_place = "FILE" in " ".join(lane.full)
        assert takes_place is (lane.figures is not Figures.PRINTED), lane.name
