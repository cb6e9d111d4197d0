"""The leader's load does not grow with the observers behind relays."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from simulation import relay_scale
from simulation.relay_scale import GROWTH_MAX, TOP_RELAYS, Load, Tree, main, problems

NIGHTLY_COUNTS = (100, 1_000, 10_000)


def test_the_leaders_load_stays_flat_behind_relays() -> None:
    """Goal: messages and bytes at the leader. Method: 50 and 200 observers, and 50 without."""
    few = Tree(50, with_relays=True).measure()
    many = Tree(200, with_relays=True).measure()
    without = Tree(50, with_relays=False).measure()
    assert few.fetching_directly == many.fetching_directly == TOP_RELAYS
    assert problems([without], [few, many]) == []
    assert without.messages > few.messages * 3
    assert many.percentile(100) < 50


@pytest.mark.nightly
def test_ten_thousand_observers_cost_the_leader_what_a_hundred_cost(
    record_property: Callable[[str, object], None],
) -> None:
    """About a minute of processor time, nearly all of it for the largest tree."""
    trees = [Tree(count, with_relays=True).measure() for count in NIGHTLY_COUNTS]
    for tree in trees:
        text = f"{tree.messages} messages, {tree.bytes} bytes, worst {tree.percentile(100)} ms"
        record_property(f"{tree.observers}_observers", text)
    assert [tree.fetching_directly for tree in trees] == [TOP_RELAYS] * len(trees)
    assert problems([], trees) == []
    assert max(tree.percentile(100) for tree in trees) < 50


def tree_of(observers: int, *, messages: int = 1_000, size: int = 1_000, missing: int = 0) -> Load:
    return Load(observers, TOP_RELAYS, messages, size, [1.0], missing)


def test_what_is_missing_and_what_grows_is_named() -> None:
    """Method: loads at the bound and one above it; many that fetch directly are no growth."""
    at_bound = round(1_000 * (1 + GROWTH_MAX))
    small = tree_of(100)
    assert problems([], [small, tree_of(1_000, messages=at_bound, size=at_bound)]) == []
    assert problems([], [tree_of(5, messages=1), small]) == []
    assert problems([small, tree_of(1_000, messages=9_000)], [small]) == []
    assert problems([tree_of(7, missing=2)], []) == [
        "7 observers, 10 of them at the leader: 2 commits are missing"
    ]
    grown = tree_of(1_000, messages=at_bound + 1, size=at_bound + 2)
    assert problems([], [grown, small]) == [
        "the leader's messages grew from 1000 with 100 observers to 1051 with 1000, "
        "by more than 5%",
        "the leader's bytes grew from 1000 with 100 observers to 1052 with 1000, by more than 5%",
    ]


@pytest.mark.parametrize(
    ("load", "problem"),
    [
        (tree_of(200, messages=2_000), "messages grew"),
        (tree_of(200, missing=1), "commits are missing"),
    ],
)
def test_the_command_fails_where_there_are_problems(
    load: Load, problem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Measured:
        def __init__(self, observers: int, *, with_relays: bool) -> None:
            self._load = load if with_relays and observers == 200 else tree_of(observers)

        def measure(self) -> Load:
            return self._load

    monkeypatch.setattr(relay_scale, "Tree", Measured)
    assert main(["100"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["-o", "json", "100", "200"]) == 1
    assert problem in capsys.readouterr().err
