"""``--writer`` and ``--request-id``: which commands take them, and what they may be (360.8)."""

from __future__ import annotations

import asyncio

import click
import pytest

from quorate.cli import requests
from quorate.cli.exits import CliError, Exit
from quorate.cli.main import cli
from quorate.cli.request_client import RequestClient
from quorate.cli.requests import drawn_uuid
from quorate.cli.session import Session
from quorate.controller import claims
from quorum.v1 import commands_pb2 as wire
from tests.unit.cli.test_verbs import VERBS

OTHERS = {
    "snapshot now": "no command of the metadata",
    "import": "its ranges are placed by their offsets",
    "quorum add-voter": "no command of the metadata",
    "quorum remove-voter": "no command of the metadata",
    "quorum update-voter": "no command of the metadata",
    "quorum transfer-leader": "no command of the metadata",
}
"""Verbs with a dry run that take no request id."""

WRITING = {
    *(VERBS[kind.name] for kind in wire.Command.DESCRIPTOR.oneofs_by_name["kind"].fields
      if kind.name in VERBS),
    "config set", "config delete", "config append", "config subtract",
    "feature upgrade", "feature downgrade", "broker register", "broker unregister",
    "broker uncordon", "user remove",
} - set(OTHERS)  # fmt: skip
"""Verbs whose command is one of the metadata's commands."""


def commands(group: click.Group, words: tuple[str, ...] = ()) -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    context = click.Context(group)
    for name in group.list_commands(context):
        each = group.get_command(context, name)
        assert each is not None
        if isinstance(each, click.Group):
            found |= commands(each, (*words, name))
        else:
            found[" ".join((*words, name))] = each
    return found


def options(command: click.Command) -> set[str]:
    return {name for each in command.params for name in each.opts}


def test_every_command_that_writes_takes_both() -> None:
    found = commands(cli)
    assert len(WRITING) > 10
    for words in sorted(WRITING):
        assert {"--writer", "--request-id", "--dry-run"} <= options(found[words]), words
    with_reason = {
        words for words, each in found.items() if {"--dry-run", "--reason"} <= options(each)
    }
    assert with_reason - set(OTHERS) == WRITING
    for words in OTHERS:
        assert "--request-id" not in options(found[words]), words


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["--request-id", "r"], "--writer NAME"),
        (["--writer", "w" * 256, "--request-id", "r"], "--writer: 256 characters"),
        (["--writer", "w", "--request-id", "é" * 128], "--request-id: more than 255 bytes"),
    ],
)
def test_names_that_the_cluster_would_refuse(given: list[str], problem: str) -> None:
    command = ["config", "set", "topic", "t", "retention.ms=1", "--bootstrap", "127.0.0.1:1"]
    with pytest.raises(CliError) as caught:
        cli.main([*command, *given], standalone_mode=False)
    assert caught.value.code == Exit.USAGE
    assert problem in f"{caught.value.message} {caught.value.hint}"


def test_both_sides_have_the_same_bound() -> None:
    assert requests.REQUEST_ID_BYTES_MAX == claims.REQUEST_ID_BYTES_MAX


def test_what_is_drawn_follows_from_the_request() -> None:
    """A repeated `broker register` is the same command, so it has the same ids."""
    session = Session(writer="w", request_id="r")
    again = Session(writer="w", request_id="r")
    other = Session(writer="w", request_id="s")
    assert drawn_uuid(session, "--log-dir") == drawn_uuid(again, "--log-dir")
    assert drawn_uuid(session, "--log-dir") != drawn_uuid(session, "--incarnation-id")
    assert drawn_uuid(session, "--log-dir") != drawn_uuid(other, "--log-dir")
    assert drawn_uuid(Session(), "--log-dir") != drawn_uuid(Session(), "--log-dir")


def test_the_first_write_of_a_command_has_its_request_id() -> None:
    """Heartbeats of `broker register --stay` follow; they are no part of the request."""

    async def scenario() -> list[str]:
        client = RequestClient(["127.0.0.1:1"], writer="w")
        client.request_id = "r"
        sent = [wire.Command(), wire.Command()]
        for command in sent:
            with pytest.raises(Exception, match="never sent"):
                await client.write(command, timeout=0)
        await client.close()
        return [command.origin.request_id for command in sent]

    assert asyncio.run(scenario()) == ["r", ""]
