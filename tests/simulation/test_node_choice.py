"""Simulated clients ask any node, and concurrent leaders more often than others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from quorum.types import NodeId
from simulation.node_choice import choose_node, leave_share
from simulation.population import Population
from simulation.seeded_random import SeededRandom

NODES = (1, 2, 3, 11)
DRAWS = 400
USUAL = 0.1


def _cluster(*leaders: NodeId, down: NodeId = 0) -> Population:
    members = {
        each: SimpleNamespace(
            id=each,
            replica=None
            if each == down
            else SimpleNamespace(node=SimpleNamespace(is_leader=each in leaders)),
        )
        for each in NODES
    }
    return cast("Population", SimpleNamespace(members=members))


def _draw(cluster: Population) -> dict[NodeId, int]:
    rng = SeededRandom(7)
    drawn = [choose_node(cluster, rng) for _ in range(DRAWS)]
    return {each: drawn.count(each) for each in NODES}


@pytest.mark.parametrize("cluster", [_cluster(), _cluster(2), _cluster(2, 3, down=2)])
def test_every_node_is_asked_alike_where_one_leads_or_none(cluster: Population) -> None:
    drawn = _draw(cluster)
    assert min(drawn.values()) > DRAWS / 8
    assert max(drawn.values()) < DRAWS / 2
    assert leave_share(cluster, USUAL) == USUAL


def test_clients_change_between_concurrent_leaders() -> None:
    cluster = _cluster(1, 3)
    drawn = _draw(cluster)
    assert min(drawn[1], drawn[3]) > DRAWS / 4
    assert min(drawn[2], drawn[11]) > 0
    assert leave_share(cluster, USUAL) > 4 * USUAL
    assert leave_share(cluster, 1.0) == 1.0
