"""A history that is read is the one that was written; anything else is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from history.history import History
from history.storage import HistoryFormatError, from_lines, load, save
from quorate.cli.exits import Exit
from quorate.cli.main import main
from tests.unit.history.bad import BAD
from tests.unit.history.histories import Script
from tests.unit.history.test_check import GOOD

READ = '{"kind":"op","number":1,"client":"c","key":"k","action":"read","call":0}'
HEADER = '{"kind":"history","version":1}'


def made(write) -> History:
    script = Script()
    write(script)
    return script.history


@pytest.mark.parametrize("write", [*GOOD, *(write for _, write in BAD.values())])
def test_round_trip(tmp_path: Path, write) -> None:
    history = made(write)
    save(history, tmp_path / "h")
    assert load(tmp_path / "h") == history


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], "empty"),
        (["{"], "h:1: not JSON"),
        (["[]"], "h:1: not a JSON object"),
        (['{"kind":"op"}'], "h:1: the first line is not"),
        (['{"kind":"history","version":2}'], "version 2"),
        ([HEADER, '{"kind":"op","number":1}'], "h:2: a field is missing"),
        ([HEADER, '{"kind":"log","base":"1"}'], "base is not int"),
        ([HEADER, '{"kind":"log","base":true}'], "base is not int"),
        ([HEADER, '{"kind":"op","action":"jump"}'], "jump"),
        ([HEADER, '{"kind":"log","marks":5}'], "marks is not list"),
        ([HEADER, '{"kind":"op","arguments":[]}'], "arguments is not dict"),
        (
            [
                HEADER,
                *['{"kind":"op","number":1,"client":"c","key":"k","action":"read","call":0}'] * 2,
            ],
            "h:3: operation 1 occurs twice",
        ),
    ],
)
def test_a_file_that_is_not_a_history_is_refused(lines: list[str], words: str) -> None:
    with pytest.raises(HistoryFormatError, match=words):
        from_lines(lines, "h")


def test_unknown_kinds_and_fields_are_passed_over() -> None:
    history = from_lines([HEADER, '{"kind":"new"}', '{"kind":"log","base":0,"end":1,"epoch":1,'
                          '"digest":"d","more":1}', ""], "h")  # fmt: skip
    assert len(history.log) == 1


def test_the_exit_status_shows_a_violation(tmp_path: Path, capfd) -> None:
    good, bad, none = tmp_path / "good", tmp_path / "bad", tmp_path / "none"
    save(made(GOOD[0]), good)
    save(made(BAD["stale_read"][1]), bad)
    none.write_bytes(b"\xff\xfe")
    assert main(["history", "check", str(good)]) == Exit.OK
    assert main(["history", "check", str(good), str(bad)]) == Exit.UNHEALTHY
    assert "#2 read linearizable" in capfd.readouterr().err
    assert main(["history", "check", "--steps", "1", str(good)]) == Exit.FAILED
    assert main(["history", "check", str(none)]) == Exit.DAMAGED
