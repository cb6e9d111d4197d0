"""Quorum arithmetic only: how many are a majority, what one has reached, who won.

Knows numbers, not nodes. Who counts is decided by the callers (``fetch_serving``, ``campaign``,
``read_rounds``), which pass one number per voter.

See: Raft section 5.2 (votes) and 5.3 (commitment).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum


class VoteResult(Enum):
    """Where an election stands."""

    WON = "won"
    LOST = "lost"
    PENDING = "pending"


def quorum_size(voter_count: int) -> int:
    """The smallest number of voters that is more than half of ``voter_count``."""
    return voter_count // 2 + 1


def reached_by_majority(values: Sequence[int]) -> int:
    """The largest number that a majority has reached; -1 without any voters.

    ``values`` holds one entry per voter: its durable log end, or the read round it echoed;
    -1 where nothing is known.
    """
    if not values:
        return -1
    return sorted(values)[len(values) - quorum_size(len(values))]


def vote_result(voter_count: int, granted: int, rejected: int) -> VoteResult:
    """Won with a majority of grants; lost when the missing answers can no longer make one."""
    needed = quorum_size(voter_count)
    if granted >= needed:
        return VoteResult.WON
    if voter_count - rejected < needed:
        return VoteResult.LOST
    return VoteResult.PENDING
