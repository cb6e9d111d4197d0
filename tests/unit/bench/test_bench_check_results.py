"""The bench's own arithmetic: refusals, percentiles and ratios."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest

from bench.__main__ import _arguments
from bench.closed_loop import config_change, percentile
from bench.host import host_share
from bench.quorum_under_load import NotDurableError, check_durable
from bench.report import render
from bench.rounds import REPEATS_MAX, Round, Row, measure_rounds, summarise
from bench.targets import TARGETS, Target


@pytest.mark.parametrize(
    ("syncs", "groups"), [((100, 100, 100), 100), ((100, 100, 0), 100), ((60, 80, 60), 100)]
)
def test_a_sync_per_group_on_a_majority_counts(syncs: Sequence[int], groups: int) -> None:
    """Goal: intact runs pass. Method: a lagging node, and three that share the groups.

    As many groups as those syncs cannot have covered twice over do not pass.
    """
    assert _is_durable(syncs, groups)
    assert not _is_durable(syncs, sum(syncs) // 2 + 1)


def _is_durable(syncs: Sequence[int], groups: int) -> bool:
    try:
        check_durable(syncs, groups)
    except NotDurableError:
        return False
    return True


@pytest.mark.parametrize(
    ("syncs", "groups"),
    [((0, 0, 0), 100), ((100, 99, 0), 100), ((0, 0, 0), 0), ((5, 5, 5), 0), ((200, 0, 0), 100)],
)
def test_a_run_in_memory_is_refused(syncs: Sequence[int], groups: int) -> None:
    """Goal: no figure without disks behind it. Method: too few syncs, and no commit at all."""
    with pytest.raises(NotDurableError):
        check_durable(syncs, groups)


def test_percentiles_of_few_values() -> None:
    """Goal: always a value that was measured. Method: one value, and a hundred."""
    assert percentile([7.0], 0.99) == 7.0
    assert percentile([float(each) for each in range(100)], 0.5) == 50.0
    assert percentile([float(each) for each in range(100)], 0.99) == 99.0


def test_no_two_writes_are_equal() -> None:
    """Goal: no write is a no-op. Method: values of neighbouring numbers, and their size."""
    values = [config_change(n).incremental_alter_configs.alterations[0].value for n in range(300)]
    assert len(set(values)) == 300
    assert {len(value) for value in values} == {100}


def _row(p50_ms: float, stolen: float | None) -> Row:
    return {
        "kind": "write", "place": "leader", "clients": 1, "rate": 500 / p50_ms, "p50_ms": p50_ms,
        "p99_ms": 9.0, "leader_us": 60.0, "followers_us": [7.0, 8.0], "load_us": 5.0,
        "stolen": stolen,
    }  # fmt: skip


def _round(stolen: float | None, ours: float = 2.0, theirs: float = 1.0) -> Round:
    return {"quorate": _row(ours, 0.0), "etcd": _row(theirs, stolen)}


def test_ratios_are_ours_by_the_peers() -> None:
    """Goal: a ratio cannot be misread. Method: half the rate at twice the latency."""
    found = summarise([_round(None)], "quorate")
    figures = {
        "writes": [found["quorate"]],
        "peers": {"etcd": {"writes": [found["etcd"]]}, "zk": {}},
    }
    line = next(line for line in render(figures).splitlines() if " etcd " in line)
    assert line.split()[-10:] == ["0.50", "2.00", "60", "+", "15", "+", "5", "1", "+", "0"]
    target = next(line for line in render(figures).splitlines() if line.startswith("p50 of a lone"))
    assert target.split()[-4:] == ["≤", "1", "2.00", "no"]


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.text)
def test_every_target_is_read_from_a_run(target: Target) -> None:
    """Goal: no target is left out unseen. Method: a run of every load; then one without any."""
    loads = [("write", "leader", each) for each in (1, 16, 64, 256)]
    reads = [
        ("linearizable", "leader", 64),
        ("linearizable", "follower", 64),
        ("local", "leader", 64),
    ]

    def rows(loads: Sequence[tuple[str, str, int]]) -> list[Row]:
        return [
            {**_row(2.0, 0.0), "kind": kind, "place": place, "clients": clients,
             "rate_ratio": target.bound, "p50_ratio": target.bound}
            for kind, place, clients in loads
        ]  # fmt: skip

    peer = {
        "writes": rows(loads), "reads": rows(reads), "watchers": rows([("watch", "leader", 100)]),
    }  # fmt: skip
    run = {
        "writes": rows(loads), "peers": {"etcd": peer, "zookeeper": peer},
        "idle": {"resident_mb": 60}, "failover": {"p50_ms": 150},
    }  # fmt: skip
    value = target.value(run)
    assert value in (target.bound, 75.0)
    assert target.is_met(target.bound)
    assert not target.is_met(target.bound + (0.01 if target.is_at_most else -0.01))
    assert target.value({"writes": [], "peers": {}}) is None


def test_a_run_without_loads_shows_its_targets() -> None:
    figures = {"peers": {}, "unoptimised": [],
               "failover": {"p50_ms": 63, "min_ms": 60, "max_ms": 70, "all": [63]}}  # fmt: skip
    lines = render(figures).splitlines()
    assert lines[0].split() == ["target", "aim", "measured", "met"]
    assert lines[1].split()[-3:] == ["150", "63.00", "yes"]


def test_a_figure_is_the_median_of_five_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["bench"])
    assert _arguments().rounds == 5


def test_a_ratio_compares_runs_of_one_round() -> None:
    """Goal: a slow minute is no difference between systems. Method: one round slows both down."""
    found = summarise([_round(0.0), _round(0.0, 9.0, 4.5), _round(0.0, 1.8, 0.9)], "quorate")
    assert found["etcd"]["p50_ratios"] == [2.0, 2.0, 2.0]
    assert found["etcd"]["p50_ratio"] == found["etcd"]["rate_ratio"] / 0.25 == 2.0


def test_rounds_that_the_host_disturbed_do_not_count_beside_quiet_ones() -> None:
    """Goal: results never decide which rounds count. Method: a good and a bad disturbed round.

    Without a quiet round all rounds count, and the row shows it.
    """
    quiet, good, bad = _round(0.01), _round(0.011, 1.0), _round(0.5, 8.0)
    found = summarise([good, quiet, bad], "quorate")["etcd"]
    assert (found["p50_ratios"], found["rounds"], found["disturbed"]) == ([2.0], 1, 2)
    assert found["stolen"] == 0.01
    found = summarise([good, bad], "quorate")["etcd"]
    assert (found["p50_ratios"], found["rounds"], found["disturbed"]) == ([1.0, 8.0], 2, 2)


@pytest.mark.parametrize(("stolen", "measured"), [([0.0, 0.0], 2), ([0.5, 0.0, 0.0], 3)])
def test_a_disturbed_round_is_measured_again(stolen: Sequence[float], measured: int) -> None:
    """Goal: as many quiet rounds as asked for. Method: a host that takes, and one that does not."""
    shares = iter(stolen)
    assert len(measure_rounds(lambda: _round(next(shares)), 2)) == measured


def test_a_host_that_never_rests_ends_the_measuring() -> None:
    """Goal: an end on any machine. Method: every round is disturbed."""
    assert len(measure_rounds(lambda: _round(0.5), 2)) == 2 * REPEATS_MAX


def test_a_peer_that_failed_later_keeps_its_rounds() -> None:
    """Goal: its row is of the rounds it was in. Method: it is missing in the second."""
    found = summarise([_round(0.0), {"quorate": _round(0.0)["quorate"]}], "quorate")
    assert (found["quorate"]["rounds"], found["etcd"]["rounds"]) == (2, 1)


def test_the_hosts_share_is_a_share() -> None:
    """Goal: a share of what passed, whatever the machine. Method: an empty context."""
    with host_share() as share:
        pass
    assert share.stolen is None or 0.0 <= share.stolen <= 1.0
