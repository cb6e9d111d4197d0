"""What `recover apply` and `backup restore` share: consent, addresses, and what is next."""

from __future__ import annotations

import getpass
import os
import sys
from typing import TYPE_CHECKING

import click

from quorate.cli.exits import CliError, Exit
from quorate.cli.session import Session
from quorate.config.addresses import CONTROLLER_LISTENER, parse_address
from quorate.recovery.report import incarnation_document, key_document
from quorum.types import Endpoint, Uuid, draw_directory_id, uuid_to_text

if TYPE_CHECKING:
    from quorate.recovery.incarnation import Begun

CONSENT_HELP = "The cluster's id, typed as consent. Without it, a terminal is asked for it."


def require_consent(text: str, cluster_id: str, typed: str | None) -> None:
    """Compare the typed id with the cluster's; ask for it on a terminal.

    Raises:
        CliError: It is another id, or nobody can be asked.
    """
    if typed is None:
        if not sys.stdin.isatty():
            raise CliError(
                f"the cluster id is missing, nothing was changed. {text}",
                hint="name the cluster with --cluster-id; no other option stands for it",
                code=Exit.REFUSED,
            )
        click.echo(text, err=True)
        typed = click.prompt("Type the cluster id to go on", err=True)
    if typed != cluster_id:
        raise CliError(
            f"the cluster is {cluster_id}, not {typed}; nothing was changed", code=Exit.REFUSED
        )


def endpoints_of(address: str | None) -> tuple[Endpoint, ...]:
    """Return the endpoint that ``--endpoint`` names; none without it.

    Raises:
        CliError: It is no address that peers can reach.
    """
    if address is None:
        return ()
    try:
        host, port = parse_address(address)
    except ValueError as error:
        raise CliError(f"--endpoint: {error}", code=Exit.USAGE) from error
    if not port:
        raise CliError("--endpoint: peers cannot reach port 0", code=Exit.USAGE)
    return (Endpoint(CONTROLLER_LISTENER, host, port),)


def draw_incarnation_id() -> Uuid:
    """Return a random id, whose text command lines do not take for an option."""
    return draw_directory_id(os.urandom)


def operator() -> str:
    """Return the name of the account that runs the command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def begun_fields(begun: Begun) -> dict[str, object]:
    """Return the new incarnation for a table or a program."""
    return {
        "log_incarnation": incarnation_document(begun.incarnation),
        "end_offset": begun.end.offset,
        "end_epoch": begun.end.epoch,
        "removed_voters": [key_document(each) for each in begun.removed],
        "was_unfinished": begun.was_unfinished,
    }


def announce_next_steps(session: Session, cluster_id: str, begun: Begun) -> None:
    """Say what to do now."""
    for line in (
        "next: start this node; it leads alone. Move every other directory of the cluster aside, "
        "observers' too, and format each node again:",
        f"  quorate format --cluster-id {cluster_id} --no-initial-voters --log-incarnation "
        f"{uuid_to_text(begun.incarnation.id)} ...",
        "then start it, and add it with `quorate quorum add-voter`",
    ):
        session.announce(line)
