"""``quorate random-uuid``: one id for a cluster or a directory."""

from __future__ import annotations

import os

import click

from quorate.cli.command import LocalCommand, pass_session
from quorate.cli.output import Result
from quorate.cli.session import Session
from quorum.types import draw_directory_id, uuid_to_text


@click.command("random-uuid", cls=LocalCommand)
@pass_session
def random_uuid(session: Session) -> None:
    """Print a new random id, usable as cluster id and as directory id."""
    text = uuid_to_text(draw_directory_id(os.urandom))
    if session.output == "table":
        click.echo(text)
    else:
        session.show(Result("RandomUuid", {"uuid": text}))
