"""Which node a simulated client asks next, and how often it leaves for another one.

Every node is chosen with the same chance. While several nodes take themselves for the leader,
clients change nodes more often, and mostly between these nodes. A replaced leader takes itself for
the leader for part of a fetch timeout only. A client that leaves at its usual pace seldom asks
first its successor and then the replaced leader, so a wrong answer of the latter went unseen.
"""

from __future__ import annotations

import random

from quorum.types import NodeId
from simulation.population import Population

LEADERS_SHARE = 0.8
"""Of the choices while several nodes take themselves for the leader, those among these nodes."""
HASTY_LEAVE_SHARE = 0.5
"""Meanwhile, the least share of the occasions to leave a node at which a client does so."""


def choose_node(cluster: Population, rng: random.Random) -> NodeId:
    """Draw the node that a client asks next."""
    leaders = _concurrent_leaders(cluster)
    if leaders and rng.random() < LEADERS_SHARE:
        return rng.choice(leaders)
    return rng.choice(tuple(cluster.members))


def leave_share(cluster: Population, usual: float) -> float:
    """Return the chance, in [0, 1], that a client leaves its node now.

    It is ``usual`` unless several nodes take themselves for the leader.
    """
    return max(usual, HASTY_LEAVE_SHARE) if _concurrent_leaders(cluster) else usual


def _concurrent_leaders(cluster: Population) -> list[NodeId]:
    """Return all nodes that take themselves for the leader if these are several, else none."""
    leaders = [
        each.id
        for each in cluster.members.values()
        if each.replica is not None and each.replica.node.is_leader
    ]
    return leaders if len(leaders) > 1 else []
