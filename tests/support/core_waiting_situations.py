"""Nodes that wait for a response: a situation for each kind of request that may get none.

As in ``core_situations``, a situation is a cluster and the id of the node under test.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from quorum.config import QuorumConfig
from quorum.core.contract.local_events import (
    AddVoter,
    ConnectionRefused,
    FeatureLevels,
    ListenerEndpoints,
    LogVerified,
    RemoveVoter,
    Resign,
    TransferLeadership,
)
from quorum.core.messages.chain_messages import ChainDigestRequest, ChainDigestResponse
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.message_types import Message
from quorum.core.messages.read_messages import ReadPositionRequest
from quorum.core.messages.voter_messages import AddVoterRequest, UpdateVoterRequest
from quorum.core.state.upstream import RelayPlan
from quorum.errors import ErrorCode
from quorum.types import DigestAt, Endpoint, NodeId, OffsetAndEpoch, Voter
from simulation.harness import arrival
from tests.support.core_cluster import CLUSTER, CoreCluster, Member
from tests.support.core_disk import FRESH, disk_with, key, voter
from tests.support.wire_node import WireNode

Situation = tuple[CoreCluster, NodeId]
LOG = "1:a 1:b 1:c 2:d"
CONFIG = QuorumConfig(high_watermark_delay_ms=0, append_delay_ms=0)
JOINING = replace(CONFIG, auto_join=True)


def _led(observers: tuple[NodeId, ...] = (), **more: QuorumConfig) -> CoreCluster:
    disks = {each: disk_with(LOG) for each in (1, 2, 3, *observers)}
    cluster = CoreCluster(observers=observers, disks=disks, **more)
    cluster.elect(1)
    cluster.advance(600)
    cluster.propose(1)
    cluster.settle()
    return cluster


def _until_sent(cluster: CoreCluster, node_id: NodeId, kind: type[Message]) -> Situation:
    """Move the time until the node sends another request of this kind, which is not delivered."""
    before = len(cluster.sent_by(node_id, kind))
    for _ in range(300):
        if len(cluster.sent_by(node_id, kind)) > before:
            return cluster, node_id
        if not cluster.deliver(count=1):
            due = [each.deadline_ms for each in cluster.members.values() if each.is_up]
            cluster.now_ms = max(cluster.now_ms, min(each for each in due if each is not None))
            for each in cluster.members:
                deadline_ms = cluster.members[each].deadline_ms
                if deadline_ms is not None and deadline_ms <= cluster.now_ms:
                    cluster.tick(each)
    raise AssertionError(f"node {node_id} sends no {kind.__name__}")


def _notify(cluster: CoreCluster, node_id: NodeId, event: object) -> None:
    cluster.call(node_id, lambda node: node.on_local_event(cluster.now_ms, event))  # type: ignore[arg-type]


def _listens(cluster: CoreCluster, node_id: NodeId, host: str) -> None:
    endpoints = tuple(Endpoint(name, host, 9000) for name in ("CONTROLLER", "CLIENT"))
    _notify(cluster, node_id, ListenerEndpoints(endpoints))


def _moved_follower() -> Situation:
    cluster = _led()
    _listens(cluster, 2, "elsewhere")
    return _until_sent(cluster, 2, UpdateVoterRequest)


def _moved_leader() -> Situation:
    cluster = _led()
    _listens(cluster, 1, "elsewhere")
    return cluster, 1


def _upgraded_follower() -> Situation:
    """The node supports more than its voter record shows."""
    cluster = _led()
    _notify(cluster, 2, FeatureLevels((), {"kraft.version": 1}))
    return cluster, 2


def _joining_observer() -> Situation:
    cluster = _led((9,), config=JOINING)
    _listens(cluster, 9, "node9")
    return _until_sent(cluster, 9, AddVoterRequest)


def _searching_observer() -> Situation:
    cluster = CoreCluster(observers=(9,), disks={9: disk_with(LOG)})
    return cluster, 9


def _observer_of_a_lost_leader() -> Situation:
    cluster = _led((9,))
    cluster.queue.clear()
    _notify(cluster, 9, ConnectionRefused(1))
    return cluster, 9


def _follower_of_a_lost_leader() -> Situation:
    cluster = _led()
    cluster.queue.clear()
    _notify(cluster, 2, ConnectionRefused(1))
    return cluster, 2


def _fail_fast() -> Situation:
    cluster, node_id = _follower_of_a_lost_leader()
    for _ in range(10):
        if cluster[2].role_name == "Prospective":
            return cluster, node_id
        deadline_ms = cluster.members[2].deadline_ms
        assert deadline_ms is not None
        cluster.now_ms = deadline_ms
        cluster.tick(2)
    raise AssertionError(cluster[2].role_name)


def _reading(node_id: NodeId) -> Situation:
    cluster = _led((9,))
    cluster.queue.clear()
    for token in (5, 6):
        cluster.call(node_id, lambda node, t=token: node.ask_position(cluster.now_ms, t))  # type: ignore[misc]
    assert cluster.sent_by(node_id, ReadPositionRequest)
    return cluster, node_id


def _reading_leader() -> Situation:
    cluster = _led()
    cluster.queue.clear()
    cluster.call(1, lambda node: node.read(cluster.now_ms, 5))
    return cluster, 1


def _writing_leader() -> Situation:
    """Its followers lack the newest records, and one of them has not fetched for a while."""
    cluster = _led((9,))
    cluster.members[3].is_up = False
    cluster.advance(700)
    cluster.queue.clear()
    cluster.propose(1, 3)
    return cluster, 1


def _new_leader() -> Situation:
    """No voter has answered its BeginQuorumEpoch yet."""
    cluster = CoreCluster(disks={each: disk_with(LOG) for each in (1, 2, 3)})
    cluster.elect_without_replicating(1)
    return cluster, 1


def _removing_itself() -> Situation:
    cluster = _led()
    cluster.queue.clear()
    _notify(cluster, 1, RemoveVoter(7, key(1), 3000))
    return cluster, 1


def _adding_with_a_bound() -> Situation:
    """The probe is answered; the record of the new voter is being replicated."""
    cluster = _led((9,))
    _notify(cluster, 1, AddVoter(7, voter(9), ack_when_committed=True, timeout_ms=3000))
    cluster.deliver(9, BeginQuorumEpochRequest)
    cluster.deliver(1, count=1)
    return cluster, 1


def _transferring_late() -> Situation:
    """The target lacks a record, so it is not asked to campaign yet."""
    cluster = _led()
    cluster.queue.clear()
    cluster.propose(1, 2)
    _notify(cluster, 1, TransferLeadership(7, 3))
    return cluster, 1


def _resigned_of_five() -> Situation:
    cluster = CoreCluster(range(1, 6))
    cluster.elect(1)
    cluster.advance(600)
    cluster.queue.clear()
    _notify(cluster, 1, Resign())
    return cluster, 1


def _bootstrapping() -> Situation:
    cluster = CoreCluster(disks=dict.fromkeys((1, 2, 3), FRESH))
    cluster.queue = [each for each in cluster.queue if 3 not in each[:2]]
    cluster.settle()
    cluster.queue.clear()
    return cluster, 1


def _diverged(node_id: NodeId, *, is_polling: bool) -> Situation:
    cluster = _led()
    if is_polling:
        _poll_digests(cluster, node_id)
    else:
        _begin_divergence(cluster, node_id)
    cluster.queue.clear()
    return cluster, node_id


def _begin_divergence(cluster: CoreCluster, node_id: NodeId) -> None:
    cluster.advance(100)
    last = cluster.sent_by(2, FetchRequest)[-1]
    fetch = replace(last, request_id=last.request_id + 7, digest=b"t")
    received = arrival.received(fetch, own_digest=b"o")
    cluster.call(node_id, lambda node: node.receive(cluster.now_ms, 2, received))
    cluster.queue.clear()
    _notify(cluster, node_id, LogVerified(0))


def _poll_digests(cluster: CoreCluster, node_id: NodeId) -> None:
    _begin_divergence(cluster, node_id)
    while True:
        asked = cluster.sent_by(node_id, ChainDigestRequest)[-1]
        if asked.offsets[-1] == cluster[node_id].log_end_offset and len(asked.offsets) == 2:
            return
        _answer_digests(cluster, node_id, asked)


def _answer_digests(cluster: CoreCluster, node_id: NodeId, asked: ChainDigestRequest) -> None:
    """The other side's log differs from offset 3 on."""
    own = tuple(DigestAt(each, b"%d" % each) for each in asked.offsets)
    theirs = tuple(
        each if each.offset <= 3 else DigestAt(each.offset, b"x%d" % each.offset) for each in own
    )
    answer = ChainDigestResponse(
        asked.request_id, ErrorCode.NONE, 1, cluster[node_id].epoch, asked.offsets, theirs, own,
        replica=key(2),
    )  # fmt: skip
    cluster.call(node_id, lambda node: node.receive(cluster.now_ms, 2, answer))


