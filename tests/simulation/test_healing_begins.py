"""A fault that is half done when all faults end does not keep the cluster from recovering."""

from __future__ import annotations

from quorum.core.contract.local_events import ShutDown
from simulation.cluster import Cluster
from simulation.options import Options
from simulation.trace import Trace


def test_a_node_that_was_shut_down_is_restarted() -> None:
    """It would not campaign any more, and as the only voter it would never lead."""
    cluster = Cluster(1, Trace(), Options("crash", voters=(1,), observers=(0,)))
    cluster.start()
    (member,) = cluster.members.values()
    while not member.is_up:
        cluster.scheduler.step()
    incarnation = member.incarnation
    member.notify(ShutDown())
    assert member.is_stopping
    cluster.heal()
    assert member.incarnation > incarnation
    assert not member.is_stopping
    until_us = cluster.scheduler.now_us + 5_000_000
    while cluster.scheduler.now_us < until_us:
        cluster.scheduler.step()
    assert member.replica is not None
    assert member.replica.node.is_leader
