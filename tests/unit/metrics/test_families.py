"""Counters and histograms: noted at once, entered later, never read before they are entered."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from metrics import families as families_module
from metrics.families import Families

LOST = "quorate_raft_leader_lost_total"
VOTES = "quorate_raft_votes_total"
SYNCS = "quorate_log_sync_seconds"


def test_whoever_collects_sees_everything_noted_before() -> None:
    """The first metric of the page as well as the last."""
    registry = CollectorRegistry()
    families = Families(registry)
    families.count(LOST, by=2)
    families.count(VOTES, "vote", "granted")
    families.time(SYNCS, 0.5)
    found = {
        (sample.name, tuple(sample.labels.values())): sample.value
        for metric in registry.collect()
        for sample in metric.samples
    }
    assert found[LOST, ()] == 2
    assert found[VOTES, ("vote", "granted")] == 1
    assert found[f"{SYNCS}_count", ()] == 1
    assert registry.get_sample_value(f"{SYNCS}_sum") == 0.5


def test_what_is_noted_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node without scrapes keeps a bounded amount, and loses no observation."""
    monkeypatch.setattr(families_module, "PENDING_MAX", 3)
    registry = CollectorRegistry()
    families = Families(registry)
    for _ in range(10):
        families.count(LOST)
        families.time(SYNCS, 0.5)
        assert len(families._counted) <= 3
        assert len(families._timed) <= 3
    assert registry.get_sample_value(LOST) == 10
    assert registry.get_sample_value(f"{SYNCS}_count") == 10


def test_a_misspelt_name_fails_where_it_is_used() -> None:
    """Not later, far from the mistake."""
    families = Families(CollectorRegistry())
    with pytest.raises(KeyError):
        families.count("quorate_raft_leader_lots_total")
    with pytest.raises(KeyError):
        families.time("quorate_log_sink_seconds", 1.0)


def test_a_histogram_is_no_counter_also_after_it_was_used() -> None:
    """What was found once is remembered, and for its own kind only."""
    families = Families(CollectorRegistry())
    families.time("quorate_log_sync_seconds", 1.0)
    families.count(LOST)
    with pytest.raises(KeyError):
        families.count("quorate_log_sync_seconds")
    with pytest.raises(KeyError):
        families.time(LOST, 1.0)
