"""Real processes: what twenty observers behind two relays cost the leader."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from quorate.demo.local_cluster import LocalNode
from tests.integration.processes import Processes, running

RELAYS = (11, 12)
BELOW = range(21, 39)
MEASURED_SECONDS = 5.0
RESULTS = ("equal", "different", "too_early", "unknown")


def fetches(cluster: Processes, leader: LocalNode) -> float:
    """Fetches of replicas that the leader has judged in its life."""
    counts = (
        cluster.metric(leader, f'quorate_raft_digests_compared{{result="{each}"}}')
        for each in RESULTS
    )
    return sum(count or 0 for count in counts)


def fetches_per_second(cluster: Processes, leader: LocalNode) -> float:
    """The leader's load, while nothing but its own idle records is written."""
    before, began = fetches(cluster, leader), time.monotonic()
    time.sleep(MEASURED_SECONDS)  # not a wait for something: the length of the measurement
    return (fetches(cluster, leader) - before) / (time.monotonic() - began)


def join(cluster: Processes, node_id: int, settings: dict[str, object]) -> LocalNode:
    """Format and start an observer."""
    node = cluster.add_observer(node_id)
    node.settings.update(settings)
    cluster.format(node)
    cluster.start(node)
    return node


@pytest.mark.integration
@pytest.mark.nightly
def test_twenty_observers_behind_two_relays_cost_what_two_cost(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Goal: the leader's Fetches per second do not grow. Method: 2 relays, then 18 more below."""
    with running(tmp_path) as cluster:
        relays = [join(cluster, each, {"relay.enable": True}) for each in RELAYS]
        cluster.wait_ready(relays, 60)
        leader = cluster.leader()
        with_two = fetches_per_second(cluster, leader)
        addresses = [relay.address for relay in relays]
        below = [
            join(cluster, each, {"relay.fetch_from": addresses[each % 2 :] + addresses[: each % 2]})
            for each in BELOW
        ]
        cluster.wait_ready(below, 120)
        assert cluster.leader().id == leader.id, "a change of leader spoils the figures"
        with_twenty = fetches_per_second(cluster, leader)
        served = [cluster.metric(relay, "quorate_raft_relay_downstream") for relay in relays]
        print(
            f"Fetches/s at the leader: {with_two:.1f} with 2, {with_twenty:.1f} with 20; {served}"
        )
        record_property("leader_fetches_per_s_with_2_observers", round(with_two, 1))
        record_property("leader_fetches_per_s_with_20_observers", round(with_twenty, 1))
        assert [cluster.metric(each, "quorate_raft_relay_hops") for each in below] == [1.0] * len(
            below
        )
        assert sum(count or 0 for count in served) >= len(below)
        assert with_two > 0
        assert with_twenty <= with_two * 1.2
