"""``quorate quorum transfer-leader``: let another voter lead."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

import click

from quorate.cli.command import SessionCommand, pass_session
from quorate.cli.completions import nodes
from quorate.cli.connection import ask, time_left
from quorate.cli.output import Result
from quorate.cli.quorum_view import voters_of
from quorate.cli.session import Session

if TYPE_CHECKING:
    from quorate.client import Client


class _Leadership(Protocol):
    """What answers about a quorum say about its leader."""

    @property
    def leader_id(self) -> int: ...

    @property
    def leader_epoch(self) -> int: ...


@click.command(cls=SessionCommand)
@click.argument("node", type=click.IntRange(min=0), required=False, shell_complete=nodes)
@click.option(
    "--if-leader",
    type=click.IntRange(min=0),
    metavar="NODE",
    help="Do nothing unless this node leads: before it is stopped.",
)
@click.option("--reason", default="", help="Why; kept in the audit log.")
@pass_session
def transfer_leader(session: Session, node: int | None, if_leader: int | None, reason: str) -> None:
    """Let voter NODE lead, or the one whose log is furthest.

    The leader holds writes back until that voter has its whole log, then asks it to campaign. If
    it is not elected in time, the leader takes writes again, and the command fails.
    """

    async def transfer(client: Client) -> Result:
        began = time.monotonic()
        before = await client.describe_quorum(wait_seconds=session.timeout_s)
        voters_of(before)
        if if_leader not in (None, before.leader_id):
            session.announce(f"node {if_leader} does not lead; nothing changed")
            return _result(before, before.leader_id, 0)
        asked = time.monotonic()
        after = await client.transfer_leadership(
            node, timeout_seconds=time_left(session, asked - began)
        )
        return _result(after, before.leader_id, round((time.monotonic() - asked) * 1000))

    session.show(ask(session, transfer, reason=reason))


def _result(now: _Leadership, previous_leader_id: int, took_ms: int) -> Result:
    return Result(
        "LeadershipTransfer",
        {
            "leader_id": now.leader_id,
            "leader_epoch": now.leader_epoch,
            "previous_leader_id": previous_leader_id,
            "took_ms": took_ms,
        },
    )
