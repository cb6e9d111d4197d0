"""``quorate health``: every node is asked, and has one line."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click

from quorate.cli.cells import ago
from quorate.cli.command import SessionCommand, pass_session, wide_option
from quorate.cli.connection import refusal_exit
from quorate.cli.each_node import Asked, addresses_of, ask_all
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.quorum_disqualified import removed_observers
from quorate.cli.quorum_view import observers_of, voters_of
from quorate.cli.reachability import SERVES_NO_CLIENTS
from quorate.cli.session import Session
from quorate.client.node_addresses import likely_addresses
from quorate.client.results.admin import DescribeQuorumResponse
from quorate.quorum_arithmetic import Condition, Replica

_COLUMNS = ("node_id", "role", "lag", "last_fetch", "address", "problem")
_WIDE = ("node_id", "role", "epoch", "log_end_offset", "lag", "last_fetch", "address", "problem")
_SEEN_BY_LEADER = {
    Condition.LAGGING: "behind the leader",
    Condition.SILENT: "silent: the leader hears nothing from it",
    Condition.UNKNOWN: "the leader has not heard from it yet",
}

_NOT_ASKED = "not asked, as no node knows where: add its {} to --bootstrap"


@click.command(cls=SessionCommand)
@wide_option
@pass_session
def health(session: Session) -> None:
    """Ask every node how it is: one line each.

    Asks the nodes of --bootstrap and all others that these know, each for itself. Where peers and
    clients have listeners of their own, the others are asked at the same port as the one that
    answers. A node that cannot be asked so is well if its leader says so: its note says what to
    add to --bootstrap. Exit code 0: a leader, and no node with a problem. 3: a leader, and
    problems. 7: no leader, or nobody answers. 6: no node may be asked, for want of a right or
    password.
    """
    asked = asyncio.run(ask_all(session, session.servers()))
    report = evaluate(asked, is_sasl=session.is_sasl)
    fields = {
        "cluster_id": report.cluster_id,
        "leader_id": report.leader_id,
        "leader_epoch": report.leader_epoch,
        "high_watermark": report.high_watermark,
        "margin": report.margin,
        "is_healthy": report.is_healthy,
    }
    note = ("note",) if any(row["note"] for row in report.rows) else ()
    session.show(
        Result("Health", fields, rows=report.rows, columns=(*_COLUMNS, *note), wide=(*_WIDE, *note))
    )
    require_leader(report)
    problems = [row for row in report.rows if row["problem"]]
    if problems:
        raise CliError(f"{len(problems)} of {len(report.rows)} nodes have a problem",
                       code=Exit.UNHEALTHY)  # fmt: skip


@dataclass(frozen=True, slots=True)
class HealthReport:
    """What the nodes' answers say together."""

    cluster_id: str | None
    leader_id: int
    leader_epoch: int
    high_watermark: int
    margin: int | None
    """Further voters that may fail; None without a leader, who alone knows."""
    rows: list[dict[str, object]]
    has_answers: bool
    refusal: tuple[int, str] | None = None
    """Error code and text of a node that refused to say anything; None if none did."""

    @property
    def is_healthy(self) -> bool:
        """Whether there is a leader and no node has a problem."""
        return self.leader_id >= 0 and not any(row["problem"] for row in self.rows)


def evaluate(asked: Sequence[Asked], *, is_sasl: bool = False) -> HealthReport:
    """Evaluate what was asked at each address. Of several that say they lead the latest counts."""
    # A server named in --bootstrap comes before what was found.
    by_node = {each.answer.node_id: each for each in reversed(asked) if each.answer is not None}
    answers = {node: each.answer for node, each in by_node.items() if each.answer is not None}
    leader = max(
        (each for each in answers.values() if each.is_leader),
        key=lambda each: each.leader_epoch,
        default=None,
    )
    best = leader or max(answers.values(), key=lambda each: each.leader_epoch, default=None)
    replicas: dict[int, Replica] = {}
    voters = set() if best is None else {each.replica_id for each in best.voters}
    if leader is not None:
        replicas = {each.id: each for each in observers_of(leader)}
        replicas |= {each.id: each for each in voters_of(leader).voters}
    addresses, likely = {}, {}
    if best is not None:
        addresses = addresses_of(best, is_sasl=is_sasl)
        likely = likely_addresses(best, is_sasl=is_sasl)
    failures = {each.address: each.failure for each in asked if each.answer is None}
    listener = "listeners.sasl" if is_sasl else "listeners.client"
    rows = [
        _row(
            node,
            is_voter=node in voters,
            answer=answers.get(node),
            address=by_node[node].address if node in by_node else addresses.get(node, ""),
            unasked=_unasked(likely[node], failures, listener) if node in likely else "",
            failures=failures,
            seen=replicas.get(node),
            leader=leader,
        )
        for node in sorted(voters | answers.keys() | replicas.keys())
    ]
    named = {row["address"] for row in rows} | {*addresses.values(), *likely.values()}
    rows += [
        _unknown_row(address, failure)
        for address, failure in failures.items()
        if address not in named
    ]
    return HealthReport(
        best.cluster_id if best is not None else None,
        leader.node_id if leader is not None else -1,
        leader.leader_epoch if leader is not None else -1,
        leader.high_watermark if leader is not None else -1,
        voters_of(leader).margin if leader is not None else None,
        rows,
        bool(answers),
        next(((each.refusal, each.failure) for each in asked if each.refusal), None),
    )


