"""A disqualified voter as its leader sees it: marked, counted nowhere, and not let in again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.local_events import AddVoter, ListenerEndpoints, RemoveVoter
from quorum.core.contract.output import RequestSettled
from quorum.core.messages.voter_messages import AddVoterRequest
from quorum.errors import ErrorCode
from quorum.types import ElectionState, ReplicaKey, Voter
from simulation.harness.core_disk import BOOTSTRAPPED, Disk
from tests.support.core_cluster import CoreCluster
from tests.support.core_disk import key, voter


def with_a_disqualified_voter() -> CoreCluster:
    """Node 1 leads 2 and 3; the disk of 3 never votes."""
    disqualified = Disk(replace(BOOTSTRAPPED, disqualified="its disk was wiped"))
    cluster = CoreCluster((1, 2, 3), disks={3: disqualified})
    cluster.elect(1)
    cluster.propose(1, 5)
    cluster.advance(600)
    return cluster


def marks(cluster: CoreCluster) -> dict[tuple[int, bool], tuple[bool, int]]:
    """Return (is disqualified, acknowledged log end) by (id, is a voter), in node 1's view."""
    return {
        (each.key.id, each.is_voter): (each.is_disqualified, each.log_end_offset)
        for each in cluster[1].replicas()
    }


def answer(cluster: CoreCluster) -> RequestSettled:
    progress = cluster.members[1].progress
    return [each for each in progress if isinstance(each, RequestSettled)][-1]


def test_it_is_marked_as_a_voter_and_as_an_observer() -> None:
    """Its voter's place has acknowledged nothing, though the disk follows to the end."""
    cluster = with_a_disqualified_voter()
    end = cluster[1].log_end_offset
    assert marks(cluster) == {
        (1, True): (False, end),
        (2, True): (False, end),
        (3, True): (True, -1),
        (3, False): (True, end),
    }


def test_the_mark_goes_when_the_right_disk_is_back() -> None:
    """The disk that was wiped was a copy, and the one that remembers fetches again."""
    cluster = with_a_disqualified_voter()
    cluster.crash(3)
    election = ElectionState(epoch=cluster[1].epoch, leader_id=1)
    cluster.members[3].disk = replace(cluster.members[3].disk, election=election)
    cluster.restart(3)
    cluster.advance(600)
    assert marks(cluster)[3, True] == (False, cluster[1].log_end_offset)


def test_its_key_is_not_added_again_not_even_by_readmission() -> None:
    """Another directory id of the same number is another disk."""
    cluster = with_a_disqualified_voter()
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, RemoveVoter(1, key(3))))
    cluster.settle()
    assert answer(cluster).error is ErrorCode.NONE
    for readmit in (False, True):
        event = AddVoter(2, voter(3), readmit=readmit)
        cluster.call(1, lambda node, asked=event: node.on_local_event(cluster.now_ms, asked))
        expected = ErrorCode.INELIGIBLE_REPLICA if readmit else ErrorCode.VOTER_REMOVED
        assert (answer(cluster).error, answer(cluster).offset) == (expected, -1)
    assert (
        "node 3 is disqualified: the disk with this directory id never" in answer(cluster).message
    )
    anew = Voter(ReplicaKey(3, b"n" * 16), voter(3).endpoints)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, AddVoter(3, anew)))
    # It does not fetch here, and that is all that is wrong with it.
    cluster.advance(3000)
    assert answer(cluster).error is ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize("disqualified", ["", "its disk was wiped"])
def test_it_does_not_join_by_itself(disqualified: str) -> None:
    """It would not be let in, and would remove the older entry of its number first."""
    disk = Disk(replace(BOOTSTRAPPED, disqualified=disqualified))
    config = QuorumConfig(auto_join=True)
    cluster = CoreCluster((1, 2), observers=(9,), disks={9: disk}, config=config)
    reached_at = ListenerEndpoints(voter(9).endpoints)
    cluster.call(9, lambda node: node.on_local_event(cluster.now_ms, reached_at))
    cluster.elect(1)
    cluster.advance(20_000)
    assert bool(cluster.sent_by(9, AddVoterRequest)) is not bool(disqualified)
