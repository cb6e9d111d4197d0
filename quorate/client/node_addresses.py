"""Where clients reach the nodes that an answer names."""

from __future__ import annotations

from quorate.client.listener_names import SASL_LISTENER
from quorate.client.results.admin import DescribeQuorumResponse, QuorumNode
from quorate.client.results.errors import LeaderHint


def address_of(node: QuorumNode, *, is_sasl: bool = False) -> str:
    """Return the clients' address of a node: the last one; with ``is_sasl`` that for passwords.

    Empty if it is not known.
    """
    for endpoint in reversed(node.endpoints):
        if not is_sasl or endpoint.name == SASL_LISTENER:
            host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
            return f"{host}:{endpoint.port}"
    return ""


def leader_in(answer: DescribeQuorumResponse) -> LeaderHint:
    """Return where the leader is, by the listeners that the answer names."""
    leader = next((node for node in answer.nodes if node.node_id == answer.leader_id), None)
    return LeaderHint(
        leader_id=answer.leader_id,
        leader_epoch=answer.leader_epoch,
        address=address_of(leader) if leader is not None else "",
        sasl_address=address_of(leader, is_sasl=True) if leader is not None else "",
    )
