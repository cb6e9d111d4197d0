"""Conditions of a vote, what a vote waits for, and the election of a leader."""

from __future__ import annotations

import pytest

from quorum.core.contract.events import CampaignRefused, VoteDecided
from quorum.core.contract.local_events import ShutDown
from quorum.core.contract.output import Output, Promise, SaveElectionState
from quorum.core.contract.reasons import VoteRejection
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.errors import ErrorCode
from quorum.types import OffsetAndEpoch, ReplicaKey
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import Disk, disk_with, key

LOG = "1:a 2:b 2:c"
END = OffsetAndEpoch(3, 2)


def node_with(disk: Disk, voters: tuple[int, ...] = (1, 2, 3)) -> CoreCluster:
    """A cluster of which only node 1 matters, with ``disk`` under it."""
    return CoreCluster(voters, disks={1: disk})


def ask(
    cluster: CoreCluster,
    candidate: int = 2,
    *,
    epoch: int,
    last: OffsetAndEpoch = END,
    pre_vote: bool = False,
    cluster_id: str = CLUSTER,
    receiver: ReplicaKey | None = None,
    author: ReplicaKey | None = None,
) -> tuple[Output, VoteResponse]:
    request = VoteRequest(
        7, cluster_id, author or key(candidate), receiver or key(1), epoch, last, pre_vote
    )
    output = cluster.call(1, lambda node: node.receive(cluster.now_ms, candidate, request))
    sent = [*output.immediate, *output.after_persist]
    (answer,) = [each.message for each in sent if isinstance(each.message, VoteResponse)]
    return output, answer


@pytest.mark.parametrize(
    ("last", "granted"),
    [
        (OffsetAndEpoch(3, 2), True),
        (OffsetAndEpoch(4, 2), True),
        (OffsetAndEpoch(1, 3), True),
        (OffsetAndEpoch(2, 2), False),
        (OffsetAndEpoch(99, 1), False),
    ],
)
@pytest.mark.parametrize("pre_vote", [True, False])
def test_a_vote_goes_to_a_log_at_least_as_new(
    last: OffsetAndEpoch, granted: bool, pre_vote: bool
) -> None:
    """Goal: Raft 5.4.1. Method: candidates around our log end, epoch first."""
    cluster = node_with(disk_with(LOG))
    _, answer = ask(cluster, epoch=5, last=last, pre_vote=pre_vote)
    assert answer.granted is granted
    assert answer.epoch == 5


def test_the_newest_position_may_be_a_snapshot() -> None:
    """Goal: 630.13. Method: a snapshot at the log's start that is all there is."""
    snapshot = OffsetAndEpoch(10, 3)
    cluster = node_with(disk_with(start=snapshot, snapshots={snapshot: 5}, epoch=4))
    assert not ask(cluster, epoch=5, last=OffsetAndEpoch(9, 3))[1].granted
    assert ask(cluster, epoch=5, last=OffsetAndEpoch(10, 3))[1].granted


def test_a_grant_leaves_only_when_epoch_and_vote_are_durable() -> None:
    """Goal: the promise waits for the disk. Method: a slow disk, then a persist."""
    cluster = node_with(disk_with(LOG))
    cluster.slow_disks.add(1)
    output, answer = ask(cluster, epoch=5)
    assert answer.granted
    assert [type(each) for each in output.persist] == [SaveElectionState, SaveElectionState]
    assert output.immediate == []
    assert Promise(output.ticket, 2, answer) in output.after_persist
    assert cluster.members[1].disk.election.voted is None
    cluster.persist(1)
    assert cluster.members[1].disk.election.voted == key(2)
    assert cluster.members[1].disk.election.epoch == 5


def test_one_vote_per_epoch_and_a_repeated_request_is_granted_without_a_write() -> None:
    """Goal: never two votes. Method: two candidates, then the first again with a shorter log."""
    cluster = node_with(disk_with(LOG))
    assert ask(cluster, 2, epoch=5)[1].granted
    assert not ask(cluster, 3, epoch=5)[1].granted
    output, again = ask(cluster, 2, epoch=5, last=OffsetAndEpoch(0, 0))
    assert again.granted
    assert output.persist == []
    other_disk = ReplicaKey(2, b"another disk 16B")
    assert not ask(cluster, 2, epoch=5, author=other_disk)[1].granted


