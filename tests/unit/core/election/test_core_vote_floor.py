"""A vote floor in an epoch to come is reached at the leader's end, and nowhere else."""

from __future__ import annotations

import pytest

from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.errors import ErrorCode
from quorum.types import ElectionState, OffsetAndEpoch, ReplicaKey
from simulation.harness.core_disk import Disk
from tests.support.core_cluster import CoreCluster
from tests.support.core_disk import key

EPOCH = 1


def with_a_missing_log(*, records: int = 5) -> CoreCluster:
    """Node 1 leads epoch 1; node 3 has lost its log and remembers the epoch."""
    cluster = CoreCluster()
    cluster.elect(1)
    assert cluster[1].epoch == EPOCH
    cluster.propose(1, records)
    cluster.settle()
    cluster.members[3].is_up = False
    floor = OffsetAndEpoch(0, EPOCH + 1)
    disk = Disk(election=ElectionState(EPOCH, 1, ReplicaKey(1, key(1).directory_id), floor))
    cluster.members[3] = cluster._member(3, disk)
    cluster.start(3)
    return cluster


def floor_of(cluster: CoreCluster) -> OffsetAndEpoch | None:
    return cluster.members[3].disk.election.vote_floor


def answer(cluster: CoreCluster, **fields: object) -> None:
    """Return node 1's response to the last Fetch of node 3, with changes."""
    request = cluster.sent_by(3, FetchRequest)[-1]
    response = FetchResponse(
        request.request_id, ErrorCode.NONE, 1, EPOCH, high_watermark=request.fetch_offset
    )
    for name, value in fields.items():
        object.__setattr__(response, name, value)
    sender = 1
    cluster.call(3, lambda node: node.receive(cluster.now_ms, sender, response))


def test_the_leaders_end_lifts_a_floor_of_an_epoch_to_come() -> None:
    """From then on the replica grants votes to candidates that have all its records."""
    cluster = with_a_missing_log()
    cluster.advance(cluster.config.fetch_max_wait_ms + 100)
    cluster.settle()
    assert cluster.members[3].disk.end == cluster.members[1].disk.end
    cluster.advance(cluster.config.fetch_max_wait_ms + 100)
    assert floor_of(cluster) is None
    cluster.members[1].is_up = False
    cluster.cut |= {(1, 2), (1, 3), (2, 1), (3, 1)}
    for _ in range(100):
        cluster.advance(200)
        if cluster[2].is_leader or cluster[3].is_leader:
            return
    pytest.fail("nobody leads although a majority has every record")


def test_records_on_their_way_do_not_lift_it() -> None:
    """The response with the records says nothing about later records."""
    cluster = with_a_missing_log()
    cluster.hold |= {(3, 1)}
    cluster.advance(50)
    assert floor_of(cluster) == OffsetAndEpoch(0, EPOCH + 1)


@pytest.mark.parametrize(
    "fields",
    [
        {"error": ErrorCode.NOT_LEADER_OR_FOLLOWER},
        {"error": ErrorCode.DIGEST_MISMATCH},
        {"epoch": 0},
        {"diverging": OffsetAndEpoch(0, 0)},
        {"snapshot_id": OffsetAndEpoch(3, 1)},
        {"request_id": 1},
    ],
)
def test_no_other_answer_lifts_it(fields: dict[str, object]) -> None:
    cluster = with_a_missing_log()
    cluster.queue.clear()
    answer(cluster, **fields)
    assert floor_of(cluster) == OffsetAndEpoch(0, EPOCH + 1)


def test_an_empty_response_to_this_incarnation_lifts_it() -> None:
    """The control of the test above: the very same answer without a flaw."""
    cluster = with_a_missing_log()
    cluster.queue.clear()
    answer(cluster)
    assert floor_of(cluster) is None
