"""One result, four renderings; what programs read does not change by accident."""

from __future__ import annotations

import io
import json

import pytest
import yaml

from quorate.cli import output as output_module
from quorate.cli import tables
from quorate.cli.cells import as_text
from quorate.cli.output import FORMATS, Result, render
from quorate.visible_text import visible_json

LIST = Result(
    "ThingList",
    {"read_offset": 7},
    rows=[
        {"name": "a", "size": 10, "tags": ["x", "y"], "extra": None},
        {"name": "[bold]b[/]", "size": 2, "tags": [], "extra": True},
    ],
    columns=("name", "size", "tags", "extra"),
)
AWKWARD = Result(
    "Awkward",
    {
        "empty": {},
        "list": [],
        "text": "yes",
        "number_text": "0123",
        "colon": "a: b",
        "lines": "a\nb",
        "nested": [{"k": [1, {"deep": None}]}, {"k": []}],
        "map": {"a b": 1.5, "#": "ü"},
    },
)


def rendered(result: Result, output: str) -> str:
    stream = io.StringIO()
    render(result, output, stream, colour=False)
    return stream.getvalue()


def test_a_table_shows_fields_then_rows() -> None:
    lines = [line.rstrip() for line in rendered(LIST, "table").split("\n")]
    assert lines == [
        "read_offset:  7",
        "",
        "NAME        SIZE  TAGS  EXTRA",
        "a             10  x, y  -",
        "[bold]b[/]     2        yes",
        "",
    ]


def test_a_field_with_several_things_has_a_line_for_each() -> None:
    voters = [{"id": 1, "endpoints": ["A://n1:9"]}, {"id": 22, "directory_id": "x"}]
    lines = rendered(Result("Q", {"voters": voters, "none": [], "leader": 1}), "table").split("\n")
    assert lines == [
        "voters:  1   A://n1:9",
        "         22            x",
        "none:    -",
        "leader:  1",
        "",
    ]


def test_wide_shows_the_other_columns_of_a_table_and_changes_no_document() -> None:
    result = Result("W", rows=[{"a": 1, "b": 2}], columns=("a",), wide=("a", "b"))
    stream = io.StringIO()
    render(result, "table", stream, colour=False, is_wide=True)
    assert stream.getvalue() == "A  B\n1  2\n"
    assert rendered(result, "table") == "A\n1\n"
    stream = io.StringIO()
    render(result, "json", stream, colour=False, is_wide=True)
    assert stream.getvalue() == rendered(result, "json")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_lines_are_folded_and_nothing_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = "abcdefghij" * 12
    stream = Terminal()
    row = {"name": "n", "text": text}
    result = Result("W", {"field": text}, rows=[row], columns=("name", "text"))
    render(result, "table", stream, colour=False)
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 40
    assert stream.getvalue().count("j") == 24


def test_a_wide_cell_is_never_cut() -> None:
    wide = "x" * 500
    assert wide in rendered(Result("W", rows=[{"a": wide}], columns=("a",)), "table")


@pytest.mark.parametrize("result", [LIST, AWKWARD], ids=lambda result: result.kind)
def test_json_and_yaml_carry_the_same_document(result: Result) -> None:
    document = json.loads(rendered(result, "json"))
    assert document == result.document()
    assert yaml.safe_load(rendered(result, "yaml")) == document


def test_documents_name_kind_and_version() -> None:
    assert LIST.document()["kind"] == "ThingList"
    assert LIST.document()["version"] == 1


def test_jsonl_is_one_row_per_line() -> None:
    lines = rendered(LIST, "jsonl").splitlines()
    assert [json.loads(line)["name"] for line in lines] == ["a", "[bold]b[/]"]
    assert json.loads(rendered(AWKWARD, "jsonl"))["kind"] == "Awkward"


def test_no_escape_codes_without_colour() -> None:
    assert "\x1b" not in rendered(LIST, "table")


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (True, "yes"), (0, "0"), ([1, [2]], "1, 2"), ({"a": 1}, "a=1")],
)
def test_cells(value: object, text: str) -> None:
    assert as_text(value) == text


FORGED = "r1\x1b]0;pwned\x07\x1b[31m\nFAKE ROW  9\x9b2K\u202e\u2028"


@pytest.mark.parametrize("output", ["table", "json", "jsonl", "yaml"])
def test_names_of_others_cannot_move_the_cursor_or_add_a_row(output: str) -> None:
    result = Result(
        "Brokers",
        {"rack": FORGED, FORGED: FORGED},
        rows=[{"rack": FORGED, "tags": [FORGED], "map": {FORGED: FORGED}}],
        columns=("rack", "tags", "map"),
    )
    shown = rendered(result, output)
    assert visible_json(shown) == shown, "no control character"
    assert not any(line.startswith("FAKE ROW") for line in shown.split("\n"))
    assert "FAKE ROW" in shown
    if output in ("json", "yaml"):
        assert yaml.safe_load(shown)["rack"] == FORGED, "programs still get the value itself"


@pytest.mark.parametrize("output", FORMATS)
def test_a_long_result_is_the_same_as_a_short_one(
    output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many rows are written by code of ours, because the libraries take minutes for them."""
    rows: list[dict[str, object]] = [
        {"name": "a", "n": 1, "list": [1, 2], "none": None, "is": True},
        {"name": "語\x1b[31m", "n": -20, "list": [], "none": None, "is": False},
        {"name": "", "n": 300, "list": ["x"], "none": "y", "is": True},
    ]
    for columns in ((), ("n", "name", "none", "is")):
        result = Result("Thing", {"offset": 7}, rows=rows, columns=columns)
        short = io.StringIO()
        render(result, output, short, colour=False)
        with monkeypatch.context() as patched:
            patched.setattr(tables, "PLAIN_ROWS_MIN", 1)
            patched.setattr(output_module, "LONG_ROWS_MIN", 1)
            long = io.StringIO()
            render(result, output, long, colour=False)
        if output == "json":
            assert json.loads(long.getvalue()) == json.loads(short.getvalue())
            assert long.getvalue().count("\n") == 7 + len(rows)
        else:
            assert long.getvalue() == short.getvalue()
