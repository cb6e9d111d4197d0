"""Gauges show the value of their source at the time of the scrape."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace as Space

import pytest

from metrics.health import Check
from quorate import __version__
from quorate.server.gauges import REPLICA_SERIES_MAX
from quorate.server.scrape import Scrape
from quorum.core.state.replica_table import TreeView
from quorum.types import SnapshotId
from tests.support.scrapes import ME, collect, scrape, view


def page(found: Scrape, *checks: Check) -> Callable[..., float | None]:
    registry = collect(found, *checks)
    return lambda name, **labels: registry.get_sample_value(f"quorate_{name}", labels)


def test_the_state_is_one_gauge_per_state() -> None:
    value = page(scrape())
    assert value("raft_state", state="follower") == 1
    assert value("raft_state", state="leader") == 0
    assert value("raft_epoch") == 7
    assert value("raft_log_end_offset") == 100
    assert value("build_info", version=__version__) == 1
    assert value("node_info", node_id="1", cluster_id="abc") == 1
    assert value("check_ok", check="metrics") == 1


def test_a_follower_without_a_vote_is_an_observer() -> None:
    value = page(scrape(is_voter=False))
    assert value("raft_state", state="observer") == 1
    assert value("raft_state", state="follower") == 0


def test_each_replica_has_its_series() -> None:
    observers = [view(100 + n, is_voter=False, end=100 - n) for n in range(REPLICA_SERIES_MAX)]
    value = page(scrape(view(2, end=95, fetched_ms=750), *observers))
    assert value("raft_replica_lag_records", replica="2", role="voter") == 5
    assert value("raft_replica_fetch_age_seconds", replica="2", role="voter") == 0.25
    assert value("raft_replica_lag_records", replica="100", role="observer") == 0
    assert value("raft_replica_fetch_age_seconds", replica="100", role="observer") is None


def test_a_leader_is_no_replica_of_its_own_and_those_without_series_are_counted() -> None:
    observers = [view(100 + n, is_voter=False) for n in range(REPLICA_SERIES_MAX)]
    me = view(ME.id)
    mine = scrape(me, view(2), *observers, me=me.key)
    value = page(mine)
    last = str(100 + REPLICA_SERIES_MAX - 1)
    assert value("raft_replica_lag_records", replica="1", role="voter") is None
    assert value("raft_replica_lag_records", replica=last, role="observer") is None
    assert value("raft_replicas_unlisted") == 1
    assert value("raft_observers") == REPLICA_SERIES_MAX


def test_every_broker_counts_in_one_state() -> None:
    def broker(fenced: bool, leaving: bool) -> Space:
        return Space(fenced=fenced, in_controlled_shutdown=leaving)

    image = Space(
        brokers={1: broker(False, False), 2: broker(True, True), 3: broker(False, False)},
        provenance=Space(timestamp_ms=1500, end_offset=85),
    )
    value = page(scrape(image=image))
    assert value("brokers", state="active") == 2
    assert value("brokers", state="fenced") == 1
    assert value("brokers", state="controlled_shutdown") == 0
    assert value("applied_timestamp_seconds") == 1.5
    assert value("applied_lag_records") == 5


@pytest.mark.filterwarnings("ignore")
def test_a_failing_gauge_costs_itself_only() -> None:
    def broken(_: SnapshotId) -> int:
        raise RuntimeError("half-started")

    value = page(scrape(snapshots=Space(size=broken, quarantined=())))
    assert value("snapshot_size_bytes") is None
    assert value("raft_epoch") == 7
    assert value("check_ok", check="metrics") == 0


def test_checks_show_as_gauges() -> None:
    checks = [Check("leader_known", lambda: "no leader"), Check("disk", lambda: None)]
    value = page(scrape(), *checks)
    assert value("check_ok", check="leader_known") == 0
    assert value("check_ok", check="disk") == 1


def test_a_relay_shows_what_it_reports_its_subtree_to_need() -> None:
    value = page(scrape())
    assert value("raft_relay_subtree_low_offset") == -1
    assert value("raft_relay_subtree_lag_records") == 0
    assert value("raft_relay_subtree_low_provisional") == 0
    value = page(scrape(tree=lambda: TreeView((), (), 10, True)))
    assert value("raft_relay_subtree_low_offset") == 10
    assert value("raft_relay_subtree_lag_records") == 80
    assert value("raft_relay_subtree_low_provisional") == 1
