"""Leader hints in answers and in refusals."""

from __future__ import annotations

from typing import Protocol

from quorate.services.errors import RequestRefusedError
from quorate.services.ports import Leadership, ServedNode
from quorum.errors import ErrorCode
from quorum.types import NO_NODE
from quorum.v1.errors_pb2 import LeaderHint


class KnowsLeader(Protocol):
    """A node as far as hints go."""

    @property
    def leadership(self) -> Leadership:
        """The leader of the current epoch."""


def leader_hint(node: KnowsLeader) -> LeaderHint:
    """Return the leader that ``node`` knows."""
    known = node.leadership
    return LeaderHint(leader_id=known.leader_id, leader_epoch=known.epoch, address=known.address)


def not_leader(node: ServedNode, code: ErrorCode) -> RequestRefusedError:
    """The refusal of a node that does not lead, with a hint to the one that does.

    A leader that does not take commands yet gives no hint.
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
    """Pass only on the leader.

    Raises:
        RequestRefusedError: NOT_LEADER_OR_FOLLOWER with a ``LeaderHint``.
    """
    if not node.is_leader:
        raise not_leader(node, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def check_epoch(node: ServedNode, current_leader_epoch: int) -> None:
    """Compare the leader epoch that a client knows with ours; -1 leaves the check out (320.1).

    An epoch in which this node knows no leader fences no client: a candidate may have raised it
    and lost. Nodes that do not know the epoch would refuse a client that took it over.

    Raises:
        RequestRefusedError: FENCED_LEADER_EPOCH when theirs is older, UNKNOWN_LEADER_EPOCH when it
            is newer.
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
        f"the request knows leader epoch {current_leader_epoch}, node {node.node_id} knows {ours}",
        (leader_hint(node),),
    )


def check_epoch_read(node: KnowsLeader, last_epoch: int) -> None:
    """Pass only if this node may know the epoch of what a reader has read; -1 passes.

    Raises:
        RequestRefusedError: UNKNOWN_LEADER_EPOCH. This replica does not know a later leader, even
            if it believes itself the leader. It is behind, and cannot decide whether the reader's
            history is the log's.
    """
    ours = node.leadership.epoch
    if last_epoch > ours:
        raise RequestRefusedError(
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            f"the reader has records of epoch {last_epoch}, this replica knows of none after "
            f"{ours}",
            (leader_hint(node),),
        )