def _relay(node_id: NodeId) -> Situation:
    """Relay 8 below leader 1, and observer 9 below relay 8, which holds its Fetch."""
    cluster = _led()
    plans = {8: RelayPlan(serves=True), 9: RelayPlan(fetch_from=(8,))}
    for observer, plan in plans.items():
        node = WireNode(
            config=CONFIG, cluster_id=CLUSTER, me=key(observer), rng=random.Random(observer),
            bootstrap=(1, 2, 3), relays=plan,
        )  # fmt: skip
        cluster.members[observer] = Member(node, disk_with(LOG), cluster)
        cluster.start(observer)
        cluster.advance(3000)
    cluster.queue.clear()
    return cluster, node_id


def _relay_of_a_silent_leader() -> Situation:
    """It may serve for a short time only."""
    cluster, node_id = _relay(8)
    cluster.members[1].is_up = False
    cluster.now_ms += cluster.config.relay_age_max_ms - 2500
    cluster.tick(8)
    return cluster, node_id


def _leader_with_a_snapshot() -> Situation:
    """Its log begins at offset 4; a checkpoint holds everything before."""
    start = OffsetAndEpoch(4, 2)
    disk = disk_with("2:e", start=start, snapshots={start: 40}, high_watermark=start.offset)
    cluster = CoreCluster(disks=dict.fromkeys((1, 2, 3), disk))
    cluster.elect(1)
    cluster.advance(600)
    cluster.propose(1)
    cluster.settle()
    return cluster, 1


