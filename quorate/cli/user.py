"""``quorate user``: users that authenticate with a password."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorate import client as library
from quorate.cli.command import NounGroup, pass_session
from quorate.cli.completions import users
from quorate.cli.connection import (
    ask,
    confirm,
    position_fields,
    read_option,
    show_applied,
    write_options,
)
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.passwords import password_from
from quorate.cli.ranges import WholeNumber
from quorate.cli.requests import repeatable_salt
from quorate.cli.session import Session
from quorate.client.results.admin import DescribeUserScramCredentialsResponse, ScramUser
from quorum.errors import ErrorCode
from quorum.scram import ITERATIONS_MAX, ITERATIONS_MIN, MECHANISMS
from quorum.v1 import commands_pb2 as wire
from quorum.v1.metadata_pb2 import ReadOptions

if TYPE_CHECKING:
    from quorate.client import Applied, Client

_PAGE = 1000
_COLUMNS = ("name", "mechanism", "iterations")
_NAMES = {each.number: each.name for each in MECHANISMS.values()}
_MECHANISM = click.Choice(list(MECHANISMS))


@click.group(cls=NounGroup)
def user() -> None:
    """Passwords of users, kept as SCRAM credentials in the metadata log.

    A node accepts them at listeners.sasl. What a user may do, ACLs say (quorate acl).
    """


@user.command()
@click.argument("name")
@click.option(
    "--mechanism",
    "mechanisms",
    type=_MECHANISM,
    multiple=True,
    default=("SCRAM-SHA-512",),
    show_default=True,
    help="How the password is proved. Repeatable.",
)
@click.option(
    "--iterations",
    type=WholeNumber(ITERATIONS_MIN, ITERATIONS_MAX),
    default=ITERATIONS_MIN,
    show_default=True,
    help="What one guess of the password costs.",
)
@click.option(
    "--new-password-file",
    type=click.Path(dir_okay=False, path_type=Path, allow_dash=True),
    help="File of mode 0600 with the password; - reads standard input. Without it you are asked.",
)
@click.option("--replace", is_flag=True, help="Change the password of a user that exists.")
@write_options
@pass_session
def add(
    session: Session,
    name: str,
    mechanisms: tuple[str, ...],
    iterations: int,
    new_password_file: Path | None,
    replace: bool,
    dry_run: bool,
    reason: str,
) -> None:
    """Add the user NAME with a password. The password does not leave this process."""
    password = password_from(
        new_password_file, f"Password of {name}", flag="--new-password-file", is_new=True
    )
    if session.request_id and not replace:
        raise CliError(
            "--request-id needs --replace here: a repeat would find the user that it added",
            hint="add --replace, or leave out --request-id",
            code=Exit.USAGE,
        )
    upsertions = [
        library.scram_upsertion(
            name,
            password,
            mechanism=each,
            iterations=iterations,
            salt=repeatable_salt(session, name, each),
        )
        for each in dict.fromkeys(mechanisms)
    ]

    async def work(client: Client) -> Applied:
        if not replace:
            (found,) = (await client.describe_user_scram_credentials([name])).users
            if found.credentials:
                raise CliError(
                    f"the user {name} exists",
                    hint="--replace changes the password",
                    code=Exit.CONFLICT,
                )
        # Else the former password would still open the door.
        others = [wire.ScramDeletion(name=name)] if replace else []
        return await client.alter_user_scram_credentials(upsertions, others, dry_run=dry_run)

    applied = ask(session, work, reason=reason)
    show_applied(session, "UserAdded", applied, dry_run=dry_run, name=name,
                 mechanisms=list(dict.fromkeys(mechanisms)))  # fmt: skip


@user.command()
@click.argument("name", shell_complete=users)
@click.option("--mechanism", type=_MECHANISM, help="Only this one of its credentials.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@write_options
@pass_session
def remove(
    session: Session, name: str, mechanism: str | None, yes: bool, dry_run: bool, reason: str
) -> None:
    """Remove the user NAME: its tokens end, and its ACLs stay."""
    confirm(f"Remove the user {name}?", is_sure=yes or dry_run)

    number = 0 if mechanism is None else MECHANISMS[mechanism].number

    async def work(client: Client) -> Applied:
        # The leader decides what is there: a repeat must be the same command.
        gone = wire.ScramDeletion(name=name, mechanism=number)  # type: ignore[arg-type]
        try:
            return await client.alter_user_scram_credentials(deletions=[gone], dry_run=dry_run)
        except library.RefusedError as error:
            if error.code != ErrorCode.RESOURCE_NOT_FOUND:
                raise
            missing = name if mechanism is None else f"{name} with {mechanism}"
            raise _no_such(missing) from error

    applied = ask(session, work, reason=reason)
    show_applied(session, "UserRemoved", applied, dry_run=dry_run, name=name)


@user.command("list")
@read_option
@pass_session
def list_command(session: Session, read: ReadOptions) -> None:
    """List all users that have a password."""

    async def work(
        client: Client,
    ) -> tuple[list[ScramUser], DescribeUserScramCredentialsResponse]:
        users: list[ScramUser] = []
        while True:
            after = users[-1].name if users else ""
            page = await client.describe_user_scram_credentials(
                after_name=after, limit=_PAGE, read=read
            )
            users += page.users
            if not page.has_more:
                return users, page

    users, last = ask(session, work)
    session.show(
        Result("UserList", position_fields(last.position), rows=_rows(users), columns=_COLUMNS)
    )


@user.command()
@click.argument("name", shell_complete=users)
@read_option
@pass_session
def describe(session: Session, name: str, read: ReadOptions) -> None:
    """Show which credentials the user NAME has, and never their content."""
    answer = ask(session, lambda client: client.describe_user_scram_credentials([name], read=read))
    if not answer.users[0].credentials:
        raise _no_such(name)
    fields = {"name": name, **position_fields(answer.position)}
    session.show(Result("User", fields, rows=_rows(answer.users), columns=_COLUMNS[1:]))


def _no_such(name: str) -> CliError:
    return CliError(
        f"no such user: {name}", hint="`quorate user list` shows all", code=Exit.NOT_FOUND
    )


def _rows(users: Iterable[ScramUser]) -> list[dict[str, object]]:
    return [
        {
            "name": each.name,
            "mechanism": _NAMES.get(int(one.mechanism), str(one.mechanism)),
            "iterations": one.iterations,
        }
        for each in users
        for one in each.credentials
    ]
