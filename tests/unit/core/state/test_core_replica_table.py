"""The replicas that a leader counts as voters and as observers, and its state about both."""

from __future__ import annotations

from quorum.core.contract.events import MessageIgnored
from quorum.core.contract.local_events import RemoveVoter, UpdateVoter
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.replica_progress import ReplicaView
from quorum.core.state.replica_table import progress_for, replica_views
from quorum.core.state.roles import campaign_deadline
from quorum.core.state.timers import Timer
from quorum.errors import ErrorCode
from quorum.types import ReplicaKey
from tests.support.bare_core import core_of, follower, leading
from tests.support.core_disk import key, voter
from tests.support.lone_leader import LoneLeader

OTHER_DISK = ReplicaKey(2, b"another disk 16B")


def viewed(cluster: LoneLeader, replica: ReplicaKey) -> ReplicaView:
    view = cluster.view(replica)
    assert view is not None
    return view


def test_a_removed_voter_goes_on_as_an_observer_with_what_is_known_of_it() -> None:
    cluster = LoneLeader()
    before = viewed(cluster, key(2))
    assert before.is_voter
    cluster.report(RemoveVoter(7, key(2)))
    after = viewed(cluster, key(2))
    assert not after.is_voter
    assert (after.log_end_offset, after.last_fetch_ms) == (
        before.log_end_offset, before.last_fetch_ms,
    )  # fmt: skip
    assert viewed(cluster, key(3)).is_voter


def test_a_removed_voter_answers_no_announcement_of_the_leader_any_more() -> None:
    """Method: a BeginQuorumEpoch that is on its way when the voter is removed."""
    cluster = LoneLeader()
    cluster.now_ms += cluster.config.fetch_timeout_ms // 2
    cluster.fetch(3)
    cluster.advance(cluster.config.fetch_timeout_ms // 2)
    cluster.fetch(3)
    assert cluster[1].is_leader
    asked = [
        each
        for _, to, each in cluster.sent
        if to == 2 and isinstance(each, BeginQuorumEpochRequest)
    ][-1]
    cluster.report(RemoveVoter(7, key(2)))
    answer = BeginQuorumEpochResponse(asked.request_id, ErrorCode.NONE, 1, cluster[1].epoch)
    output = cluster.call(1, lambda node: node.receive(cluster.now_ms, 2, answer))
    (ignored,) = (each for each in output.events if isinstance(each, MessageIgnored))
    assert (ignored.sender, ignored.message) == (2, "BeginQuorumEpochResponse")


def test_contact_with_a_voter_that_was_removed_since_proves_no_majority() -> None:
    """Goal: check quorum counts the voters in force. Method: of five, one fetches and is removed,
    then another one fetches; three of the remaining four are needed."""
    cluster = LoneLeader((1, 2, 3, 4, 5))
    start_ms = cluster.now_ms
    cluster.now_ms += 100
    cluster.fetch(2)
    cluster.report(RemoveVoter(7, key(2)))
    removed_ms = cluster.now_ms
    cluster.now_ms += 100
    cluster.fetch(3)
    assert cluster.now_ms > removed_ms > start_ms
    cluster.advance(removed_ms + cluster.config.check_quorum_ms - cluster.now_ms)
    cluster.tick(1)
    assert not cluster[1].is_leader
    assert cluster.fired(Timer.CHECK_QUORUM) == 1


def test_contact_with_two_of_the_remaining_voters_proves_a_majority() -> None:
    cluster = LoneLeader((1, 2, 3, 4, 5))
    cluster.now_ms += 100
    cluster.report(RemoveVoter(7, key(2)))
    removed_ms = cluster.now_ms
    cluster.now_ms += 100
    cluster.fetch(3)
    cluster.fetch(4)
    cluster.advance(removed_ms + cluster.config.check_quorum_ms - cluster.now_ms)
    cluster.tick(1)
    assert cluster[1].is_leader
    cluster.advance(100)
    cluster.tick(1)
    assert not cluster[1].is_leader


def test_a_replica_is_disqualified_as_long_as_it_reports_it() -> None:
    cluster = LoneLeader()
    for is_reported in (True, False, True):
        cluster.now_ms += 10
        cluster.fetch(9, is_disqualified=is_reported)
        assert viewed(cluster, key(9)).is_disqualified == is_reported


def test_a_disqualified_disk_is_not_that_of_the_voter_with_its_id() -> None:
    """The acknowledgements of the voter's own disk still count, and the other disk is an observer,
    whichever of the two fetched last."""
    cluster = LoneLeader()
    cluster.fetch(2, replica=OTHER_DISK, is_disqualified=True)
    end = cluster[1].log_end_offset
    for _ in range(2):
        assert viewed(cluster, key(2)).log_end_offset == end
        assert not viewed(cluster, key(2)).is_disqualified
        assert viewed(cluster, OTHER_DISK).is_disqualified
        cluster.now_ms += 10
        cluster.fetch(2)


def test_a_voter_whose_disk_is_disqualified_has_acknowledged_nothing() -> None:
    """Method: it reports so at the time of its last Fetch as a voter, and revokes it later."""
    cluster = LoneLeader()
    cluster.fetch(2)
    cluster.fetch(2, is_disqualified=True)
    views = [each for each in cluster[1].replicas() if each.key == key(2)]
    assert [(each.is_voter, each.is_disqualified) for each in views] == [
        (True, True),
        (False, True),
    ]
    assert views[0].log_end_offset == -1
    cluster.now_ms += 1
    cluster.fetch(2)
    assert [each.is_disqualified for each in cluster[1].replicas() if each.key == key(2)] == [
        False, False,
    ]  # fmt: skip


def test_a_voter_that_names_its_disk_late_is_shown_with_it() -> None:
    """A record without a directory id matches any disk, until an update names one."""
    cluster = LoneLeader(unknown_disks=(2,))
    assert viewed(cluster, ReplicaKey(2)).is_voter
    cluster.report(UpdateVoter(7, voter(2)))
    assert viewed(cluster, key(2)).is_voter
    assert cluster.view(ReplicaKey(2)) is None


def test_only_an_established_leader_describes_replicas() -> None:
    assert replica_views(core_of(follower())) == ()
    core, leader = leading()
    leader.established = False
    assert replica_views(core) == ()


def test_a_disqualified_replica_that_fetches_again_keeps_its_entry() -> None:
    core, leader = leading()
    first = progress_for(core, leader, OTHER_DISK, is_disqualified=True)
    assert progress_for(core, leader, OTHER_DISK, is_disqualified=True) is first


def test_a_leader_waits_for_no_leader() -> None:
    _, leader = leading()
    assert campaign_deadline(leader) == NEVER_MS
