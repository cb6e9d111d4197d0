"""Add, remove and update voter: preconditions in order, effect on append, outcome once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorum.core.contract.events import VoterChangeEnded
from quorum.core.contract.local_events import (
    AddVoter,
    LocalEvent,
    RemoveVoter,
    Resign,
    ShutDown,
    UpdateVoter,
)
from quorum.core.contract.output import PeerEndpoints, RequestSettled
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from quorum.errors import ErrorCode
from quorum.types import ZERO_UUID, Endpoint, NodeId, ReplicaKey, Voter
from tests.support.core_cluster import CoreCluster
from tests.support.core_disk import key, voter


def ask(cluster: CoreCluster, node_id: NodeId, event: LocalEvent) -> None:
    cluster.call(node_id, lambda node: node.on_local_event(cluster.now_ms, event))


def answers(cluster: CoreCluster, node_id: NodeId) -> list[RequestSettled]:
    return [each for each in cluster.members[node_id].progress if isinstance(each, RequestSettled)]


def ids(cluster: CoreCluster, node_id: NodeId) -> list[NodeId]:
    return [each.key.id for each in cluster[node_id].voters]


def led(*observers: NodeId, voters: tuple[NodeId, ...] = (1, 2, 3)) -> CoreCluster:
    """Node 1 leads; every replica has caught up and has a held Fetch."""
    cluster = CoreCluster(voters, observers)
    cluster.elect(1)
    cluster.advance(600)
    return cluster


def error_of(cluster: CoreCluster, event: LocalEvent, node_id: NodeId = 1) -> ErrorCode:
    before = len(answers(cluster, node_id))
    ask(cluster, node_id, event)
    new = answers(cluster, node_id)[before:]
    assert len(new) == 1
    assert new[0].offset == -1
    assert not new[0].is_outcome_unknown
    return new[0].error


def test_adding_a_voter_commits_with_the_new_majority() -> None:
    cluster = led(4)
    ask(cluster, 1, AddVoter(7, voter(4)))
    assert ids(cluster, 1) == [1, 2, 3]
    cluster.settle()
    (answer,) = answers(cluster, 1)
    assert (answer.token, answer.error) == (7, ErrorCode.NONE)
    for node_id in (1, 2, 3, 4):
        assert ids(cluster, node_id) == [1, 2, 3, 4]
    assert cluster[1].high_watermark == answer.offset + 1
    assert cluster[4].is_voter
    assert cluster[1].pending_change is None


def test_a_set_is_in_force_when_appended_everywhere() -> None:
    cluster = led(4)
    ask(cluster, 1, AddVoter(7, voter(4)))
    cluster.deliver(4, BeginQuorumEpochRequest)
    cluster.deliver(1)
    assert ids(cluster, 1) == [1, 2, 3, 4]
    assert not answers(cluster, 1)
    cluster.cut |= {(2, 1), (3, 1), (4, 1)}
    cluster.deliver()
    # Appended by the followers, committed nowhere: it counts all the same.
    assert ids(cluster, 2) == ids(cluster, 4) == [1, 2, 3, 4]
    view = cluster[1].pending_change
    assert view is not None
    assert view.offset == cluster[1].voters_offset >= cluster[1].high_watermark


def test_the_probe_goes_to_the_endpoint_given() -> None:
    cluster = led(4)
    ask(cluster, 1, AddVoter(7, voter(4)))
    assert PeerEndpoints(4, voter(4).endpoints) in cluster.members[1].progress
    (probe,) = cluster.sent_by(1, BeginQuorumEpochRequest)[-1:]
    assert probe.voter == key(4)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (AddVoter(1, voter(2)), ErrorCode.DUPLICATE_VOTER),
        (
            AddVoter(1, Voter(ReplicaKey(2, bytes(15) + b"\x63"), voter(2).endpoints)),
            ErrorCode.DUPLICATE_VOTER,
        ),
        (AddVoter(1, Voter(key(4))), ErrorCode.INVALID_REQUEST),
        (AddVoter(1, replace(voter(4), key=ReplicaKey(4))), ErrorCode.INVALID_REQUEST),
        (AddVoter(1, replace(voter(4), key=ReplicaKey(-1, b"x" * 16))), ErrorCode.INVALID_REQUEST),
        (
            AddVoter(1, Voter(key(4), (Endpoint("CLIENT", "node4", 9000),))),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            AddVoter(1, Voter(key(4), (Endpoint("CONTROLLER", "node4", 0),))),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            AddVoter(1, Voter(key(4), (Endpoint("CONTROLLER", "", 9000),))),
            ErrorCode.INVALID_REQUEST,
        ),
        (AddVoter(1, replace(voter(4), max_supported_version=0)), ErrorCode.INVALID_REQUEST),
        (AddVoter(1, replace(voter(4), min_supported_version=2)), ErrorCode.INVALID_REQUEST),
        (
            UpdateVoter(1, replace(voter(2), min_supported_version=-1)),
            ErrorCode.INVALID_REQUEST,
        ),
        (UpdateVoter(1, voter(4)), ErrorCode.VOTER_NOT_FOUND),
        (RemoveVoter(1, key(4)), ErrorCode.VOTER_NOT_FOUND),
        (RemoveVoter(1, ReplicaKey(2, b"x" * 16)), ErrorCode.VOTER_NOT_FOUND),
        (RemoveVoter(1, ReplicaKey(2, ZERO_UUID)), ErrorCode.INVALID_REQUEST),
        (RemoveVoter(1, ReplicaKey(2, b"short")), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_refused_leaves_no_trace(change: LocalEvent, error: ErrorCode) -> None:
    cluster = led(4)
    before = (cluster[1].voters, cluster[1].log_end, cluster[1].epoch)
    assert error_of(cluster, change) == error
    assert (cluster[1].voters, cluster[1].log_end, cluster[1].epoch) == before
    assert cluster[1].pending_change is None


def test_only_a_leader_that_stays_may_change_voters() -> None:
    cluster = led()
    assert error_of(cluster, RemoveVoter(1, key(3)), 2) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    lone = led(voters=(1,))
    ask(lone, 1, ShutDown())
    assert error_of(lone, RemoveVoter(1, key(1))) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_last_voter_stays() -> None:
    cluster = led(voters=(1,))
    assert error_of(cluster, RemoveVoter(1, key(1))) == ErrorCode.VOTER_NOT_FOUND


def test_one_change_at_a_time() -> None:
    cluster = led(4)
    ask(cluster, 1, AddVoter(1, voter(4)))
    assert error_of(cluster, RemoveVoter(2, key(3))) == ErrorCode.REQUEST_TIMED_OUT


def test_nothing_is_changed_before_a_record_of_this_epoch_is_committed() -> None:
    """The 2015 correction: the previous leader's change may still be on its way."""
    cluster = CoreCluster((1, 2, 3))
    cluster.elect_without_replicating(1)
    assert not cluster[1].can_write
    assert error_of(cluster, RemoveVoter(1, key(3))) == ErrorCode.REQUEST_TIMED_OUT
    assert ids(cluster, 1) == [1, 2, 3]


