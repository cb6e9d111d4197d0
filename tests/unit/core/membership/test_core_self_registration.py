"""A replica keeps its own voter entry true, and joins by itself only where it may."""

from __future__ import annotations

from quorum.config import QuorumConfig
from quorum.core.contract.events import SelfRegistrationAnswered, SelfRegistrationAsked, VotesNoMore
from quorum.core.contract.local_events import ListenerEndpoints, RemoveVoter, TransferLeadership
from quorum.core.contract.reasons import NonVoterReason
from quorum.core.messages.voter_messages import (
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoterChangeResponse,
)
from quorum.errors import ErrorCode
from quorum.types import ZERO_UUID, Endpoint, NodeId, ReplicaKey, Voter
from simulation.harness.arrival import arrived
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import key, voter

CONFIG = QuorumConfig(high_watermark_delay_ms=0)
JOINING = QuorumConfig(high_watermark_delay_ms=0, auto_join=True)
PERIOD_MS = 2 * CONFIG.fetch_timeout_ms
OLD_DISK = ReplicaKey(3, b"the disk of old.")


def listens(cluster: CoreCluster, node_id: NodeId, host: str = "") -> None:
    controller = Endpoint("CONTROLLER", host or f"node{node_id}", 9000)
    client = Endpoint("CLIENT", host or f"node{node_id}", 9001)
    event = ListenerEndpoints((controller, client))
    cluster.call(node_id, lambda node: node.on_local_event(cluster.now_ms, event))


def of_type(cluster: CoreCluster, node_id: NodeId, kind: type) -> list[object]:
    return [each for each in cluster.members[node_id].events if isinstance(each, kind)]


def led(cluster: CoreCluster) -> CoreCluster:
    cluster.elect(1)
    for node_id in cluster.members:
        listens(cluster, node_id)
    cluster.advance(600)
    return cluster


def test_an_entry_that_is_true_is_left_alone() -> None:
    cluster = led(CoreCluster((1, 2, 3), (4,)))
    cluster.advance(3 * PERIOD_MS)
    assert not [each for each in cluster.sent if isinstance(each[2], UpdateVoterRequest)]
    assert all(not of_type(cluster, each, SelfRegistrationAsked) for each in (1, 2, 3, 4))


def test_a_follower_with_new_endpoints_updates_its_voter_record() -> None:
    cluster = led(CoreCluster((1, 2, 3)))
    listens(cluster, 2, "elsewhere")
    cluster.advance(PERIOD_MS + 100)
    for node_id in (1, 2, 3):
        (entry,) = [each for each in cluster[node_id].voters if each.key.id == 2]
        assert [each.host for each in entry.endpoints] == ["elsewhere"]
    assert of_type(cluster, 2, SelfRegistrationAnswered) == [
        SelfRegistrationAnswered(ErrorCode.NONE, "")
    ]
    asked = len(cluster.sent_by(2, UpdateVoterRequest))
    cluster.advance(2 * PERIOD_MS)
    assert len(cluster.sent_by(2, UpdateVoterRequest)) == asked == 1


def test_a_leader_that_moved_updates_itself() -> None:
    cluster = led(CoreCluster((1, 2, 3)))
    listens(cluster, 1, "elsewhere")
    cluster.advance(PERIOD_MS)
    assert cluster[3].voters[0].endpoints[0].host == "elsewhere"
    assert cluster[1].is_leader


def test_a_leader_in_a_transfer_updates_itself_only_if_it_leads_on() -> None:
    """Its successor must not lack the newest voter set; here it does not answer at all."""
    cluster = led(CoreCluster((1, 2, 3)))
    before = cluster[1].log_end_offset
    cluster.cut |= {(1, 2), (2, 1)}
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, TransferLeadership(7, 2)))
    assert cluster[1].is_transferring
    listens(cluster, 1, "elsewhere")
    cluster.tick(1)
    assert cluster[1].log_end_offset == before
    cluster.heal()
    cluster.advance(cluster.config.transfer_timeout_ms + 100)
    assert cluster.leaders() == [1]
    cluster.advance(PERIOD_MS)
    assert cluster[3].voters[0].endpoints[0].host == "elsewhere"


def test_static_voters_report_their_directory_ids() -> None:
    """A record without a directory id matches by node id until its voter reports its disk."""
    cluster = CoreCluster((1, 2, 3), autostart=False)
    cluster.voters = tuple(
        Voter(ReplicaKey(each, ZERO_UUID), voter(each).endpoints) for each in (1, 2, 3)
    )
    for node_id in (1, 2, 3):
        cluster.start(node_id)
    led(cluster)
    cluster.advance(4 * PERIOD_MS)
    assert [each.key for each in cluster[2].voters] == [key(1), key(2), key(3)]
    assert cluster[2].removed_voters == ()