def test_a_vote_survives_a_crash_right_after_the_grant() -> None:
    """Goal: vote persisted before grant. Method: grant, crash, restart, ask for another."""
    cluster = node_with(disk_with(LOG))
    assert ask(cluster, 2, epoch=5)[1].granted
    cluster.crash(1)
    cluster.restart(1)
    assert not ask(cluster, 3, epoch=5)[1].granted
    assert ask(cluster, 2, epoch=5)[1].granted


def test_a_pre_vote_promises_nothing_and_may_go_to_several() -> None:
    """Goal: pre-votes are not persisted. Method: two pre-votes in the present epoch."""
    cluster = node_with(disk_with(LOG))
    for candidate in (2, 3):
        output, answer = ask(cluster, candidate, epoch=2, pre_vote=True)
        assert answer.granted
        assert output.persist == []


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"last": OffsetAndEpoch(-1, 1)}, ErrorCode.INVALID_REQUEST),
        ({"last": OffsetAndEpoch(3, -1)}, ErrorCode.INVALID_REQUEST),
        ({"last": OffsetAndEpoch(3, 5)}, ErrorCode.INVALID_REQUEST),
        ({"last": OffsetAndEpoch(3, 6), "pre_vote": True}, ErrorCode.INVALID_REQUEST),
        ({"epoch": 1, "last": OffsetAndEpoch(0, 0)}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"author": ReplicaKey(-1)}, ErrorCode.INVALID_REQUEST),
        ({"author": key(1)}, ErrorCode.INVALID_REQUEST),
        ({"epoch": (1 << 31) - 1}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_refused_request_leaves_no_trace(change: dict[str, object], error: ErrorCode) -> None:
    """Goal: validate before touching. Method: one wrong field at a time."""
    cluster = node_with(disk_with(LOG))
    output, answer = ask(cluster, **{"epoch": 5, **change})  # type: ignore[arg-type]
    assert answer.error == error
    assert not answer.granted
    assert output.persist == []
    assert cluster[1].epoch == 2


def test_a_request_for_another_replica_moves_nothing() -> None:
    """Goal: only a request for this disk moves the epoch. Method: a wrong receiver directory."""
    cluster = node_with(disk_with(LOG))
    _, answer = ask(cluster, epoch=5, receiver=ReplicaKey(1, b"another disk 16B"))
    assert answer.error == ErrorCode.INVALID_VOTER_KEY
    assert cluster[1].epoch == 2


def test_below_its_vote_floor_a_node_neither_campaigns_nor_grants_votes_below_it() -> None:
    """Goal: ADR 7. Method: a damaged node with floor (5, 2) and a log that ends at (3, 2)."""
    floor = OffsetAndEpoch(5, 2)
    cluster = node_with(disk_with(LOG, vote_floor=floor))
    assert not ask(cluster, epoch=5, last=OffsetAndEpoch(4, 2))[1].granted
    assert ask(cluster, epoch=5, last=OffsetAndEpoch(5, 2))[1].granted
    cluster = node_with(disk_with(LOG, vote_floor=floor))
    cluster.isolate(1)
    cluster.advance(10_000)
    assert cluster[1].role_name == "Unattached"
    assert cluster[1].epoch == 2
    assert any(isinstance(each, CampaignRefused) for each in cluster.members[1].events)


def test_the_vote_floor_is_lifted_once_the_log_is_flushed_up_to_it() -> None:
    """Goal: a repaired node votes again. Method: refetch beyond the floor from a leader."""
    floor = OffsetAndEpoch(5, 2)
    whole = disk_with("1:a 2:b 2:c 2:d 2:e")
    cluster = CoreCluster(
        disks={1: disk_with(LOG, vote_floor=floor), 2: whole, 3: disk_with("1:a")}
    )
    cluster.elect(2)
    assert cluster.members[1].disk.election.vote_floor is None
    assert cluster.members[1].disk.election.leader_id == 2


def test_three_nodes_elect_a_leader_without_raising_the_epoch_in_vain() -> None:
    """Goal: pre-vote, vote, leadership in order. Method: let one timer expire."""
    cluster = CoreCluster()
    cluster.elect(1)
    assert cluster[1].can_write
    assert [cluster[each].epoch for each in (1, 2, 3)] == [1, 1, 1]
    assert [cluster[each].leader_id for each in (1, 2, 3)] == [1, 1, 1]


def test_a_lonely_node_asks_for_pre_votes_for_ever_at_its_old_epoch() -> None:
    """Goal: no epoch inflation. Method: isolate a voter for a minute, then heal."""
    cluster = CoreCluster()
    cluster.elect(1)
    cluster.isolate(3)
    cluster.advance(60_000)
    assert cluster[3].epoch == 1
    cluster.heal()
    cluster.advance(3_000)
    assert cluster.leaders() == [1]
    assert cluster[1].epoch == 1


def test_a_follower_that_hears_its_leader_refuses_pre_votes() -> None:
    """Goal: a node that was cut off cannot disturb. Method: a pre-vote to a busy follower."""
    cluster = CoreCluster()
    cluster.elect(2)
    cluster.advance(2_000)
    epoch = cluster[1].epoch
    _, answer = ask(cluster, 3, epoch=epoch, last=OffsetAndEpoch(99, 1), pre_vote=True)
    assert not answer.granted
    assert answer.leader_id == cluster[1].leader_id == 2


def test_a_vote_answer_that_was_not_asked_for_counts_for_nothing() -> None:
    """Goal: stale grants. Method: grants with invented request ids to a candidate's node."""
    cluster = CoreCluster()
    cluster.isolate(1)
    cluster.advance(2_500)
    assert cluster[1].role_name == "Prospective"
    for sender in (2, 3):
        answer = VoteResponse(0, ErrorCode.NONE, -1, 0, granted=True)
        cluster.call(1, lambda node, s=sender, a=answer: node.receive(cluster.now_ms, s, a))
    assert cluster[1].role_name == "Prospective"


def test_a_single_voter_leads_at_once() -> None:
    """Goal: a quorum of one. Method: start it."""
    cluster = CoreCluster((1,))
    assert cluster[1].can_write
    assert cluster[1].high_watermark == cluster[1].log_end_offset == 3


def test_an_observer_never_stands() -> None:
    """Goal: only voters campaign. Method: an observer alone for a minute."""
    cluster = CoreCluster((1,), observers=(9,))
    cluster.crash(1)
    cluster.advance(60_000)
    assert cluster[9].role_name in ("Unattached", "Follower")


def test_a_node_that_shuts_down_does_not_stand() -> None:
    """Goal: no leadership on the way out. Method: shut down a follower, lose the leader."""
    cluster = CoreCluster()
    cluster.elect(1)
    cluster.call(2, lambda node: node.on_local_event(cluster.now_ms, ShutDown()))
    cluster.crash(1)
    cluster.advance(8_000)
    assert cluster.leaders() == [3]


def test_every_decision_is_reported_with_its_reason() -> None:
    """Goal: someone reads this at night. Method: look at the event of a refusal."""
    cluster = node_with(disk_with(LOG))
    output, _ = ask(cluster, epoch=5, last=OffsetAndEpoch(2, 2))
    (decided,) = [each for each in output.events if isinstance(each, VoteDecided)]
    assert decided.reason is VoteRejection.LOG_BEHIND
    assert decided.detail == "2/2 is below 3/2"


def test_fetch_timers_of_followers_differ_and_end_before_check_quorum() -> None:
    """Goal: ADR 37. Method: many terms of one follower, each with a draw of its own."""
    cluster = CoreCluster()
    core = cluster[1]._core
    config = cluster.config
    drawn = {core.random_fetch_timeout() for _ in range(1_000)}
    assert len(drawn) > 100
    assert config.fetch_timeout_ms <= min(drawn)
    assert max(drawn) < config.fetch_timeout_ms + config.fetch_jitter_ms < config.check_quorum_ms
