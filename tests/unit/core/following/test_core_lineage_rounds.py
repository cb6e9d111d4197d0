"""How many round trips of Fetch two diverged logs need (KIP-279, requirement 279.3)."""

from __future__ import annotations

import pytest

from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from tests.support.core_cluster import CoreCluster
from tests.support.core_disk import disk_with

COMMON = ["1:x"] * 4


def interleaved(unknown: int) -> tuple[str, str]:
    """A leader with odd epochs from 3 on, a follower with ``unknown`` even ones from 2 on."""
    leader, follower = list(COMMON), list(COMMON)
    for number in range(unknown):
        follower += [f"{2 * number + 2}:x"] * 2
        leader += [f"{2 * number + 3}:x"] * 2
    return " ".join(leader), " ".join(follower)


def rounds_to_converge(leader: str, follower: str) -> int:
    """Round trips of node 2 that brought it an answer other than records, until it serves."""
    cluster = CoreCluster(
        disks={1: disk_with(leader), 2: disk_with(follower), 3: disk_with(leader)}
    )
    cluster.elect(1)
    cluster.settle()
    assert cluster.members[2].disk.log == cluster.members[1].disk.log
    answers = [
        message
        for sender, to, message in cluster.sent
        if (sender, to) == (1, 2) and isinstance(message, FetchResponse) and not message.error
    ]
    asked = [
        message
        for sender, to, message in cluster.sent
        if (sender, to) == (2, 1)
        and isinstance(message, FetchRequest)
        and message.epoch == cluster[1].epoch
    ]
    diverging = [each for each in answers if each.diverging is not None]
    # Divergence is settled by the first Fetches of the leadership term, one question for each
    # answer.
    assert answers[: len(diverging)] == diverging
    assert len({each.fetch_offset for each in asked[: len(diverging) + 1]}) == len(diverging) + 1
    return len(diverging)


def test_a_prefix_needs_none() -> None:
    """Goal: no question without divergence. Method: a follower that is merely behind."""
    assert rounds_to_converge("1:x 1:x 1:x 3:x", "1:x 1:x") == 0


def test_a_longer_log_of_known_epochs_needs_one() -> None:
    """Goal: no epoch unknown, one round trip. Method: a tail that the leader does not have."""
    assert rounds_to_converge("1:x 1:x 3:x 3:x", "1:x 1:x 1:x 1:x 1:x") == 1


@pytest.mark.parametrize("unknown", [1, 2, 3, 5, 8, 13])
def test_interleaved_epochs_need_one_round_trip_each(unknown: int) -> None:
    """Goal: 279.3, one when one epoch is unknown and at most one more than that otherwise.

    Method: the worst case, in which each answer rules out only one more epoch.
    """
    rounds = rounds_to_converge(*interleaved(unknown))
    assert rounds <= (1 if unknown <= 1 else 1 + unknown)
    assert rounds == unknown


def test_epochs_that_the_leader_has_no_counterpart_for_need_one() -> None:
    """Goal: not a round trip per epoch where none is needed. Method: many epochs against one."""
    follower = " ".join([*COMMON, *(f"{epoch}:x" for epoch in range(2, 9))])
    leader = " ".join([*COMMON, *["9:x"] * 3])
    assert rounds_to_converge(leader, follower) == 1
