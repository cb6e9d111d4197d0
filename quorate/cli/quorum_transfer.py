"""``quorate quorum transfer-leader``: let another voter lead."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

import click

from quorate.cli.command import SessionCommand, pass_session
from quorate.cli.completions import nodes
from quorate.cli.connection import ask, time_left
from quorate.cli.exits import CliError, exit_for_code
from quorate.cli.output import Result
from quorate.cli.quorum_view import voters_of
from quorate.cli.ranges import WholeNumber
from quorate.cli.session import Session
from quorate.quorum_arithmetic import Condition, QuorumStatus
from quorum.errors import ErrorCode

if TYPE_CHECKING:
    from quorate.client import Client


class _Leadership(Protocol):
    """What answers about a quorum say about its leader."""

    @property
    def leader_id(self) -> int: ...

    @property
    def leader_epoch(self) -> int: ...


@click.command(cls=SessionCommand)
@click.argument("node", type=WholeNumber(min=0), required=False, shell_complete=nodes)
@click.option(
    "--if-leader",
    type=WholeNumber(min=0),
    metavar="NODE",
    help="Do nothing unless this node leads: before it is stopped.",
)
@click.option("--dry-run", is_flag=True, help="Only say who would lead, or why nobody can.")
@click.option("--reason", default="", help="Why; kept in the audit log.")
@pass_session
def transfer_leader(
    session: Session, node: int | None, if_leader: int | None, dry_run: bool, reason: str
) -> None:
    """Let voter NODE lead, or the one whose log is furthest.

    The leader holds writes back until that voter has its whole log, then asks it to campaign. If
    it is not elected in time, the leader takes writes again, and the command fails.
    """

    async def transfer(client: Client) -> Result:
        began = time.monotonic()
        before = await client.describe_quorum(wait_seconds=session.timeout_s)
        voters = voters_of(before)
        if if_leader not in (None, before.leader_id):
            session.announce(f"node {if_leader} does not lead; nothing changed")
            return _result(before, before.leader_id, 0)
        if dry_run:
            return _result(before, before.leader_id, 0, would_lead=successor(voters, node))
        if node is not None and all(each.id != node for each in voters.voters):
            successor(voters, node)
        asked = time.monotonic()
        after = await client.transfer_leadership(
            node, timeout_seconds=time_left(session, asked - began)
        )
        return _result(after, before.leader_id, round((time.monotonic() - asked) * 1000))

    session.show(ask(session, transfer, reason=reason))


def successor(status: QuorumStatus, wanted: int | None) -> int:
    """Return the voter that a leader would transfer its leadership to, as far as it told us.

    Raises:
        CliError: With the refusal that the leader would answer.
    """
    others = {each.id: each for each in status.voters if not each.is_leader}
    if wanted is not None and wanted not in others:
        if any(each.id == wanted for each in status.voters):
            return wanted
        text = f"node {wanted} is not a voter" if others else "there is no other voter"
        raise _refusal(ErrorCode.VOTER_NOT_FOUND, text, _voters_hint(status))
    if not others:
        raise _refusal(ErrorCode.INELIGIBLE_REPLICA, "there is no other voter")
    able = [each for each in others.values() if each.condition is Condition.LEVEL]
    if wanted is not None:
        if others[wanted] not in able:
            text = f"voter {wanted} is {others[wanted].condition.value}"
            raise _refusal(ErrorCode.INELIGIBLE_REPLICA, text)
        return wanted
    if not able:
        states = "; ".join(f"voter {each.id} is {each.condition.value}" for each in others.values())
        raise _refusal(ErrorCode.INELIGIBLE_REPLICA, f"no other voter is caught up: {states}")
    return min(able, key=lambda each: (each.lag, each.id)).id


def _voters_hint(status: QuorumStatus) -> str:
    return f"voters: {', '.join(str(each.id) for each in status.voters)}"


def _refusal(code: ErrorCode, text: str, hint: str = "") -> CliError:
    return CliError(f"{code.name}: {text}", hint=hint, code=exit_for_code(code))


def _result(
    now: _Leadership, previous_leader_id: int, took_ms: int, *, would_lead: int | None = None
) -> Result:
    return Result(
        "LeadershipTransfer",
        {
            "dry_run": would_lead is not None,
            "would_lead": would_lead,
            "leader_id": now.leader_id,
            "leader_epoch": now.leader_epoch,
            "previous_leader_id": previous_leader_id,
            "took_ms": took_ms,
        },
    )