def _polling_five() -> Situation:
    """One of the three others has answered, and holds neither history."""
    cluster = CoreCluster(range(1, 6), disks={each: disk_with(LOG) for each in range(1, 6)})
    cluster.elect(1)
    cluster.advance(600)
    cluster.propose(1)
    cluster.settle()
    _poll_digests(cluster, 1)
    third = [m for _, to, m in cluster.sent if to == 3 and isinstance(m, ChainDigestRequest)][-1]
    points = tuple(DigestAt(each, b"z%d" % each) for each in third.offsets)
    answer = ChainDigestResponse(
        third.request_id, ErrorCode.NONE, 1, cluster[1].epoch, third.offsets, points, points,
        replica=key(3),
    )  # fmt: skip
    cluster.call(1, lambda node: node.receive(cluster.now_ms, 3, answer))
    return cluster, 1


def _relay_with_a_late_read() -> Situation:
    cluster, node_id = _relay(9)
    cluster.call(9, lambda node: node.ask_position(cluster.now_ms, 5))
    return cluster, node_id


def _removed_voter() -> Situation:
    cluster = _led()
    _notify(cluster, 1, RemoveVoter(7, key(3)))
    cluster.advance(600)
    assert not cluster[3].is_voter
    cluster.queue.clear()
    return cluster, 3


def _lone_voter() -> Situation:
    cluster = CoreCluster((1,), (9,))
    cluster.elect(1)
    cluster.advance(600)
    return cluster, 1


def _probing_the_wrong_place() -> Situation:
    cluster = _led((9,))
    elsewhere = Voter(key(9), (Endpoint("CONTROLLER", "elsewhere", 1),))
    _notify(cluster, 1, AddVoter(7, elsewhere, timeout_ms=3000))
    cluster.queue.clear()
    return cluster, 1


WAITING: dict[str, Callable[[], Situation]] = {
    "moved-follower": _moved_follower,
    "moved-leader": _moved_leader,
    "upgraded-follower": _upgraded_follower,
    "joining-observer": _joining_observer,
    "searching-observer": _searching_observer,
    "observer-of-a-lost-leader": _observer_of_a_lost_leader,
    "follower-of-a-lost-leader": _follower_of_a_lost_leader,
    "fail-fast": _fail_fast,
    "reading-follower": lambda: _reading(2),
    "reading-observer": lambda: _reading(9),
    "reading-leader": _reading_leader,
    "writing-leader": _writing_leader,
    "new-leader": _new_leader,
    "leader-removing-itself": _removing_itself,
    "leader-with-a-proven-voter": _adding_with_a_bound,
    "leader-probing": _probing_the_wrong_place,
    "leader-waiting-to-transfer": _transferring_late,
    "resigned-of-five": _resigned_of_five,
    "bootstrapping-without-one": _bootstrapping,
    "leader-in-a-divergence": lambda: _diverged(1, is_polling=False),
    "leader-polling-digests": lambda: _diverged(1, is_polling=True),
    "leader-polling-five": _polling_five,
    "leader-with-a-snapshot": _leader_with_a_snapshot,
    "relay-of-a-silent-leader": _relay_of_a_silent_leader,
    "relay": lambda: _relay(8),
    "below-a-relay": lambda: _relay(9),
    "reading-below-a-relay": _relay_with_a_late_read,
    "removed-voter": _removed_voter,
    "lone-voter": _lone_voter,
}
