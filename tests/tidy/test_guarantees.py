"""Every guarantee names its tests, and they exist."""

from __future__ import annotations

import pytest

from tests.evidence.guarantees import (
    Promise,
    all_promises,
    differences,
    node_ids,
    problem_with,
    promises,
)

PROMISES = all_promises()


def test_there_are_promises_and_their_labels_differ() -> None:
    assert len(PROMISES) >= 100
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
        "tests/unit/core/replication/test_core_reads.py::test_nothing_of_this_name",
        "tests/unit/core/test_core_none.py::test_a",
        "tests/unit/core/replication/test_core_reads.py",
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


def test_a_paragraph_below_a_promise_is_held_to_its_own_backing() -> None:
    text = "**A1a.** One.\nShown by: `a.scn`\n\nMore.\nShown by: `b.scn`\n\nNo claim."
    assert promises(text) == [Promise("A1a", ("a.scn",)), Promise("A1a (2)", ("b.scn",))]


def test_a_backed_paragraph_before_the_first_label_is_checked_too() -> None:
    text = "No claim.\n\n**Bounds.** One.\nShown by: `a.scn`\n\n**A1.** Two.\nShown by: `b.scn`"
    assert promises(text) == [
        Promise("before the first label", ("a.scn",)),
        Promise("A1", ("b.scn",)),
    ]


def test_a_difference_from_kraft_without_backing_is_seen() -> None:
    head = "## Differences from KRaft\n| KRaft | Here | Why | Shown by |\n|---|---|---|---|\n"
    rows = "| a | b | c | `a.scn`, `rule b` |\n| d | e | f |\n"
    backed, bare = differences(head + rows)
    assert backed == Promise("KRaft: a", ("a.scn", "rule b"))
    assert bare == Promise("KRaft: d", ())
