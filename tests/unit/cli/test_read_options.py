"""Which state a query asks for, by ``--read`` and ``--at-least``."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from quorate.cli.connection import read_option
from quorate.client import LINEARIZABLE, LOCAL, at_least


@click.command()
@click.argument("name")
@read_option
@click.option("--flag", is_flag=True)
def query(name: str, read: object, *, flag: bool) -> None:
    click.echo(f"{name} {flag}")
    query.asked = read  # type: ignore[attr-defined]  # what the test looks at


def asked(*arguments: str) -> object:
    result = CliRunner().invoke(query, ["x", "--flag", *arguments])
    assert result.exception is None, result.exception
    assert result.output == "x True\n"
    return query.asked  # type: ignore[attr-defined]  # set by the command


@pytest.mark.parametrize(
    ("arguments", "level"),
    [
        ((), LINEARIZABLE),
        (("--read", "linearizable"), LINEARIZABLE),
        (("--read", "local"), LOCAL),
        (("--at-least", "7"), at_least(7)),
        (("--at-least", "0"), at_least(0)),
    ],
)
def test_levels(arguments: tuple[str, ...], level: object) -> None:
    assert asked(*arguments) == level


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--read", "local", "--at-least", "7"), "exclude each other"),
        (("--at-least", "-1"), "expected a whole number of at least 0, not '-1'"),
        (("--read", "newest"), "newest"),
    ],
)
def test_contradictions_are_refused(arguments: tuple[str, ...], words: str) -> None:
    result = CliRunner().invoke(query, ["x", *arguments])
    assert result.exit_code != 0
    assert words in f"{result.output}{result.exception}"
