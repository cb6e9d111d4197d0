"""Every command and every option of the command line has a help text."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from quorate.cli.main import PLACES, cli


def scan(
    command: click.Command, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from scan(child, (*path, name))


COMMANDS = list(scan(cli, ()))


@pytest.mark.parametrize(
    ("path", "command"), COMMANDS, ids=[" ".join(p) or "quorate" for p, _ in COMMANDS]
)
def test_a_command_explains_itself(path: tuple[str, ...], command: click.Command) -> None:
    assert command.help, "no help"
    assert command.help.strip().split("\n")[0].endswith((".", ":")), "the first line is no sentence"
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{parameter.opts[0]} has no help"
    result = CliRunner().invoke(cli, [*path, "--help"])
    assert result.exit_code == 0
    assert "Usage: " in result.output
    raw = re.search(r"--\S+ (<?(INTEGER|FLOAT)\b.*)", result.output)
    assert raw is None, f"{raw.group(1)} is click's word; quorate.cli.ranges has ours"


def test_the_table_has_one_line_per_command() -> None:
    assert all(text.endswith(".") for _, text in PLACES.values())