def test_no_change_on_top_of_one_that_is_not_committed() -> None:
    """A timed out change is pending no longer, but its record still is."""
    cluster = led()
    cluster.isolate(1)
    ask(cluster, 1, RemoveVoter(1, key(3)))
    cluster.advance(cluster.config.request_timeout_ms + 1)
    (answer,) = answers(cluster, 1)
    assert answer.error == ErrorCode.REQUEST_TIMED_OUT
    assert answer.is_outcome_unknown
    assert cluster[1].pending_change is None
    assert cluster[1].is_leader
    assert error_of(cluster, RemoveVoter(2, key(2))) == ErrorCode.REQUEST_TIMED_OUT


def test_a_shorter_limit_is_kept_and_a_longer_one_is_not() -> None:
    for timeout_ms, expected_ms in ((300, 300), (60_000, 2000)):
        cluster = led()
        cluster.isolate(1)
        began_ms = cluster.now_ms
        ask(cluster, 1, RemoveVoter(1, key(3), timeout_ms))
        cluster.advance(expected_ms - 1)
        assert not answers(cluster, 1)
        cluster.advance(began_ms + expected_ms + 1 - cluster.now_ms)
        assert [each.error for each in answers(cluster, 1)] == [ErrorCode.REQUEST_TIMED_OUT]


