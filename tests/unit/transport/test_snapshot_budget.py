"""Sharing the bytes of one FetchSnapshot answer (630.11)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.transport.limits import SNAPSHOT_RESPONSE_BYTES_MAX
from quorum.transport.snapshots import divide_budget, response_budget

sizes = st.lists(st.integers(0, 10_000), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("asked", "server_max", "budget"),
    [(100, 1000, 100), (1000, 100, 100), (0, 100, 100), (2**31 - 1, 100, 100)],
)
def test_the_smaller_limit_counts(asked: int, server_max: int, budget: int) -> None:
    """What is asked for and what we send, whichever is less; 0 asks for no limit."""
    assert response_budget(asked, server_max) == budget


def test_our_own_bound_is_the_default() -> None:
    """``replica.fetch.response.max.bytes``."""
    assert response_budget(2**31 - 1) == SNAPSHOT_RESPONSE_BYTES_MAX


@pytest.mark.parametrize(
    ("budget", "left", "shares"),
    [
        (100, [1000], [100]),
        (100, [1000, 1000], [50, 50]),
        (100, [10, 1000], [10, 90]),
        (100, [1000, 10], [90, 10]),
        (90, [10, 20, 1000], [10, 20, 60]),
        (100, [10, 20], [10, 20]),
        (0, [5, 5], [0, 0]),
        (10, [], []),
    ],
)
def test_examples(budget: int, left: list[int], shares: list[int]) -> None:
    """Short ones leave to others, in any order."""
    assert divide_budget(budget, left) == shares


@given(st.integers(0, 20_000), sizes)
def test_everybody_gets_the_average_and_nothing_is_wasted(budget: int, left: list[int]) -> None:
    """The requirement itself, for any sizes."""
    shares = divide_budget(budget, left)
    average = budget // len(left)
    for share, available in zip(shares, left, strict=True):
        assert min(average, available) <= share <= available
    assert sum(shares) == min(budget, sum(left))
