"""``quorate quorum may-stop NODE``: would the majority survive it?

The leader still counts a voter that failed a moment ago, until it has been silent for a while. So
the command waits until every voter that counts has fetched again since the command began. A
running voter does so within a fetch timeout, by default within half a second.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import click

from quorate.cli.command import SessionCommand, pass_session
from quorate.cli.completions import nodes
from quorate.cli.connection import ask
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.quorum_view import observers_of, unable_fields, voters_of
from quorate.cli.ranges import Seconds, WholeNumber
from quorate.cli.session import Session
from quorate.client.results.admin import DescribeQuorumResponse
from quorate.quorum_arithmetic import PATIENCE_MS, QuorumStatus, objections_to_stopping

_POLL_S = 0.05
_AGAIN_S = 0.5
"""How often ``--wait`` begins anew."""


@dataclass(frozen=True, slots=True)
class _Finding:
    """What the voters' state says about stopping the node."""

    answer: DescribeQuorumResponse
    now: QuorumStatus
    is_voter: bool
    reasons: list[str]


@click.command(cls=SessionCommand)
@click.argument("node", type=WholeNumber(min=0), shell_complete=nodes)
@click.option(
    "--spare", type=WholeNumber(min=0), default=0, show_default=True,
    help="So many further failures must be bearable while it is down.",
)  # fmt: skip
@click.option(
    "--wait", "wait_s", type=Seconds(min=0), default=0.0,
    help="Ask again for this long until it may be stopped.",
)  # fmt: skip
@pass_session
def may_stop(session: Session, node: int, spare: int, wait_s: float) -> None:
    """Say whether NODE may be stopped without losing the majority.

    Takes into account who is silent and who lags, and whether the voters are just being changed.
    Every voter that counts must show now that it runs, which takes up to a fetch timeout.
    Exit code 0: it may. 6: it may not, and nothing else ends with 6. All others mean that it could
    not be found out: 4, there is no such node; 7, no leader could be asked; 1 and 2, other reasons.
    """
    end_s = time.monotonic() + wait_s
    found = _probed(session, node, spare)
    while found.reasons and time.monotonic() < end_s:
        time.sleep(_AGAIN_S)
        found = _probed(session, node, spare)
    answer, now = found.answer, found.now
    fields = {
        "node_id": node,
        "may_stop": not found.reasons,
        "is_voter": found.is_voter,
        "is_leader": node == answer.leader_id,
        "voters": len(now.voters),
        "majority": now.majority,
        "able": [each.id for each in now.able],
        "margin": now.margin,
        "margin_without": now.margin_without(node),
        "unable": unable_fields(now),
        "patience_ms": answer.check_quorum_ms or PATIENCE_MS,
        "reason": "; ".join(found.reasons),
        "reasons": found.reasons,
    }
    shown = [name for name in fields if name != "reasons"]
    session.show(Result("MayStop", fields, columns=shown, wide=list(fields)))
    if found.reasons:
        raise click.exceptions.Exit(Exit.REFUSED)


def _probed(session: Session, node: int, spare: int) -> _Finding:
    """Evaluate with the Fetches since this call; at once if the answer is no either way.

    Voters that the leader reports as silent are not waited for. If the leader changes, the
    evaluation starts again, because the new leader's clock is different.
    """
    answer = _asked(session)
    found = _evaluate(answer, node, spare, probed_at_ms=-1)
    if found.reasons or not found.is_voter:
        return found
    probed_at_ms, leader = answer.timestamp_ms, (answer.leader_id, answer.leader_epoch)
    awaited = {each.id for each in found.now.able}
    end_s = time.monotonic() + _fetch_timeout_s(answer)
    while (answer.leader_id, answer.leader_epoch) == leader:
        found = _evaluate(answer, node, spare, probed_at_ms=probed_at_ms)
        if awaited <= {each.id for each in found.now.able} or time.monotonic() >= end_s:
            return found
        time.sleep(_POLL_S)
        answer = _asked(session)
    return _probed(session, node, spare)


def _evaluate(
    answer: DescribeQuorumResponse, node: int, spare: int, *, probed_at_ms: int
) -> _Finding:
    now = voters_of(answer, probed_at_ms=probed_at_ms)
    voter = now.find(node)
    if voter is None and node not in {each.id for each in observers_of(answer)}:
        known = sorted({each.id for each in (*now.voters, *observers_of(answer))})
        raise CliError(
            f"node {node} is neither a voter nor an observer",
            hint=f"known: {', '.join(map(str, known))}",
            code=Exit.NOT_FOUND,
        )
    reasons = objections_to_stopping(now, node, spare) if voter is not None else []
    if voter is not None and answer.pending_change:
        reasons.append(f"the voters are being changed: {answer.pending_change}")
    return _Finding(answer, now, voter is not None, reasons)


def _fetch_timeout_s(answer: DescribeQuorumResponse) -> float:
    """A running voter fetches within this time: two thirds of the check quorum time."""
    return (answer.check_quorum_ms or PATIENCE_MS) / 1500


def _asked(session: Session) -> DescribeQuorumResponse:
    """The leader's answer; a refusal to give one must not look like the answer "it may not"."""
    try:
        return ask(session, lambda client: client.describe_quorum(wait_seconds=session.timeout_s))
    except CliError as error:
        if error.code is not Exit.REFUSED:
            raise
        raise CliError(error.message, hint=error.hint, code=Exit.FAILED) from error