def test_a_voter_to_be_that_never_caught_up_is_refused() -> None:
    """It was away for so long that the leader has forgotten it."""
    cluster = CoreCluster((1, 2, 3), (4,))
    cluster.elect(1)
    cluster.advance(600)
    cluster.crash(4)
    cluster.advance(cluster.config.observer_session_ms + 5_000)
    cluster.restart(4)
    cluster.queue.clear()
    ask(cluster, 1, AddVoter(1, voter(4)))
    cluster.deliver(4, BeginQuorumEpochRequest)
    cluster.deliver(1, BeginQuorumEpochResponse)
    (answer,) = answers(cluster, 1)
    assert answer.error == ErrorCode.REQUEST_TIMED_OUT
    assert answer.offset == -1
    assert ids(cluster, 1) == [1, 2, 3]


def test_an_endpoint_that_leads_to_another_disk_is_refused() -> None:
    cluster = led(4)
    other = Voter(ReplicaKey(4, b"x" * 16), voter(4).endpoints)
    ask(cluster, 1, AddVoter(1, other))
    cluster.settle()
    (answer,) = answers(cluster, 1)
    assert answer.error == ErrorCode.REQUEST_TIMED_OUT
    assert "INVALID_VOTER_KEY" in answer.message
    assert ids(cluster, 1) == [1, 2, 3]


def test_an_unreachable_endpoint_times_out() -> None:
    cluster = led(4)
    cluster.cut |= {(1, 4)}
    ask(cluster, 1, AddVoter(1, voter(4)))
    cluster.advance(cluster.config.request_timeout_ms + 1)
    (answer,) = answers(cluster, 1)
    assert (answer.error, answer.offset) == (ErrorCode.REQUEST_TIMED_OUT, -1)


def test_an_early_answer_is_asked_for() -> None:
    cluster = led(4)
    ask(cluster, 1, AddVoter(1, voter(4), ack_when_committed=False))
    cluster.deliver(4, BeginQuorumEpochRequest)
    cluster.deliver(1, count=1)
    (answer,) = answers(cluster, 1)
    assert answer.error == ErrorCode.NONE
    assert cluster[1].high_watermark <= answer.offset
    # Another one still has to wait for the commit.
    assert error_of(cluster, RemoveVoter(2, key(3))) == ErrorCode.REQUEST_TIMED_OUT
    cluster.settle()
    assert len(answers(cluster, 1)) == 2


def test_a_leader_that_removes_itself_leads_until_that_is_committed() -> None:
    cluster = led()
    cluster.hold.add((3, 1))
    ask(cluster, 1, RemoveVoter(1, key(1)))
    assert cluster[1].is_leader
    assert ids(cluster, 1) == [2, 3]
    cluster.settle()
    # Node 2 alone is not a majority of {2, 3}: the leader's own disk does not count any more.
    assert cluster[1].is_leader
    assert not answers(cluster, 1)
    cluster.hold.clear()
    cluster.settle()
    (answer,) = answers(cluster, 1)
    assert answer.error == ErrorCode.NONE
    assert not cluster[1].is_leader
    cluster.advance(4000)
    assert not cluster[1].is_voter
    (leader,) = cluster.leaders()
    assert leader in (2, 3)
    assert cluster[1].role_name == "Follower"


def test_a_timed_out_removal_of_the_leader_still_ends_its_leadership_term_on_commit() -> None:
    cluster = led()
    cluster.cut |= {(2, 1), (3, 1)}
    ask(cluster, 1, RemoveVoter(1, key(1), 200))
    cluster.advance(250)
    assert [each.error for each in answers(cluster, 1)] == [ErrorCode.REQUEST_TIMED_OUT]
    assert cluster[1].is_leader
    cluster.heal()
    cluster.advance(3000)
    assert not cluster[1].is_leader
    assert len(answers(cluster, 1)) == 1


def test_losing_leadership_fails_the_change_with_an_unknown_outcome() -> None:
    cluster = led()
    cluster.isolate(1)
    ask(cluster, 1, RemoveVoter(1, key(3)))
    ask(cluster, 1, Resign())
    (answer,) = answers(cluster, 1)
    assert answer.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.is_outcome_unknown
    assert "unknown" in answer.message


def test_a_change_that_another_leader_cuts_away_reverts() -> None:
    cluster = led(4)
    cluster.isolate(1)
    ask(cluster, 1, RemoveVoter(1, key(3)))
    assert ids(cluster, 1) == [1, 2]
    assert cluster[1].removed_voters == (key(3),)
    cluster.advance(8000)
    cluster.heal()
    cluster.advance(3000)
    assert ids(cluster, 1) == [1, 2, 3]
    assert cluster[1].removed_voters == ()


