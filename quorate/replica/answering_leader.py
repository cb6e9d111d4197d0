"""The leader that is shown to people: one that answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorum.types import NO_NODE, NodeId

if TYPE_CHECKING:
    from quorum.core.node.raft_node import RaftNode


def answering_leader(node: RaftNode) -> NodeId:
    """Return the leader of the current epoch if it is known to answer; ``NO_NODE`` otherwise.

    A follower's leader answers while it answered a Fetch within the fetch timeout. A leader names
    itself until it resigns. Raft itself goes on with ``node.leader_id``: a leader that is silent
    may come back in its epoch.
    """
    if node.role_name == "Resigned" or node.awaits_leader:
        return NO_NODE
    return node.leader_id
