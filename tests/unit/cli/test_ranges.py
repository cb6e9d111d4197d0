"""Numbers on the command line: an error says which values are allowed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import click
import pytest

from quorate.cli.main import main
from quorate.cli.ranges import Number, WholeNumber, allowed

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("given", ["nan", "inf", "abc", "-1"])
@pytest.mark.parametrize(
    ("command", "bound"),
    [
        (("topic", "list", "--timeout"), "above 0"),
        (("top", "--interval"), "of at least 0.2"),
        (("quorum", "may-stop", "1", "--wait"), "of at least 0"),
        (("backup", "create", "somewhere", "--follow"), "above 0"),
    ],
)
def test_what_is_no_number_of_seconds_is_wrong_usage(
    command: tuple[str, ...], bound: str, given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, given, "--bootstrap", "127.0.0.1:1"]) == 2
    problem = capsys.readouterr().err.splitlines()[-1]
    assert problem == (
        f"Error: Invalid value for '{command[-1]}': expected a number of seconds {bound}, "
        f"not {given!r}"
    )


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (WholeNumber(), "n"),
        (WholeNumber(min=1), "n of at least 1"),
        (WholeNumber(max=9), "n of at most 9"),
        (WholeNumber(1, 36500), "n from 1 to 36500"),
        (Number(min=0, max=1, min_open=True, max_open=True), "n above 0 and below 1"),
    ],
)
def test_the_allowed_values_are_named(kind: click.IntRange | click.FloatRange, words: str) -> None:
    assert allowed(kind, "n") == words


def test_whole_numbers_are_told_apart_from_others(capsys: pytest.CaptureFixture[str]) -> None:
    for given in ("3", "x", "16385"):
        assert main(["user", "add", "a", "--iterations", given]) == 2
        error = capsys.readouterr().err
        assert f"expected a whole number from 4096 to 16384, not '{given}'" in error


def test_no_option_has_a_number_of_clicks_own() -> None:
    """Their errors are `is not a valid float range` and `is not in the range x>=0`."""
    found = subprocess.run(
        ["git", "grep", "-nE", r"type=(int|float|click\.(INT|FLOAT|IntRange|FloatRange))\b", "--",
         "quorate/cli/*.py", "simulation/cli/*.py"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (found.stdout, found.returncode) == ("", 1)
