"""Bootstrap voters that were just formatted, whose messages are delivered one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from quorum.core.messages.bootstrap_messages import BootstrapRequest, BootstrapResponse
from quorum.core.state.bootstrap_peer import VoterList
from quorum.core.state.core_state import CoreState
from quorum.errors import ErrorCode
from quorum.types import BootstrapState
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import FRESH, key

OTHER = b"o" * 16


def fresh(voters: tuple[int, ...] = (1, 2, 3), **options: Any) -> CoreCluster:
    """Bootstrap voters that were just formatted and started; no message is delivered yet."""
    return CoreCluster(voters, disks=dict.fromkeys(voters, FRESH), **options)


def core(cluster: CoreCluster, node_id: int) -> CoreState:
    return cluster[node_id]._core


def bootstrap_state(cluster: CoreCluster, node_id: int) -> BootstrapState:
    found = core(cluster, node_id).election.bootstrap_state
    assert found is not None
    return found


def incarnation(cluster: CoreCluster, node_id: int) -> bytes:
    return bootstrap_state(cluster, node_id).incarnation_id


def events(cluster: CoreCluster, node_id: int, kind: type) -> list[Any]:
    return [each for each in cluster.members[node_id].events if isinstance(each, kind)]


def receive(cluster: CoreCluster, node_id: int, sender: int, message: Any) -> None:
    cluster.call(node_id, lambda node: node.receive(cluster.now_ms, sender, message))


def request(cluster: CoreCluster, by: int = 2, **changes: Any) -> BootstrapRequest:
    """Send a BootstrapRequest to node 1."""
    asked = BootstrapRequest(77, CLUSTER, key(by), key(1), 0, incarnation(cluster, by))
    return replace(asked, **changes)


def answer(cluster: CoreCluster, by: int) -> BootstrapResponse:
    return cluster.sent_by(by, BootstrapResponse)[-1]


def question(cluster: CoreCluster, by: int, to: int) -> BootstrapRequest:
    """Return the newest request of ``by`` to ``to``."""
    sent = [
        message
        for sender, receiver, message in cluster.sent
        if (sender, receiver) == (by, to) and isinstance(message, BootstrapRequest)
    ]
    return sent[-1]


def notify(
    cluster: CoreCluster, about: int, voter_list: VoterList, incarnation_id: bytes | None = None
) -> None:
    """Answer the request of node 1 to ``about``."""
    response = BootstrapResponse(
        question(cluster, 1, about).request_id, ErrorCode.NONE, -1, 0,
        incarnation(cluster, about) if incarnation_id is None else incarnation_id, voter_list,
    )  # fmt: skip
    receive(cluster, 1, about, response)


def whole_voter_list(cluster: CoreCluster, **incarnations: bytes) -> VoterList:
    """Return the voter list with the cluster's incarnation ids; ``n1=...`` replaces node 1's."""
    return tuple(
        (each, incarnations.get(f"n{each}", incarnation(cluster, each))) for each in cluster.members
    )


# The whole way.
