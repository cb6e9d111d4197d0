"""``quorate quorum transfer-leader``: let another voter lead."""

from __future__ import annotations

import time

import click

from quorate.cli.command import SessionCommand, pass_session
from quorate.cli.connection import ask
from quorate.cli.output import Result
from quorate.cli.session import Session
from quorate.client import Client


@click.command(cls=SessionCommand)
@click.argument("node", type=click.IntRange(min=0), required=False)
@pass_session
def transfer_leader(session: Session, node: int | None) -> None:
    """Let voter NODE lead, or the one whose log is furthest.

    The leader holds writes back until that voter has its whole log, then lets it stand. If it
    does not take over in time the leader leads on, and the command fails.
    """

    async def transfer(client: Client) -> Result:
        before = await client.describe_quorum()
        began = time.monotonic()
        after = await client.transfer_leadership(node)
        return Result(
            "LeadershipTransfer",
            {
                "leader_id": after.leader_id,
                "leader_epoch": after.leader_epoch,
                "previous_leader_id": before.leader_id,
                "took_ms": round((time.monotonic() - began) * 1000),
            },
        )

    session.show(ask(session, transfer))
