"""Gauges show what the sources say at the moment of the scrape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry

from metrics.collectors import REPLICA_SERIES_MAX, GaugeCollector, Sources
from metrics.facts import ControllerFacts, RaftFacts, ReplicaFacts, SnapshotFacts
from metrics.health import Check

FOLLOWER = RaftFacts(
    role="Follower",
    is_voter=True,
    leader_id=2,
    voted_id=-1,
    epoch=7,
    can_write=False,
    high_watermark=90,
    log_start_offset=10,
    log_end_offset=100,
    log_end_epoch=6,
    voters=3,
    digests={"equal": 1, "different": 0, "too_early": 0, "unknown": 0},
)


def page(sources: Sources) -> Callable[..., float | None]:
    registry = CollectorRegistry()
    GaugeCollector(registry, sources, version="1.2.3", node_id=4, cluster_id="abc")
    return lambda name, **labels: registry.get_sample_value(f"quorate_{name}", labels)


def test_the_state_is_one_gauge_per_state() -> None:
    value = page(Sources(raft=lambda: FOLLOWER))
    assert value("raft_state", state="follower") == 1
    assert value("raft_state", state="leader") == 0
    assert value("raft_epoch") == 7
    assert value("raft_log_end_offset") == 100


def test_a_follower_without_a_vote_is_an_observer() -> None:
    value = page(Sources(raft=lambda: replace(FOLLOWER, is_voter=False)))
    assert value("raft_state", state="observer") == 1
    assert value("raft_state", state="follower") == 0


def test_series_per_replica_are_bounded_and_voters_come_first() -> None:
    observers = tuple(ReplicaFacts(100 + n, False, n, None) for n in range(REPLICA_SERIES_MAX))
    voter = ReplicaFacts(2, True, 5, 0.25)
    value = page(Sources(raft=lambda: replace(FOLLOWER, replicas=(*observers, voter))))
    assert value("raft_replica_lag_records", replica="2", role="voter") == 5
    assert value("raft_replica_fetch_age_seconds", replica="2", role="voter") == 0.25
    assert value("raft_replica_lag_records", replica="100", role="observer") == 0
    last = str(100 + REPLICA_SERIES_MAX - 1)
    assert value("raft_replica_lag_records", replica=last, role="observer") is None
    assert value("raft_replicas_unlisted") == 1
    assert value("raft_observers") == REPLICA_SERIES_MAX


def test_only_known_broker_states_become_series() -> None:
    facts = ControllerFacts(5, 1, 1500, brokers={"active": 3, "surprise": 1}, topics=2)
    value = page(Sources(controller=lambda: facts))
    assert value("brokers", state="active") == 3
    assert value("brokers", state="fenced") == 0
    assert value("brokers", state="surprise") is None
    assert value("applied_timestamp_seconds") == 1.5


def test_missing_sources_leave_their_gauges_out() -> None:
    value = page(Sources())
    assert value("raft_epoch") is None
    assert value("build_info", version="1.2.3") == 1
    assert value("node_info", node_id="4", cluster_id="abc") == 1
    assert value("check_ok", check="metrics") == 1


@pytest.mark.filterwarnings("ignore")
def test_a_failing_source_costs_its_own_gauges_only() -> None:
    def broken() -> RaftFacts:
        raise RuntimeError("half-started")

    value = page(Sources(raft=broken, snapshot=lambda: SnapshotFacts(1, 2048, 50, 40, 3.0, 0.25)))
    assert value("raft_epoch") is None
    assert value("snapshot_size_bytes") == 2048
    assert value("snapshot_lag_records") == 40
    assert value("check_ok", check="metrics") == 0


def test_checks_show_as_gauges() -> None:
    checks = [Check("leader_known", lambda: "no leader"), Check("disk", lambda: None)]
    value = page(Sources(checks=checks))
    assert value("check_ok", check="leader_known") == 0
    assert value("check_ok", check="disk") == 1


def test_a_relay_shows_what_it_reports_its_subtree_to_need() -> None:
    value = page(Sources(raft=lambda: FOLLOWER))
    assert value("raft_relay_subtree_low_offset") == -1
    assert value("raft_relay_subtree_low_provisional") == 0
    restarted = replace(FOLLOWER, subtree_low=10, is_subtree_low_provisional=True)
    value = page(Sources(raft=lambda: restarted))
    assert value("raft_relay_subtree_low_offset") == 10
    assert value("raft_relay_subtree_low_provisional") == 1
