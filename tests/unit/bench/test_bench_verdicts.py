"""The bench's own arithmetic: what it refuses, its percentiles and its ratios."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bench.closed_loop import config_change, percentile
from bench.quorum_under_load import NotDurableError, check_durable
from bench.report import render


@pytest.mark.parametrize(
    ("syncs", "groups"), [((100, 100, 100), 100), ((100, 100, 0), 100), ((60, 80, 60), 100)]
)
def test_a_sync_per_group_on_a_majority_counts(syncs: Sequence[int], groups: int) -> None:
    """Goal: sound runs pass. Method: a lagging node, and three that share the groups.

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


def test_ratios_are_ours_by_the_peers() -> None:
    """Goal: nobody reads a ratio upside down. Method: twice the rate at half the latency."""
    ours = {"writers": 64, "rate": 2000.0, "p50_ms": 1.0, "p99_ms": 2.0}
    theirs = {"writers": 64, "rate": 1000.0, "p50_ms": 2.0, "p99_ms": 4.0}
    text = render({"writes": [ours], "peers": {"etcd": {"writes": [theirs]}, "zookeeper": {}}})
    line = next(line for line in text.splitlines() if line.startswith("etcd"))
    assert line.split()[-2:] == ["2.00", "0.50"]
