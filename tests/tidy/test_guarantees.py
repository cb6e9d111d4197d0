"""Every promise names what backs it, and what it names exists."""

from __future__ import annotations

import pytest

from tests.evidence.guarantees import Promise, all_promises, node_ids, problem_with, promises

PROMISES = all_promises()


def test_there_are_promises_and_their_labels_differ() -> None:
    assert len(PROMISES) >= 70
    assert len({each.label for each in PROMISES}) == len(PROMISES)


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.label)
def test_a_promise_is_backed(promise: Promise) -> None:
    assert promise.backing
    assert [problem for each in promise.backing if (problem := problem_with(each))] == []


def test_the_runs_that_apply_properties_and_rules_are_among_the_tests() -> None:
    """Naming a property backs nothing unless something runs with it."""
    assert {
        "tests/simulation/test_simulation.py::test_the_seeds_of_this_lane_are_clean",
        "tests/chaos/test_chaos.py::test_three_minutes",
    } <= set(node_ids(PROMISES))


@pytest.mark.parametrize(
    "name",
    [
        "tests/unit/core/test_core_reads.py::test_nothing_of_this_name",
        "tests/unit/core/test_core_none.py::test_a",
        "tests/unit/core/test_core_reads.py",
        "tests/support/core_cluster.py::CoreCluster",
        "reads/none.scn",
        "invariant no-such-property",
        "rule no-such-rule",
        "rule no such rule",
        "hearsay",
    ],
)
def test_what_backs_nothing_is_seen(name: str) -> None:
    assert problem_with(name)


def test_a_promise_without_backing_is_seen() -> None:
    text = "**X1.** Two\nlines.\nShown by: `a.scn`,\n`rule b`\n\n**X2.** Bare.\n\n**None.** x"
    assert promises(text) == [Promise("X1", ("a.scn", "rule b")), Promise("X2", ())]