def test_removing_one_of_two_commits_alone() -> None:
    cluster = led(voters=(1, 2))
    ask(cluster, 1, RemoveVoter(1, key(2)))
    (answer,) = answers(cluster, 1)
    assert answer.error == ErrorCode.NONE
    assert cluster[1].high_watermark == cluster[1].log_end.offset


def test_a_smaller_set_commits_what_it_has_before_its_own_record_is_written() -> None:
    """Method: three of four are needed for a record that two have; then one voter less."""
    cluster = led(voters=(1, 2, 3, 4))
    cluster.isolate(3)
    cluster.isolate(4)
    cluster.propose(1)
    cluster.settle()
    end_offset = cluster[1].log_end_offset
    assert cluster[1].high_watermark == end_offset - 1
    cluster.slow_disks.add(1)
    ask(cluster, 1, RemoveVoter(7, key(4)))
    assert ids(cluster, 1) == [1, 2, 3]
    assert cluster[1].high_watermark == end_offset


def test_a_waiting_read_is_confirmed_by_the_remaining_voters() -> None:
    cluster = led(voters=(1, 2))
    cluster.isolate(2)
    cluster.call(1, lambda node: node.read(cluster.now_ms, 9))
    ask(cluster, 1, RemoveVoter(1, key(2)))
    assert any(type(each).__name__ == "ReadConfirmed" for each in cluster.members[1].progress)


def test_a_lone_leader_that_adds_a_voter_is_not_deposed_at_once() -> None:
    cluster = led(2, voters=(1,))
    cluster.advance(60_000)
    ask(cluster, 1, AddVoter(1, voter(2)))
    cluster.settle()
    assert [each.error for each in answers(cluster, 1)] == [ErrorCode.NONE]
    cluster.advance(10_000)
    assert cluster[1].is_leader


def test_a_removed_voter_comes_back_only_when_readmitted() -> None:
    cluster = led()
    ask(cluster, 1, RemoveVoter(1, key(3)))
    cluster.settle()
    cluster.advance(600)
    assert cluster[1].removed_voters == cluster[2].removed_voters == (key(3),)
    assert error_of(cluster, AddVoter(2, voter(3))) == ErrorCode.VOTER_REMOVED
    ask(cluster, 1, AddVoter(3, voter(3), readmit=True))
    cluster.settle()
    assert answers(cluster, 1)[-1].error == ErrorCode.NONE
    assert ids(cluster, 2) == [1, 2, 3]
    assert cluster[1].removed_voters == cluster[2].removed_voters == ()


def test_a_new_disk_with_a_removed_node_id_is_not_removed() -> None:
    cluster = led()
    ask(cluster, 1, RemoveVoter(1, key(3)))
    cluster.settle()
    other = Voter(ReplicaKey(3, b"x" * 16), voter(3).endpoints)
    ask(cluster, 1, AddVoter(2, other))
    assert cluster[1].pending_change is not None


def test_an_update_moves_a_voter_and_is_answered_when_appended() -> None:
    cluster = led()
    moved = replace(voter(2), endpoints=(Endpoint("CONTROLLER", "elsewhere", 9000),))
    ask(cluster, 1, UpdateVoter(1, moved))
    cluster.settle()
    (answer,) = answers(cluster, 1)
    assert answer.error == ErrorCode.NONE
    assert cluster[3].voters[1] == moved
    ask(cluster, 1, UpdateVoter(2, moved))
    assert answers(cluster, 1)[-1].error == ErrorCode.NONE
    assert cluster[1].log_end.offset == answer.offset + 1


def test_a_failed_update_keeps_asking_where_the_voter_was() -> None:
    cluster = led()
    cluster.cut |= {(1, 2)}
    moved = replace(voter(2), endpoints=(Endpoint("CONTROLLER", "nowhere", 9000),))
    ask(cluster, 1, UpdateVoter(1, moved, 500))
    cluster.advance(501)
    reported = [each for each in cluster.members[1].progress if isinstance(each, PeerEndpoints)]
    assert [each.endpoints[0].host for each in reported] == ["nowhere", "node2"]


def test_every_change_ends_in_one_event() -> None:
    cluster = led(4)
    ask(cluster, 1, AddVoter(1, voter(4)))
    cluster.settle()
    ended = [each for each in cluster.members[1].events if isinstance(each, VoterChangeEnded)]
    assert [(each.change, each.error) for each in ended] == [("add", ErrorCode.NONE)]
