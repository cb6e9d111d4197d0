"""Where clients reach the nodes that an answer names."""

from __future__ import annotations

from collections.abc import Sequence

from quorate.client.listener_names import SASL_LISTENER
from quorate.client.results.admin import DescribeQuorumResponse, QuorumNode
from quorate.client.results.common import Endpoint
from quorate.client.results.errors import LeaderHint


def address_of(node: QuorumNode, *, is_sasl: bool = False) -> str:
    """Return the clients' address of a node: the last one; with ``is_sasl`` that for passwords.

    Empty if it is not known.
    """
    found = _clients_endpoint(node.endpoints, is_sasl=is_sasl)
    return "" if found is None else _address(found.host, found.port)


def likely_addresses(answer: DescribeQuorumResponse, *, is_sasl: bool = False) -> dict[int, str]:
    """Return where clients may reach the nodes whose listener for peers alone is known.

    That is so where the node that answers has separate listeners for peers and clients. The nodes
    of a cluster have the same ports as a rule, so it is that node's port for clients on the other
    one's host; empty if the other one's port for peers is another. Who asks there must check which
    node answers.
    """
    leader = next((node for node in answer.nodes if node.node_id == answer.leader_id), None)
    model = answer.own_endpoints or (leader.endpoints if leader is not None else ())
    peers, clients = next(iter(model), None), _clients_endpoint(model, is_sasl=is_sasl)
    if peers is None or clients is None or (peers.host, peers.port) == (clients.host, clients.port):
        return {}
    return {
        node.node_id: (
            _address(node.endpoints[0].host, clients.port)
            if node.endpoints[0].port == peers.port
            else ""
        )
        for node in answer.nodes
        if len(node.endpoints) == 1
    }


def _clients_endpoint(endpoints: Sequence[Endpoint], *, is_sasl: bool) -> Endpoint | None:
    for endpoint in reversed(endpoints):
        if not is_sasl or endpoint.name == SASL_LISTENER:
            return endpoint
    return None


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def leader_in(answer: DescribeQuorumResponse) -> LeaderHint:
    """Return where the leader is, by the listeners that the answer names."""
    leader = next((node for node in answer.nodes if node.node_id == answer.leader_id), None)
    return LeaderHint(
        leader_id=answer.leader_id,
        leader_epoch=answer.leader_epoch,
        address=address_of(leader) if leader is not None else "",
        sasl_address=address_of(leader, is_sasl=True) if leader is not None else "",
    )
