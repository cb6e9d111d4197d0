"""Read positions that a replica must not accept, and a leader must not send."""

from __future__ import annotations

import pytest

from quorum.core.contract.output import ReadConfirmed, ReadFailed
from quorum.core.messages.read_messages import ReadPositionRequest, ReadPositionResponse
from quorum.core.protocol.refusals import OFFSET_MAX
from quorum.errors import ErrorCode
from tests.support.core_cluster import CoreCluster
from tests.support.core_situations import SITUATIONS


def asked_by_follower() -> tuple[CoreCluster, int]:
    """Node 2 follows leader 1 and has asked it for a position."""
    cluster = CoreCluster()
    cluster.elect(1)
    cluster.cut = {(2, 1)}
    cluster.call(2, lambda node: node.ask_position(cluster.now_ms, 5))
    (request,) = cluster.sent_by(2, ReadPositionRequest)
    return cluster, request.request_id


@pytest.mark.parametrize(
    ("sender", "leader", "offset", "is_taken"),
    [
        (1, 1, 0, True),
        (1, 1, OFFSET_MAX, True),
        (1, 1, -1, False),
        (1, 1, OFFSET_MAX + 1, False),
        (3, 1, 2, False),
    ],
)
def test_a_position_must_be_one_and_come_from_the_leader(
    sender: int, leader: int, offset: int, is_taken: bool
) -> None:
    cluster, number = asked_by_follower()
    answer = ReadPositionResponse(number, ErrorCode.NONE, leader, 1, offset)
    cluster.call(2, lambda node: node.receive(cluster.now_ms, sender, answer))
    done = [
        each for each in cluster.members[2].progress if isinstance(each, ReadConfirmed | ReadFailed)
    ]
    assert done == ([ReadConfirmed(5, offset)] if is_taken else [])


def test_a_leader_before_its_leadership_is_durable_shows_no_replicas() -> None:
    cluster, leader = SITUATIONS["leader-before-durable"]()
    assert cluster[leader].replicas() == ()
    cluster.persist(leader)
    assert cluster[leader].replicas() != ()