def require_leader(report: HealthReport) -> None:
    """Raise an error unless a node leads.

    Raises:
        CliError: With the exit code of the refusal if all nodes that were reached refused.
    """
    if report.leader_id >= 0:
        return
    if report.refusal is not None and not report.has_answers:
        code, text = report.refusal
        raise CliError(f"refused: {text}", code=refusal_exit(code))
    what = "no node leads" if report.has_answers else "no node answers"
    raise CliError(what, code=Exit.UNREACHABLE)


def _row(
    node: int,
    *,
    is_voter: bool,
    answer: DescribeQuorumResponse | None,
    address: str,
    unasked: str,
    failures: Mapping[str, str],
    seen: Replica | None,
    leader: DescribeQuorumResponse | None,
) -> dict[str, object]:
    is_leader = leader is not None and node == leader.node_id
    problems, notes = [], []
    if answer is None and unasked and seen is not None:
        # Its address is that of its peers' listener, whatever answers there.
        address = ""
        notes.append(unasked)
    elif answer is None and (is_voter or address):
        failure = failures.get(address, "its address is not known")
        is_seen_well = seen is not None and seen.condition not in _SEEN_BY_LEADER
        if is_seen_well and (not address or failure == SERVES_NO_CLIENTS.cause):
            notes.append(_NOT_ASKED.format("address for clients"))
        else:
            problems.append(unasked or failure)
    if answer is not None:
        problems += _own_problems(answer, leader)
    is_disqualified = leader is not None and any(
        each.replica_id == node and each.is_disqualified for each in leader.voters
    )
    if is_disqualified:
        # It fetches as an observer, so the leader never hears from it as a voter.
        problems.append("disqualified: its disk never votes")
    elif seen is not None and seen.condition in _SEEN_BY_LEADER:
        problems.append(_SEEN_BY_LEADER[seen.condition])
    if leader is not None:
        problems += [
            f"in epoch {each.epoch}, later than the leader's"
            for each in leader.replicas_ahead
            if each.replica_id == node
        ]
    silent_ms = seen.silent_ms if seen is not None and not is_leader else -1
    if leader is not None and node in removed_observers(leader):
        notes.append("removed from the voters")
    end_offset = answer.log_end_offset if answer is not None else -1
    return {
        "node_id": node,
        "role": "leader" if is_leader else "voter" if is_voter else "observer",
        "epoch": answer.leader_epoch if answer is not None else None,
        "log_end_offset": end_offset if end_offset >= 0 else None,
        "lag": None if seen is None or seen.lag < 0 else seen.lag,
        "last_fetch": ago(silent_ms),
        "last_fetch_age_ms": silent_ms,
        "address": address,
        "problem": "; ".join(problems),
        "note": "; ".join(notes),
    }


def _unasked(likely: str, failures: Mapping[str, str], listener: str) -> str:
    """Say of a node whose address for clients is not known what to do about it."""
    tried = f" (nor at {likely}: {failures[likely]})" if likely in failures else ""
    return _NOT_ASKED.format(f"`{listener}`") + tried


def _own_problems(
    answer: DescribeQuorumResponse, leader: DescribeQuorumResponse | None
) -> list[str]:
    """What a node says about itself."""
    problems = []
    if answer.leader_id < 0:
        problems.append("knows no leader")
    elif leader is not None and answer.leader_id != leader.node_id:
        problems.append(f"takes node {answer.leader_id} for the leader")
    if leader is not None and answer.cluster_id != leader.cluster_id:
        problems.append(f"is of cluster {answer.cluster_id}")
    if answer.replay_stopped:
        problems.append(f"applies no further record: {answer.replay_stopped}")
    if answer.divergence_resolution:
        problems.append(f"log differs: {answer.divergence_resolution}")
    return problems


def _unknown_row(address: str, failure: str) -> dict[str, object]:
    """An address where no node could be recognised."""
    return {
        "node_id": None, "role": None, "epoch": None, "log_end_offset": None, "lag": None,
        "last_fetch": None, "last_fetch_age_ms": -1, "address": address, "problem": failure,
        "note": "",
    }  # fmt: skip