def test_a_refused_update_is_asked_again() -> None:
    cluster = led(CoreCluster((1, 2, 3)))
    cluster.cut |= {(1, 2)}
    listens(cluster, 2, "elsewhere")
    cluster.advance(50)
    cluster.heal()
    cluster.isolate(3)
    event = RemoveVoter(1, key(3))
    cluster.advance(PERIOD_MS)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, event))
    cluster.advance(3 * PERIOD_MS)
    assert [each.endpoints[0].host for each in cluster[1].voters if each.key.id == 2] == [
        "elsewhere"
    ]


def test_an_observer_joins_only_where_that_is_on() -> None:
    staying = led(CoreCluster((1, 2, 3), (4,), config=CONFIG))
    staying.advance(3 * PERIOD_MS)
    assert not staying[4].is_voter
    joining = led(CoreCluster((1, 2, 3), (4,), config=JOINING))
    joining.advance(3 * PERIOD_MS)
    assert joining[4].is_voter
    assert [each.key.id for each in joining[1].voters] == [1, 2, 3, 4]


def with_wiped_disk(config: QuorumConfig) -> CoreCluster:
    """Node 3 has another disk than the voter of its number."""
    cluster = CoreCluster((1, 2, 3), autostart=False, config=config)
    cluster.voters = (voter(1), voter(2), Voter(OLD_DISK, voter(3).endpoints))
    for node_id in (1, 2):
        cluster.start(node_id)
    first = cluster.voters
    cluster.voters = ()
    cluster.start(3)
    cluster.voters = first
    return led(cluster)


def test_a_wiped_disk_is_an_observer_and_reports_that_it_does_not_vote() -> None:
    cluster = with_wiped_disk(CONFIG)
    cluster.advance(3 * PERIOD_MS)
    assert not cluster[3].is_voter
    (report,) = of_type(cluster, 3, VotesNoMore)
    assert isinstance(report, VotesNoMore)
    assert report.reason is NonVoterReason.OTHER_DIRECTORY
    assert [each.key for each in cluster[1].voters] == [key(1), key(2), OLD_DISK]


def test_a_wiped_disk_replaces_its_old_entry_where_that_is_on() -> None:
    cluster = with_wiped_disk(JOINING)
    cluster.advance(6 * PERIOD_MS)
    assert [each.key for each in cluster[1].voters] == [key(1), key(2), key(3)]
    assert cluster[1].removed_voters == (OLD_DISK,)
    assert cluster[3].is_voter


def test_a_removed_replica_does_not_slip_back_in() -> None:
    cluster = led(CoreCluster((1, 2, 3), config=JOINING))
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, RemoveVoter(1, key(3))))
    cluster.advance(6 * PERIOD_MS)
    assert not cluster[3].is_voter
    assert not of_type(cluster, 3, SelfRegistrationAsked)
    (report,) = of_type(cluster, 3, VotesNoMore)
    assert isinstance(report, VotesNoMore)
    assert report.reason is NonVoterReason.REMOVED


def test_no_node_removes_another_by_a_peer_request() -> None:
    cluster = led(CoreCluster((1, 2, 3), (4,)))
    for victim in (key(2), key(4)):
        request = RemoveVoterRequest(99, CLUSTER, key(4), victim, cluster[1].epoch)
        cluster.call(1, lambda node, r=request: node.receive(cluster.now_ms, 4, r))
        answer = cluster.sent_by(1, VoterChangeResponse)[-1]
        assert answer.error == ErrorCode.INVALID_REQUEST
    assert [each.key.id for each in cluster[1].voters] == [1, 2, 3]


def test_no_stranger_removes_a_voter_by_its_number() -> None:
    """It names another disk with that node id; the voter itself runs and votes."""
    cluster = led(CoreCluster((1, 2, 3)))
    for is_proven in (False, True):
        request = RemoveVoterRequest(
            99, CLUSTER, ReplicaKey(2, b"another disk of2"), key(2), cluster[1].epoch
        )  # fmt: skip
        received = arrived(request, is_proven=is_proven)
        cluster.call(1, lambda node, r=received: node.receive(cluster.now_ms, 2, r))
        cluster.advance(1_000)
        assert (2 in [each.key.id for each in cluster[1].voters]) is not is_proven


def test_requests_of_another_cluster_or_epoch_are_refused() -> None:
    cluster = led(CoreCluster((1, 2, 3)))
    epoch = cluster[1].epoch
    for cluster_id, asked_epoch, node_id, error in (
        ("other", epoch, 1, ErrorCode.INCONSISTENT_CLUSTER_ID),
        (CLUSTER, epoch - 1, 1, ErrorCode.FENCED_LEADER_EPOCH),
        (CLUSTER, epoch + 1, 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (CLUSTER, epoch, 3, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ):
        request = UpdateVoterRequest(99, cluster_id, voter(2), asked_epoch)
        cluster.call(node_id, lambda node, r=request: node.receive(cluster.now_ms, 2, r))
        assert cluster.sent_by(node_id, VoterChangeResponse)[-1].error == error
    assert cluster[1].epoch == epoch
