"""The quorum as a document: who leads, who lags, who fetches through whom, and what is wrong."""

from __future__ import annotations

from typing import Any

from quorate.client.results.admin import DescribeQuorumResponse, QuorumReplica
from quorate.quorum_arithmetic import PATIENCE_MS, QuorumStatus, Replica
from quorum.types import uuid_to_text

LAG_RECORDS_MAX = 100_000
"""As in the alert QuorateReplicaLags."""


def quorum_document(answer: DescribeQuorumResponse | None, age_s: float) -> dict[str, Any]:
    """Return what the newest answer says; ``age_s`` is how old it is."""
    if answer is None:
        return {"is_known": False, "has_leader": False, "voters": [], "observers": [], "tree": []}
    status = QuorumStatus(tuple(_condition(answer, each) for each in answer.voters))
    conditions = {each.id: each.condition.value for each in status.voters}
    return {
        "is_known": True,
        "age_seconds": round(age_s, 1),
        "cluster_id": answer.cluster_id,
        "has_leader": answer.leader_id >= 0,
        "is_from_leader": answer.is_leader,
        "answered_by": answer.node_id,
        "leader_id": answer.leader_id,
        "leader_epoch": answer.leader_epoch,
        "high_watermark": answer.high_watermark,
        "log_start_offset": answer.log_start_offset,
        "log_end_offset": answer.log_end_offset,
        "majority": status.majority,
        "margin": status.margin if answer.is_leader else None,
        "pending_change": answer.pending_change,
        "replay_stopped": answer.replay_stopped,
        "divergence_resolution": answer.divergence_resolution,
        "replicas_ahead": [each.replica_id for each in answer.replicas_ahead],
        "voters": [
            _row(answer, each, conditions.get(each.replica_id, "")) for each in answer.voters
        ],
        "observers": [_row(answer, each, "") for each in answer.observers],
        "tree": relay_tree(answer),
    }


def relay_tree(answer: DescribeQuorumResponse) -> list[dict[str, Any]]:
    """Return every observer with its depth below the answering node, in the order of a tree.

    Reports of different moments may contradict each other; each observer is listed once.
    """
    root = answer.leader_id if answer.is_leader else answer.node_id
    children: dict[int, list[int]] = {}
    for replica in answer.observers:
        children.setdefault(root, []).append(replica.replica_id)
        for link in replica.below:
            children.setdefault(link.fetches_from, []).append(link.observer_id)
    rows: list[dict[str, Any]] = []
    seen = {root}
    pending = [(each, root, 1) for each in sorted(children.get(root, ()), reverse=True)]
    while pending:
        node, source, depth = pending.pop()
        if node in seen and node >= 0:
            continue
        seen.add(node)
        rows.append({"node_id": node, "fetches_from": source, "depth": depth})
        if node >= 0:
            below = sorted(children.get(node, ()), reverse=True)
            pending += [(each, node, depth + 1) for each in below]
    return rows


def _condition(answer: DescribeQuorumResponse, each: QuorumReplica) -> Replica:
    return Replica(
        each.replica_id,
        each.directory_id,
        _lag(answer, each),
        _age_ms(answer, each.last_fetch_timestamp_ms),
        _age_ms(answer, each.last_caught_up_timestamp_ms),
        each.replica_id == answer.leader_id and each.directory_id == answer.directory_id,
        answer.check_quorum_ms or PATIENCE_MS,
        -1,
    )


def _row(answer: DescribeQuorumResponse, each: QuorumReplica, condition: str) -> dict[str, Any]:
    addresses = {node.node_id: node.endpoints for node in answer.nodes}
    return {
        "node_id": each.replica_id,
        "directory_id": uuid_to_text(each.directory_id) if any(each.directory_id) else None,
        "address": " ".join(
            f"{point.host}:{point.port}" for point in addresses.get(each.replica_id, ())
        ),
        "is_leader": each.replica_id == answer.leader_id,
        "condition": "disqualified" if each.is_disqualified else condition,
        "log_end_offset": each.log_end_offset,
        "lag": _lag(answer, each),
        "last_fetch_ms": _age_ms(answer, each.last_fetch_timestamp_ms),
        "last_caught_up_ms": _age_ms(answer, each.last_caught_up_timestamp_ms),
        "subtree_members": each.subtree_members,
        "is_disqualified": each.is_disqualified,
    }


def _lag(answer: DescribeQuorumResponse, each: QuorumReplica) -> int:
    known = each.log_end_offset >= 0 and answer.log_end_offset >= 0
    return max(0, answer.log_end_offset - each.log_end_offset) if known else -1


def _age_ms(answer: DescribeQuorumResponse, timestamp_ms: int) -> int:
    return max(0, answer.timestamp_ms - timestamp_ms) if timestamp_ms >= 0 else -1
