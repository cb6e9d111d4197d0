"""What explains a fault without effect, or an isolated leader that is not replaced."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.chaos.nemesis import Nemesis


@pytest.mark.parametrize(
    ("lane", "when", "is_explained"),
    [
        ("other", "never", False),
        ("other", "began and ended before", False),
        ("other", "began before", True),
        ("other", "began before, ended meanwhile", True),
        ("other", "begins meanwhile", True),
        ("own", "began and ended before", False),
        ("own", "begins meanwhile", False),
    ],
)
def test_only_a_fault_of_another_lane_meanwhile_explains_a_miss(
    lane: str, when: str, is_explained: bool
) -> None:
    nemesis = Nemesis(cluster_of(True, True, True), 1, ({}, {}), print)
    own, other = nemesis._break_network, nemesis._break_process
    act = own if lane == "own" else other
    nemesis._begun[act] += when.startswith("began")
    nemesis._ended[act] += when == "began and ended before"
    is_disturbed = asyncio.run(nemesis._watch_for_others(own))
    nemesis._begun[act] += when == "begins meanwhile"
    nemesis._ended[act] += when == "began before, ended meanwhile"
    assert is_disturbed() == is_explained


@pytest.mark.parametrize("ready", [(True, True, True), (True, False, True), (True, True, False)])
def test_a_node_that_is_still_starting_explains_a_miss(ready: tuple[bool, ...]) -> None:
    nemesis = Nemesis(cluster_of(*ready), 1, ({}, {}), print)
    is_disturbed = asyncio.run(nemesis._watch_for_others(nemesis._break_network))
    assert is_disturbed() != all(ready)


def cluster_of(*ready: bool) -> Any:
    """A cluster with the two things that a nemesis reads: the voters, and which are ready."""
    voters = [*range(len(ready))]
    return cast(Any, SimpleNamespace(nodes=voters, voters=voters, is_ready=ready.__getitem__))
