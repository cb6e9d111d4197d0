"""Quorum arithmetic: the size of a majority, the value it has reached, the result of a vote.

It handles numbers, not nodes. The callers (``fetch_serving``, ``campaign``, ``read_rounds``) pass
one number per voter and decide who counts.

See: Raft section 5.2 (votes) and 5.3 (commitment).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum


class VoteResult(Enum):
    """State of an election."""

    WON = "won"
    LOST = "lost"
    PENDING = "pending"


def quorum_size(voter_count: int) -> int:
    """Return the smallest number of voters that is more than half of ``voter_count``."""
    return voter_count // 2 + 1


def reached_by_majority(values: Sequence[int]) -> int:
    """Return the largest number that a majority has reached; -1 without voters.

    ``values`` has one entry per voter: its durable log end, or the read round it echoed;
    -1 if unknown.
    """
    if not values:
        return -1
    return sorted(values)[len(values) - quorum_size(len(values))]


def vote_result(voter_count: int, granted: int, rejected: int) -> VoteResult:
    """Return WON with a majority of grants; LOST if missing answers can no longer give one."""
    needed = quorum_size(voter_count)
    if granted >= needed:
        return VoteResult.WON
    if voter_count - rejected < needed:
        return VoteResult.LOST
    return VoteResult.PENDING
