"""The duties of a leadership term: its beginning, BeginQuorumEpoch both ways, and its reminders."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.control_records import KRaftVersion, Voters
from quorum.core.contract.events import RoleChanged, TransferStarted
from quorum.core.contract.local_events import (
    ConnectionRefused,
    RequestFailed,
    ShutDown,
    TransferLeadership,
)
from quorum.core.contract.output import AbandonDownload, Append, Output, RequestSettled
from quorum.core.contract.reasons import RoleChangeReason
from quorum.core.messages.epoch_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.vote_messages import VoteRequest
from quorum.core.protocol.role_transitions import NO_TOKEN
from quorum.core.state.peer_requests import Purpose
from quorum.core.state.replica_progress import VERSIONS_KNOWN_MS
from quorum.core.state.timers import Timer
from quorum.core.voters.versions import OWN_KRAFT_VERSIONS
from quorum.errors import ErrorCode
from quorum.types import OffsetAndEpoch, ReplicaKey, VersionRange
from simulation.harness.arrival import arrived
from simulation.harness.core_disk import Disk
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import disk_with, key, voter
from tests.support.download_steps import SNAPSHOT, following, name_snapshot
from tests.support.lone_leader import LoneLeader

VERSIONS = (OWN_KRAFT_VERSIONS, VersionRange("f", 1, 2))


def new_leader() -> CoreCluster:
    """Node 1 leads and has sent BeginQuorumEpoch; no voter has answered yet."""
    cluster = CoreCluster()
    cluster.elect_without_replicating(1)
    for each in (2, 3):
        cluster.members[each].is_up = False
    return cluster


def begun(cluster: CoreCluster, voter_id: int = 3) -> list[BeginQuorumEpochRequest]:
    """Every BeginQuorumEpoch that the leader has sent to a voter."""
    sent = cluster.sent_by(1, BeginQuorumEpochRequest)
    return [each for each in sent if each.voter == key(voter_id)]


def answers(cluster: CoreCluster, **fields: Any) -> Output:
    """Let node 3 answer the newest BeginQuorumEpoch."""
    values = {"error": ErrorCode.NONE, "leader_id": 1, "epoch": 1, "supported": VERSIONS, **fields}
    answer = BeginQuorumEpochResponse(begun(cluster)[-1].request_id, **values)
    return cluster.call(1, lambda node: node.receive(cluster.now_ms, 3, answer))


def fails(cluster: CoreCluster) -> None:
    """Let the newest BeginQuorumEpoch to node 3 fail."""
    event = RequestFailed(3, begun(cluster)[-1].request_id)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, event))


def asks(cluster: CoreCluster, node_id: int, message: Any, sender: int) -> Any:
    """Let ``sender`` send a request; return the first answer."""
    output = cluster.call(node_id, lambda node: node.receive(cluster.now_ms, sender, message))
    sends = [*output.immediate, *output.after_persist]
    return next(each.message for each in sends if type(each.message).__name__.endswith("Response"))


def supported(cluster: CoreCluster) -> object:
    return next(each.supported for each in cluster[1].replicas() if each.key.id == 3)


def test_a_new_leader_without_fetches_resigns_in_time() -> None:
    """Goal: check quorum runs from the beginning, not from the first Fetch on."""
    cluster = new_leader()
    limit_ms = cluster.config.check_quorum_ms
    cluster.advance(limit_ms)
    assert cluster[1].is_leader
    cluster.advance(1)
    assert cluster[1].role_name == "Resigned"


def test_a_new_leader_needs_no_download() -> None:
    """It won with its present log. Method: a snapshot was in flight when its leader fell silent;
    the other voters have no more records.
    """
    cluster = following()
    name_snapshot(cluster)
    assert cluster[1].is_downloading
    cluster.queue.clear()
    cluster.elect(1)
    assert AbandonDownload(SNAPSHOT) in cluster.members[1].effects
    assert not cluster[1].is_downloading


@pytest.mark.parametrize(("offset", "opens_with_voters"), [(-1, True), (0, False), (1, False)])
def test_a_voter_set_in_the_log_is_not_written_again(offset: int, opens_with_voters: bool) -> None:
    """Offset 0 is one: another release may have begun the log with its voters."""
    voters = tuple(map(voter, (1, 2, 3)))
    records = tuple((1, (voters, ()) if each == offset else None) for each in range(3))
    disk = Disk(disk_with("1:a").election, log=records)
    cluster = CoreCluster(disks=dict.fromkeys((1, 2, 3), disk))
    cluster.elect(1)
    appended = [each for each in cluster.members[1].effects if isinstance(each, Append)]
    kinds = {type(each) for each in appended[0].controls}
    assert ({KRaftVersion, Voters} <= kinds) == opens_with_voters


def test_only_a_voter_that_agrees_has_versions() -> None:
    """A refusal, and a response of an earlier epoch, do not count for this leadership term."""
    cluster = new_leader()
    answers(cluster, error=ErrorCode.INVALID_REQUEST)
    assert supported(cluster) is None
    cluster.advance(cluster.config.fetch_timeout_ms // 2)
    answers(cluster, epoch=0, leader_id=-1)
    assert supported(cluster) is None
    cluster.advance(cluster.config.fetch_timeout_ms // 2)
    answers(cluster)
    assert supported(cluster) == VERSIONS


def test_an_answer_ends_the_count_of_failures() -> None:
    """The next failure is followed by the shortest pause again."""
    cluster = new_leader()
    for _ in range(4):
        fails(cluster)
        pause_ms = (cluster.members[1].deadline_ms or 0) - cluster.now_ms
        cluster.advance(pause_ms + 1)
    assert pause_ms > cluster.config.retry_backoff_ms
    answers(cluster)
    cluster.advance(cluster.config.fetch_timeout_ms // 2)
    before = len(begun(cluster))
    fails(cluster)
    cluster.advance(cluster.config.retry_backoff_ms + 1)
    assert len(begun(cluster)) == before + 1


def test_a_reminder_is_counted_as_what_it_waited_for() -> None:
    """A failed request waits for its back-off; one that stays open, for the silence to go on."""
    cluster = new_leader()
    fired = cluster[1].timers_fired
    assert (fired[Timer.BEGIN_QUORUM], fired[Timer.RETRY_BACKOFF, Purpose.BEGIN_EPOCH]) == (0, 0)
    fails(cluster)
    cluster.advance(cluster.config.retry_backoff_ms + 1)
    assert (fired[Timer.BEGIN_QUORUM], fired[Timer.RETRY_BACKOFF, Purpose.BEGIN_EPOCH]) == (0, 1)
    cluster.advance(cluster.config.fetch_timeout_ms // 2 + 1)
    # Node 2 was reminded as well.
    assert (fired[Timer.BEGIN_QUORUM], fired[Timer.RETRY_BACKOFF, Purpose.BEGIN_EPOCH]) == (2, 1)


def test_versions_are_asked_for_again_when_they_are_as_old_as_they_may_be() -> None:
    cluster = CoreCluster()
    cluster.elect(1)
    before = len(begun(cluster))
    cluster.advance(VERSIONS_KNOWN_MS - 1)
    assert len(begun(cluster)) == before
    cluster.advance(2)
    assert len(begun(cluster)) == before + 1


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, ErrorCode.NONE),
        ({"voter": key(3)}, ErrorCode.INVALID_VOTER_KEY),
        ({"voter": ReplicaKey(2, b"another disk 2..")}, ErrorCode.INVALID_VOTER_KEY),
        ({"voter": key(3), "cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"voter": key(3), "epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"voter": key(3), "leader": key(77)}, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_an_announcement_is_refused_for_the_first_thing_that_is_wrong(
    fields: dict[str, Any], error: ErrorCode
) -> None:
    """Of two flaws, the later check must not hide the earlier one."""
    cluster = CoreCluster()
    cluster.elect(1)
    values = {"cluster_id": CLUSTER, "voter": key(2), "leader": key(1), "epoch": 1, **fields}
    assert asks(cluster, 2, BeginQuorumEpochRequest(9, **values), 1).error == error


@pytest.mark.parametrize(("is_proven", "role"), [(False, "Prospective"), (True, "Follower")])
def test_an_announcement_calls_off_a_campaign_if_the_leader_sent_it(
    is_proven: bool, role: str
) -> None:
    """Both kinds are agreed to (ADR 52): the node does not contradict that leader."""
    cluster = CoreCluster()
    cluster.elect(1)
    cluster.advance(600)
    cluster.members[1].is_up = False
    cluster.queue.clear()
    for _ in range(10):
        if cluster[2].role_name == "Prospective":
            break
        cluster.now_ms = max(cluster.now_ms, cluster.members[2].deadline_ms or 0)
        cluster.tick(2)
    assert cluster[2].leader_id == 1
    request = BeginQuorumEpochRequest(9, CLUSTER, key(2), key(1), 1)
    assert asks(cluster, 2, arrived(request, is_proven=is_proven), 1).error == ErrorCode.NONE
    assert cluster[2].role_name == role


def test_a_leader_that_announces_itself_is_not_gone() -> None:
    """Goal: the suspicion ends with the campaign. Method: the leader's process was found dead; it
    is back, and a voter with fewer records asks for a pre-vote.
    """
    cluster = CoreCluster()
    cluster.elect(1)
    cluster.advance(600)
    cluster.propose(1)
    cluster.settle()
    cluster.queue.clear()
    event = ConnectionRefused(1)
    cluster.call(2, lambda node: node.on_local_event(cluster.now_ms, event))
    while cluster[2].role_name != "Prospective":
        cluster.now_ms = max(cluster.now_ms, cluster.members[2].deadline_ms or 0)
        cluster.tick(2)
    claim = BeginQuorumEpochRequest(9, CLUSTER, key(2), key(1), 1)
    cluster.call(2, lambda node: node.receive(cluster.now_ms, 1, claim))
    assert cluster[2].role_name == "Follower"
    behind = VoteRequest(10, CLUSTER, key(3), key(2), 1, OffsetAndEpoch(1, 1), pre_vote=True)
    assert not asks(cluster, 2, behind, 3).granted
    assert cluster[2].role_name == "Follower"


def test_a_leader_that_may_not_write_yet_resigns_when_it_is_shut_down() -> None:
    """Another voter is level, but nothing of this epoch is committed: the target would have to
    wait for what may never come.
    """
    cluster = CoreCluster((1, 2, 3, 4, 5))
    cluster.elect_without_replicating(1)
    fetch = FetchRequest(1, CLUSTER, key(2), 1, cluster[1].log_end_offset, 1, max_wait_ms=500)
    cluster.call(1, lambda node: node.receive(cluster.now_ms, 2, fetch))
    assert not cluster[1].can_write
    output = cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, ShutDown()))
    reasons = [each.reason for each in output.events if isinstance(each, RoleChanged)]
    assert reasons == [RoleChangeReason.SHUT_DOWN]
    assert not [each for each in output.events if isinstance(each, TransferStarted)]


@pytest.mark.parametrize("leads", [True, False])
def test_a_request_without_a_token_gets_no_answer(leads: bool) -> None:
    """Refused, and ended without success: a caller with a token is answered once in both cases."""
    for token, count in ((NO_TOKEN, 0), (7, 1)):
        cluster = LoneLeader()
        node_id = 1 if leads else 2
        target = 77 if leads else 3
        event = TransferLeadership(token, target)
        output = cluster[node_id].on_local_event(cluster.now_ms, event)
        assert sum(isinstance(each, RequestSettled) for each in output.progress) == count


@pytest.mark.parametrize("stops", [True, False])
def test_a_target_that_knows_a_later_epoch_ends_the_leadership_and_nothing_else(
    stops: bool,
) -> None:
    """Goal: no second resignation. Method: the leader may be shutting down; the target refuses with
    a later epoch.
    """
    cluster = LoneLeader()
    event = ShutDown() if stops else TransferLeadership(7, 2)
    cluster.report(event)
    asked = cluster.sent_by(1, EndQuorumEpochRequest)[-1]
    assert asked.campaign_now
    refusal = EndQuorumEpochResponse(asked.request_id, ErrorCode.FENCED_LEADER_EPOCH, -1, 4)
    output = cluster.call(1, lambda node: node.receive(cluster.now_ms, 2, refusal))
    roles = [each.role for each in output.events if isinstance(each, RoleChanged)]
    assert roles == ["Unattached"]
    assert cluster[1].epoch == 4
