"""Recoveries in simulation: no former voter takes part, and nobody forgets the incarnation."""

from __future__ import annotations

import pytest

from tests.simulation.experiments.recovered_cluster import run


def check(seeds: range) -> None:
    for seed in seeds:
        found = run(seed)
        assert found is None, f"seed {seed}: {found}"


def test_recovered_clusters() -> None:
    """Goal: one history per incarnation. Method: random losses, recoveries and returns."""
    check(range(1, 16))


@pytest.mark.long
def test_two_hundred_recovered_clusters() -> None:
    check(range(16, 216))


@pytest.mark.nightly
def test_two_thousand_recovered_clusters() -> None:
    check(range(216, 2216))
