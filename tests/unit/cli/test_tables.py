"""Tables are laid out here where nothing is folded, exactly as the library would do it."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.cli.folded_tables import folded_fields, folded_rows
from quorate.cli.output import Result, render
from quorate.cli.table_cells import TableCells, width_of
from quorate.cli.tables import lines_of

CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**6), 10**6),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12),
    st.sampled_from(("数", "ä b")),
    st.lists(st.integers(0, 9), max_size=3),
)
ROWS = st.lists(st.fixed_dictionaries({"a": CELLS, "long_name": CELLS, "z": CELLS}), max_size=5)


@given(ROWS)
def test_rows_look_as_those_of_the_library(rows: list[dict[str, object]]) -> None:
    cells = TableCells.of(rows, ("a", "long_name", "z"))
    assert cells.lines() == folded_rows(cells, width=1000)


@given(st.dictionaries(st.text("abc_", min_size=1, max_size=9), CELLS, min_size=1, max_size=5))
def test_fields_look_as_those_of_the_library(fields: dict[str, object]) -> None:
    stream = io.StringIO()
    render(Result("F", fields), "table", stream, colour=False)
    named = [(f"{key}:", lines_of(value)) for key, value in fields.items()]
    assert stream.getvalue().splitlines() == folded_fields(named, width=1000)


@pytest.mark.parametrize(("text", "width"), [("数", 2), ("é", 1), ("a\u0301", 1), ("plain", 5)])
def test_a_text_is_as_wide_as_a_terminal_shows_it(text: str, width: int) -> None:
    assert width_of(text) == width


def test_the_header_is_bold_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    render(Result("T", rows=[{"a": "x", "b": 1}], columns=("a", "b")), "table", stream, colour=True)
    assert stream.getvalue() == "\x1b[1mA  B\x1b[0m\nx  1\n"


def test_no_leader_is_a_word_and_other_numbers_below_zero_stay() -> None:
    stream = io.StringIO()
    rows = [{"partition": 0, "leader": -1}, {"partition": 1, "leader": 7}]
    fields = {"leader_id": -1, "margin": -1}
    result = Result("T", fields, rows=rows, columns=("partition", "leader"))
    render(result, "table", stream, colour=False)
    assert [line.split() for line in stream.getvalue().splitlines()] == [
        ["leader_id:", "none"], ["margin:", "-1"], [],
        ["PARTITION", "LEADER"], ["0", "none"], ["1", "7"],
    ]  # fmt: skip
    stream = io.StringIO()
    render(result, "json", stream, colour=False)
    assert '"leader": -1' in stream.getvalue()


def test_unknown_numbers_inside_lists_and_mappings_are_words() -> None:
    """As in the list ``unable`` of ``quorum may-stop``, of a voter that has not fetched yet."""
    unable = [
        {"id": 2, "condition": "silent", "lag": -1, "silent_ms": -1},
        {"id": 3, "condition": "lagging", "lag": 4, "silent_ms": 20},
    ]
    stream = io.StringIO()
    result = Result("T", {"unable": unable, "fields": {"partition": 0, "leader": -1}})
    render(result, "table", stream, colour=False)
    assert [line.split() for line in stream.getvalue().splitlines()] == [
        ["unable:", "2", "silent", "unknown", "unknown"],
        ["3", "lagging", "4", "20"],
        ["fields:", "partition=0,", "leader=none"],
    ]
    stream = io.StringIO()
    render(result, "json", stream, colour=False)
    assert stream.getvalue().count("-1") == 3


def test_a_truth_value_in_a_line_is_a_word() -> None:
    directories = [{"id": "x", "is_cordoned": True}, {"id": "y", "is_cordoned": False}]
    assert lines_of(directories) == ["x  cordoned", "y"]


def test_a_table_that_fits_does_not_load_the_library() -> None:
    code = """
import sys
from quorate.cli.output import Result, render
render(Result("T", {"a": 1}, rows=[{"b": 2}], columns=("b",)), "table", sys.stdout, colour=False)
assert "rich" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "a:  1\n\nB\n2\n"


def test_what_is_not_there_is_a_dash_in_every_field() -> None:
    stream = io.StringIO()
    render(Result("T", {"a": None, "b": "", "c": [], "d": 0}), "table", stream, colour=False)
    assert stream.getvalue().splitlines() == ["a:  -", "b:  -", "c:  -", "d:  0"]


def test_a_result_without_rows_shows_the_fields_that_it_names() -> None:
    result = Result("T", {"why": "x; y", "whys": ["x", "y"]}, columns=["why"], wide=["why", "whys"])
    for is_wide, expected in ((False, ["why:  x; y"]), (True, ["why:   x; y", "whys:  x, y"])):
        stream = io.StringIO()
        render(result, "table", stream, colour=False, is_wide=is_wide)
        assert stream.getvalue().splitlines() == expected
    assert set(result.document()) == {"kind", "version", "why", "whys"}
