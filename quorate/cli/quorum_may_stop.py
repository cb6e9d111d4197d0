"""``quorate quorum may-stop NODE``: would the majority survive it?"""

from __future__ import annotations

import click

from quorate.cli.command import SessionCommand, pass_session
from quorate.cli.connection import ask
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.quorum_view import observers_of, unable_fields, voters_of
from quorate.cli.session import Session
from quorate.quorum_arithmetic import objections_to_stopping


@click.command(cls=SessionCommand)
@click.argument("node", type=click.IntRange(min=0))
@click.option(
    "--spare", type=click.IntRange(min=0), default=0, show_default=True,
    help="So many further failures must be bearable while it is down.",
)  # fmt: skip
@pass_session
def may_stop(session: Session, node: int, spare: int) -> None:
    """Say whether NODE may be stopped without losing the majority.

    Takes into account who is silent and who lags. Exit code 0: it may. 1: it may not. 4: there is
    no such node. 7: no leader could be asked, so nobody knows.
    """
    answer = ask(session, lambda client: client.describe_quorum())
    now = voters_of(answer)
    voter = now.find(node)
    if voter is None and node not in {each.id for each in observers_of(answer)}:
        raise CliError(f"node {node} is neither a voter nor an observer", code=Exit.NOT_FOUND)
    objections = objections_to_stopping(now, node, spare) if voter is not None else []
    session.show(
        Result(
            "MayStop",
            {
                "node_id": node,
                "may_stop": not objections,
                "is_voter": voter is not None,
                "is_leader": node == answer.leader_id,
                "voters": len(now.voters),
                "majority": now.majority,
                "able": [each.id for each in now.able],
                "margin": now.margin,
                "margin_without": now.margin_without(node),
                "unable": unable_fields(now),
                "reason": "; ".join(objections),
            },
        )
    )
    if objections:
        raise click.exceptions.Exit(Exit.FAILED)
