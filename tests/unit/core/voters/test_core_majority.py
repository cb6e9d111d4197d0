"""Quorum arithmetic, exhaustively for up to seven voters."""

from __future__ import annotations

from itertools import product

import pytest

from quorum.core.voters.majority import VoteResult, quorum_size, reached_by_majority, vote_result


@pytest.mark.parametrize("voter_count", range(1, 8))
def test_two_quorums_always_overlap_and_one_less_would_not(voter_count: int) -> None:
    """Goal: quorums intersect. Method: compare sizes for every count up to seven."""
    size = quorum_size(voter_count)
    assert 2 * size > voter_count
    assert 2 * (size - 1) <= voter_count


@pytest.mark.parametrize("voter_count", range(1, 6))
def test_reached_is_the_largest_value_that_a_majority_has(voter_count: int) -> None:
    """Goal: the committed offset. Method: count supporters of each value, for all inputs."""
    for values in product(range(-1, 4), repeat=voter_count):
        expected = max(
            value
            for value in values
            if sum(other >= value for other in values) >= quorum_size(voter_count)
        )
        assert reached_by_majority(values) == expected, values


def test_nothing_is_reached_without_voters() -> None:
    """Goal: the empty set commits nothing."""
    assert reached_by_majority(()) == -1


@pytest.mark.parametrize("voter_count", range(1, 8))
def test_a_vote_is_decided_exactly_when_no_answer_can_change_it(voter_count: int) -> None:
    """Goal: won and lost are final. Method: try both extremes for the missing answers."""
    for granted in range(voter_count + 1):
        for rejected in range(voter_count + 1 - granted):
            best = voter_count - rejected >= quorum_size(voter_count)
            worst = granted >= quorum_size(voter_count)
            expected = VoteResult.WON if worst else VoteResult.PENDING if best else VoteResult.LOST
            assert vote_result(voter_count, granted, rejected) is expected
