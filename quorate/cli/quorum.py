"""``quorate quorum``: who leads, who votes, who lags."""

from __future__ import annotations

from collections.abc import Iterable

import click

from quorate.cli.cells import ago
from quorate.cli.command import NounGroup, pass_session, wide_option
from quorate.cli.connection import ask
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.quorum_disqualified import (
    advise,
    disqualified_voters,
    removed_observers,
    stranded_observers,
)
from quorate.cli.quorum_may_stop import may_stop
from quorate.cli.quorum_replay import advise_replay, find_stopped
from quorate.cli.quorum_status_table import narrow_fields
from quorate.cli.quorum_transfer import transfer_leader
from quorate.cli.quorum_tree import with_routes
from quorate.cli.quorum_voters import add_voter, remove_voter, update_voter
from quorate.cli.session import Session
from quorate.client.results.admin import DescribeQuorumResponse, QuorumReplica
from quorum.types import Endpoint, uuid_to_text

UNKNOWN = -1
_COLUMNS = ("node_id", "status", "log_end_offset", "lag", "last_fetch", "last_caught_up",
            "directory_id")  # fmt: skip
_WIDE = ("node_id", "directory_id", "log_end_offset", "lag", "last_fetch_timestamp_ms",
            "last_caught_up_timestamp_ms", "status", "fetches_from", "route", "subtree",
            "subtree_low", "is_low_provisional", "compared_end")  # fmt: skip


@click.group(cls=NounGroup)
def quorum() -> None:
    """Look at the quorum and change it."""


for _command in (transfer_leader, may_stop, add_voter, remove_voter, update_voter):
    quorum.add_command(_command)


@quorum.group()
def describe() -> None:
    """Describe the quorum as one node sees it."""


@describe.command()
@click.option("--any-node", is_flag=True, help="Ask the node named, not the leader.")
@wide_option
@pass_session
def status(session: Session, any_node: bool) -> None:
    """Show leader, epoch, high watermark, lag and members.

    ``pending_change`` is the change of voters that the answering node has under way as leader,
    ``removed_voters`` whom its voter set does not let back in without ``add-voter --readmit``,
    ``replay_stopped`` who cannot lead because it cannot apply a committed record,
    ``stranded_observers`` who is in a later epoch than the leader and cannot follow it.
    The table has one line for each replica, with the endpoints that fit; --wide shows all of them.
    Exit code 7 if the answering node knows no leader.
    """
    answer, stopped = ask(session, lambda client: find_stopped(session, client, any_node=any_node))
    replay = [{"id": each, "reason": stopped[each]} for each in sorted(stopped)]
    fields = {**status_fields(answer), "replay_stopped": replay}
    if session.output == "table" and not session.is_wide:
        fields = narrow_fields(fields)
    session.show(Result("QuorumStatus", fields))
    advise(session, answer)
    advise_replay(session, answer, stopped)
    _require_leader(answer)


@describe.command()
@click.option("--any-node", is_flag=True, help="Ask the node named, not the leader.")
@wide_option
@pass_session
def replication(session: Session, any_node: bool) -> None:
    """Show every replica with its position, lag and last contact.

    Timestamps are milliseconds since 1970; -1 if the answering node does not know.
    Up to ``compared_end`` a replica's log digest was equal to the leader's. ``route`` names the
    relays between an observer and the leader, nearest first; of those behind a relay nothing else
    is known here, the relay itself knows more (--any-node). From ``subtree_low``
    on a relay says its subtree needs the log, provisionally while it may not know all
    since it has started again.
    """
    answer = ask(session, lambda client: client.describe_quorum(from_leader=not any_node))
    rows = replication_rows(answer)
    session.show(Result("QuorumReplication", rows=rows, columns=_COLUMNS, wide=_WIDE))
    advise(session, answer)
    _require_leader(answer)


def _require_leader(answer: DescribeQuorumResponse) -> None:
    if answer.leader_id < 0:
        raise CliError(
            f"node {answer.node_id} knows no leader",
            hint="`quorate health` asks every node",
            code=Exit.UNREACHABLE,
        )


def status_fields(answer: DescribeQuorumResponse) -> dict[str, object]:
    """The quorum in the fields that Kafka's tool shows."""
    leader = _leader(answer)
    voters = [voter for voter in answer.voters if voter.log_end_offset != UNKNOWN]
    lag = lag_ms = UNKNOWN
    if leader is not None and leader.log_end_offset != UNKNOWN and voters:
        slowest = min(voters, key=lambda voter: voter.log_end_offset)
        lag = leader.log_end_offset - slowest.log_end_offset
        lag_ms = _lag_ms(leader, slowest)
    addresses = {
        node.node_id: [
            f"{found.name}://{Endpoint(found.name, found.host, found.port).address}"
            for found in node.endpoints
        ]
        for node in answer.nodes
    }
    return {
        "cluster_id": answer.cluster_id,
        "log_incarnation": _incarnation(answer),
        "leader_id": answer.leader_id,
        "leader_epoch": answer.leader_epoch,
        "high_watermark": answer.high_watermark,
        "max_follower_lag": lag,
        "max_follower_lag_time_ms": lag_ms,
        "current_voters": _members(answer.voters, addresses),
        "disqualified_voters": disqualified_voters(answer),
        "pending_change": answer.pending_change or None,
        "removed_voters": [
            {"id": each.node_id, "directory_id": uuid_to_text(each.directory_id)}
            for each in answer.removed
        ],
        "current_observers": _members(answer.observers, addresses),
        "removed_observers": removed_observers(answer),
        "stranded_observers": stranded_observers(answer),
        "answered_by": answer.node_id,
        "relay_low": answer.relay_low_offset,
        "is_relay_low_provisional": answer.is_relay_low_provisional,
        "divergence_resolution": answer.divergence_resolution or None,
    }


