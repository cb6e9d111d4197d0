"""Leader hints in answers and in refusals."""

from __future__ import annotations

from quorate.client.listener_names import CLIENT_LISTENER, SASL_LISTENER
from quorate.config.addresses import parse_address
from quorate.services.errors import RequestRefusedError
from quorate.services.ports import KnowsLeader, Leadership, ServedNode
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, Endpoint
from quorum.v1.errors_pb2 import LeaderHint


def leader_hint(node: KnowsLeader) -> LeaderHint:
    """Return the leader known to ``node``."""
    known = node.leadership
    return LeaderHint(
        leader_id=known.leader_id,
        leader_epoch=known.epoch,
        address=known.address,
        sasl_address=known.sasl_address,
    )


def with_client_listeners(
    endpoints: tuple[Endpoint, ...], leader: Leadership
) -> tuple[Endpoint, ...]:
    """Return the leader's endpoints with those for clients behind them, the certificates' last."""
    added = ((SASL_LISTENER, leader.sasl_address), (CLIENT_LISTENER, leader.address))
    for name, address in added:
        if address and (not endpoints or endpoints[-1].address != address):
            endpoints = (*endpoints, Endpoint(name, *parse_address(address)))
    return endpoints


def not_leader(node: ServedNode, code: ErrorCode) -> RequestRefusedError:
    """Return the refusal of a node that does not lead, with a hint to the leader.

    There is no hint to a leader that does not accept commands yet.
    """
    hint = leader_hint(node)
    if node.is_leader:
        return RequestRefusedError(
            code, f"node {node.node_id} leads epoch {hint.leader_epoch} but is not ready yet"
        )
    return RequestRefusedError(
        code,
        f"node {node.node_id} does not lead: leader {hint.leader_id}, epoch {hint.leader_epoch}",
        (hint,),
    )


def require_leader(node: ServedNode) -> None:
    """Raise an error unless this node leads.

    Raises:
        RequestRefusedError: NOT_LEADER_OR_FOLLOWER with a ``LeaderHint``.
    """
    if not node.is_leader:
        raise not_leader(node, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def check_epoch(node: ServedNode, current_leader_epoch: int) -> None:
    """Compare the client's leader epoch with ours; -1 skips the check (320.1).

    An epoch without a known leader fences no client: a candidate may have raised the epoch and
    lost. Nodes that do not know the epoch would refuse a client that adopted it.

    Raises:
        RequestRefusedError: FENCED_LEADER_EPOCH if the client's epoch is older,
            UNKNOWN_LEADER_EPOCH if it is newer.
    """
    ours = node.leadership.epoch
    if current_leader_epoch in (-1, ours):
        return
    if current_leader_epoch < ours and node.leadership.leader_id == NO_NODE:
        return
    code = (
        ErrorCode.FENCED_LEADER_EPOCH
        if current_leader_epoch < ours
        else ErrorCode.UNKNOWN_LEADER_EPOCH
    )
    raise RequestRefusedError(
        code,
        f"the request has leader epoch {current_leader_epoch}, node {node.node_id} has {ours}",
        (leader_hint(node),),
    )


def check_epoch_read(node: KnowsLeader, last_epoch: int) -> None:
    """Raise an error if this node cannot know the epoch of a reader's last record; -1 passes.

    Raises:
        RequestRefusedError: UNKNOWN_LEADER_EPOCH. This replica does not know a later leader, even
            if it considers itself the leader. It is behind, and cannot decide whether the reader's
            history matches the log.
    """
    ours = node.leadership.epoch
    if last_epoch > ours:
        raise RequestRefusedError(
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            f"the reader has records of epoch {last_epoch}, but the newest epoch of this replica "
            f"is {ours}",
            (leader_hint(node),),
        )
