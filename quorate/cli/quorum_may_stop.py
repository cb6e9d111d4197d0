"""``quorate quorum may-stop NODE``: would the majority survive it?"""

from __future__ import annotations

import click

from quorate.cli.command import SessionCommand, pass_session
from quorate.cli.connection import ask
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.quorum_view import observers_of, unable_fields, voters_of
from quorate.cli.session import Session
from quorate.quorum_arithmetic import PATIENCE_MS, objections_to_stopping
from quorum.v1.admin_pb2 import DescribeQuorumResponse


@click.command(cls=SessionCommand)
@click.argument("node", type=click.IntRange(min=0))
@click.option(
    "--spare", type=click.IntRange(min=0), default=0, show_default=True,
    help="So many further failures must be bearable while it is down.",
)  # fmt: skip
@pass_session
def may_stop(session: Session, node: int, spare: int) -> None:
    """Say whether NODE may be stopped without losing the majority.

    Takes into account who is silent and who lags, and whether the voters are just being changed.
    Exit code 0: it may. 6: it may not, and nothing else ends with 6. All others mean that it could
    not be found out: 4, there is no such node; 7, no leader could be asked; 1 and 2, other reasons.
    """
    answer = _asked(session)
    now = voters_of(answer)
    voter = now.find(node)
    if voter is None and node not in {each.id for each in observers_of(answer)}:
        raise CliError(f"node {node} is neither a voter nor an observer", code=Exit.NOT_FOUND)
    reasons = objections_to_stopping(now, node, spare) if voter is not None else []
    if voter is not None and answer.pending_change:
        reasons.append(f"the voters are being changed: {answer.pending_change}")
    session.show(
        Result(
            "MayStop",
            {
                "node_id": node,
                "may_stop": not reasons,
                "is_voter": voter is not None,
                "is_leader": node == answer.leader_id,
                "voters": len(now.voters),
                "majority": now.majority,
                "able": [each.id for each in now.able],
                "margin": now.margin,
                "margin_without": now.margin_without(node),
                "unable": unable_fields(now),
                "patience_ms": answer.check_quorum_ms or PATIENCE_MS,
                "reason": "; ".join(reasons),
                "reasons": reasons,
            },
        )
    )
    if reasons:
        raise click.exceptions.Exit(Exit.REFUSED)


def _asked(session: Session) -> DescribeQuorumResponse:
    """The leader's answer; a refusal to give one must not look like the answer "it may not"."""
    try:
        return ask(session, lambda client: client.describe_quorum(wait_seconds=session.timeout_s))
    except CliError as error:
        if error.code is not Exit.REFUSED:
            raise
        raise CliError(error.message, hint=error.hint, code=Exit.FAILED) from error