def _incarnation(answer: DescribeQuorumResponse) -> dict[str, object] | None:
    """The incarnation of the answering node's log; None for the first one."""
    found = answer.log_incarnation_facts
    if found is None:
        return None
    return {
        "number": found.number,
        "id": uuid_to_text(found.id),
        "previous_id": uuid_to_text(found.previous_id) if found.previous_id else None,
        "kept_end_offset": found.kept_end_offset,
        "kept_end_epoch": found.kept_end_epoch,
    }


def replication_rows(answer: DescribeQuorumResponse) -> list[dict[str, object]]:
    """One row per replica: the leader, then the other voters, then observers."""
    leader = _leader(answer)
    rows: list[dict[str, object]] = []
    for replicas, role in ((answer.voters, "Follower"), (answer.observers, "Observer")):
        for replica in replicas:
            is_leader = leader is not None and replica.replica_id == leader.replica_id
            known = leader is not None and UNKNOWN not in (
                leader.log_end_offset,
                replica.log_end_offset,
            )
            rows.append(
                {
                    "node_id": replica.replica_id,
                    "directory_id": _directory(replica),
                    "log_end_offset": replica.log_end_offset,
                    "lag": leader.log_end_offset - replica.log_end_offset
                    if leader is not None and known
                    else UNKNOWN,
                    "last_fetch_timestamp_ms": replica.last_fetch_timestamp_ms,
                    "last_caught_up_timestamp_ms": replica.last_caught_up_timestamp_ms,
                    "last_fetch": _ago(answer, replica.last_fetch_timestamp_ms),
                    "last_caught_up": _ago(answer, replica.last_caught_up_timestamp_ms),
                    "status": "Leader" if is_leader else _status(replica, role),
                    "is_disqualified": replica.is_disqualified,
                    "fetches_from": None if is_leader else _source(answer, role),
                    "subtree": replica.subtree_members,
                    "subtree_low": replica.subtree_low_offset,
                    "is_low_provisional": replica.is_subtree_low_provisional,
                    "compared_end": UNKNOWN if is_leader else replica.compared_end_offset,
                }
            )
    rows.sort(key=lambda row: row["status"] != "Leader")
    return with_routes(rows, answer)


def _ago(answer: DescribeQuorumResponse, timestamp_ms: int) -> str | None:
    """By the clock of the answering node, from which the timestamp is as well."""
    is_known = timestamp_ms >= 0 and answer.timestamp_ms > 0
    return ago(max(0, answer.timestamp_ms - timestamp_ms)) if is_known else None


def _status(replica: QuorumReplica, role: str) -> str:
    return "Disqualified" if replica.is_disqualified and role == "Follower" else role


def _source(answer: DescribeQuorumResponse, role: str) -> int | None:
    """Whom a replica listed in ``answer`` fetches from: the leader, or the relay that answers."""
    if role == "Observer" and not answer.is_leader:
        return answer.node_id
    return answer.leader_id if answer.leader_id >= 0 else None


def _leader(answer: DescribeQuorumResponse) -> QuorumReplica | None:
    for voter in answer.voters:
        if voter.replica_id == answer.leader_id:
            return voter
    return None


def _lag_ms(leader: QuorumReplica, slowest: QuorumReplica) -> int:
    if slowest.replica_id == leader.replica_id:
        return 0
    if UNKNOWN in (leader.last_caught_up_timestamp_ms, slowest.last_caught_up_timestamp_ms):
        return UNKNOWN
    return max(0, leader.last_caught_up_timestamp_ms - slowest.last_caught_up_timestamp_ms)


def _members(
    replicas: Iterable[QuorumReplica], addresses: dict[int, list[str]]
) -> list[dict[str, object]]:
    members = []
    for replica in replicas:
        member: dict[str, object] = {"id": replica.replica_id}
        if replica.directory_id:
            member["directory_id"] = _directory(replica)
        if addresses.get(replica.replica_id):
            member["endpoints"] = addresses[replica.replica_id]
        members.append(member)
    return members


def _directory(replica: QuorumReplica) -> str | None:
    return uuid_to_text(replica.directory_id) if replica.directory_id else None
