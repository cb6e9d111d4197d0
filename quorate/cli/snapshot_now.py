"""``quorate snapshot now``: let running nodes write a checkpoint at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from quorate import client as library
from quorate.cli.command import SessionCommand, pass_session
from quorate.cli.connection import client_of, refusal_exit
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.patience import UnreachableError, obstacles, unless_unreachable
from quorate.cli.session import Session

if TYPE_CHECKING:
    from quorate.client.results.admin import CreateSnapshotResponse

_COLUMNS = ("node_id", "end_offset", "epoch", "bytes", "is_new")


@click.command(cls=SessionCommand)
@click.option("--dry-run", is_flag=True, help="Only say what would be written.")
@click.option("--reason", default="", help="Why; kept in the audit log of the node.")
@pass_session
def now(session: Session, dry_run: bool, reason: str) -> None:
    """Let every node that --bootstrap names write a checkpoint now.

    If one does not, the others do, and the exit code is that of the first failure. A node that
    has a checkpoint of its position writes none. A large one takes minutes: give --timeout. The
    node goes on writing if the command ends before it.

    The log below the checkpoint may be trimmed at once, when every live replica is beyond it.
    Export what the audit trail must keep before that.
    """
    rows = []
    failures: list[CliError] = []
    servers = session.servers()
    for server in servers:
        try:
            made = asyncio.run(_one(session, server, dry_run=dry_run, reason=reason))
        except CliError as error:
            # The other nodes are not to blame, and a node that is down is no reason to wait.
            failures.append(error)
            continue
        rows.append(
            {
                "node_id": made.node_id,
                "end_offset": made.end_offset,
                "epoch": made.epoch,
                "bytes": made.size_bytes,
                "is_new": made.is_new,
            }
        )
    if len(servers) == 1 and failures:
        raise failures[0]
    if rows:
        session.show(Result("SnapshotCreated", {"dry_run": dry_run}, rows=rows, columns=_COLUMNS))
    if failures:
        raise CliError(
            f"{len(failures)} of {len(servers)} nodes did not report a checkpoint: "
            + "; ".join(_why(each) for each in failures),
            hint=next((each.hint for each in failures if each.hint), ""),
            code=failures[0].code,
        )


def _why(failure: CliError) -> str:
    if isinstance(failure, UnreachableError):
        return "; ".join(f"{server}: {each.cause}" for server, each in failure.obstacles.items())
    return failure.message


async def _one(
    session: Session, server: str, *, dry_run: bool, reason: str
) -> CreateSnapshotResponse:
    async with client_of(session, (server,), reason=reason) as client:
        try:
            return await unless_unreachable(
                session, (server,), client.create_snapshot(dry_run=dry_run)
            )
        except library.NotServedError as error:
            found = await obstacles(session, (server,))
            if found:
                raise UnreachableError(found) from error
            raise CliError(f"{server}: {error}", code=refusal_exit(error.code)) from error
        except library.RefusedError as error:
            raise CliError(f"{server}: {error}", code=refusal_exit(error.code)) from error
        except library.UnavailableError as error:
            raise CliError(
                f"{server}: {error}",
                hint="it may still be writing: `snapshot now` again shows the checkpoint",
                code=Exit.UNREACHABLE,
            ) from error
