"""Which node a simulated client asks next, and how often it leaves for another one.

Every node is chosen with the same chance. While several nodes act as leader, clients change nodes
more often, and mostly between these nodes. A deposed leader acts as leader only for part of a fetch
timeout. At its usual pace a client would seldom ask first the successor and then the deposed
leader, so a wrong answer of the latter would go unseen.
"""

from __future__ import annotations

import random

from quorum.types import NodeId
from simulation.population import Population

LEADERS_SHARE = 0.8
"""Share of the choices that go to the acting leaders while there are several."""
HASTY_LEAVE_SHARE = 0.5
"""Least chance of leaving a node per occasion while several nodes act as leader."""


def choose_node(cluster: Population, rng: random.Random) -> NodeId:
    """Return the node that a client asks next."""
    leaders = _concurrent_leaders(cluster)
    if leaders and rng.random() < LEADERS_SHARE:
        return rng.choice(leaders)
    return rng.choice(tuple(cluster.members))


def leave_share(cluster: Population, usual: float) -> float:
    """Return the chance, in [0, 1], that a client leaves its node now.

    It is ``usual`` unless several nodes act as leader.
    """
    return max(usual, HASTY_LEAVE_SHARE) if _concurrent_leaders(cluster) else usual


def _concurrent_leaders(cluster: Population) -> list[NodeId]:
    """Return the nodes that act as leader if there are several, else none."""
    leaders = [
        each.id
        for each in cluster.members.values()
        if each.replica is not None and each.replica.node.is_leader
    ]
    return leaders if len(leaders) > 1 else []
