"""Linearizable reads are confirmed by echoes of a round that began after them."""

from __future__ import annotations

from quorum.config import QuorumConfig
from quorum.core.contract.local_events import SnapshotCreated
from quorum.core.contract.output import Output, ReadConfirmed, ReadFailed
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.read_messages import ReadRound
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest
from quorum.core.state.roles import Leader
from quorum.types import OffsetAndEpoch
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import key


def led(voters: tuple[int, ...] = (1, 2, 3), config: QuorumConfig | None = None) -> CoreCluster:
    cluster = CoreCluster(voters, config=config)
    cluster.elect(1)
    return cluster


def read(cluster: CoreCluster, token: int, node_id: int = 1) -> Output:
    return cluster.call(node_id, lambda node: node.read(cluster.now_ms, token))


def outcomes(cluster: CoreCluster) -> list[object]:
    return [
        each for each in cluster.members[1].progress if isinstance(each, ReadConfirmed | ReadFailed)
    ]


def stamp(cluster: CoreCluster) -> int:
    """The number of the latest round that node 1 has begun."""
    role = cluster[1]._core.role
    assert isinstance(role, Leader)
    return role.reads.stamp.number


def echo(cluster: CoreCluster, sender: int, number: int, *, epoch: int = 1) -> Output:
    leader = cluster[1]
    request = FetchRequest(
        900,
        CLUSTER,
        key(sender),
        leader.epoch,
        leader.log_end_offset,
        leader.log_end.epoch,
        leader.high_watermark,
        500,
        read_round=ReadRound(epoch, number),
    )
    return cluster.call(1, lambda node: node.receive(cluster.now_ms, sender, request))


def test_a_read_completes_held_fetches_and_is_confirmed_by_their_echo() -> None:
    """Goal: one round trip begun after the read. Method: read, deliver, look."""
    cluster = led()
    output = read(cluster, 7)
    answers = [each.message for each in output.immediate]
    assert [each.read_round for each in answers if isinstance(each, FetchResponse)] == [
        ReadRound(1, stamp(cluster))
    ] * 2
    assert outcomes(cluster) == []
    cluster.settle()
    assert outcomes(cluster) == [ReadConfirmed(7, cluster[1].high_watermark)]


def test_a_fetch_that_was_already_on_its_way_proves_nothing() -> None:
    """Goal: its sender may since have voted for another. Method: a Fetch without the echo."""
    cluster = led()
    cluster.isolate(1)
    before = stamp(cluster)
    read(cluster, 7)
    echo(cluster, 2, before)
    assert outcomes(cluster) == []
    echo(cluster, 2, stamp(cluster))
    assert outcomes(cluster) == [ReadConfirmed(7, cluster[1].high_watermark)]


def test_echoes_of_another_epoch_or_of_rounds_to_come_do_not_count() -> None:
    """Goal: rounds live within one epoch. Method: senseless echoes."""
    cluster = led()
    cluster.isolate(1)
    read(cluster, 7)
    number = stamp(cluster)
    echo(cluster, 2, number, epoch=9)
    echo(cluster, 2, number + 1)
    echo(cluster, 9, number)
    assert outcomes(cluster) == []


def test_reads_that_arrive_during_a_round_share_the_next_one() -> None:
    """Goal: a round must begin after its reads. Method: three reads, two rounds."""
    cluster = led()
    cluster.isolate(1)
    for token in (1, 2, 3):
        read(cluster, token)
    watermark = cluster[1].high_watermark
    first = stamp(cluster)
    echo(cluster, 2, first)
    assert outcomes(cluster) == [ReadConfirmed(1, watermark)]
    echo(cluster, 3, first)
    assert outcomes(cluster) == [ReadConfirmed(1, watermark)]
    echo(cluster, 3, first + 1)
    assert outcomes(cluster) == [ReadConfirmed(each, watermark) for each in (1, 2, 3)]


def test_a_downloading_voter_echoes_as_well() -> None:
    """Goal: FetchSnapshot carries the round. Method: an echo in one."""
    cluster = led()
    cluster.isolate(1)
    snapshot = OffsetAndEpoch(3, 1)
    created = SnapshotCreated(snapshot, 9)
    cluster.members[1].add_snapshot(snapshot, 9)
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, created))
    read(cluster, 7)
    echoed = ReadRound(1, stamp(cluster))
    request = FetchSnapshotRequest(5, CLUSTER, key(2), 1, snapshot, 0, 9, echoed)
    cluster.call(1, lambda node: node.receive(cluster.now_ms, 2, request))
    assert outcomes(cluster) == [ReadConfirmed(7, 3)]


def test_a_single_voter_confirms_itself_at_once() -> None:
    """Goal: a quorum of one. Method: read and look at the same output."""
    cluster = led((1,))
    output = read(cluster, 7)
    assert ReadConfirmed(7, cluster[1].high_watermark) in output.progress


def test_a_read_fails_where_it_cannot_be_confirmed() -> None:
    """Goal: refuse rather than guess. Method: a follower, and a leader that is deposed."""
    cluster = led()
    assert ReadFailed(5) in read(cluster, 5, node_id=2).progress
    cluster.isolate(1)
    read(cluster, 6)
    read(cluster, 7)
    cluster.advance(4_000)
    assert outcomes(cluster) == [ReadFailed(6), ReadFailed(7)]


def test_waiting_reads_are_bounded() -> None:
    """Goal: a named limit. Method: one more than fits."""
    cluster = led(config=QuorumConfig(pending_reads_max=2))
    cluster.isolate(1)
    outputs = [read(cluster, token) for token in (1, 2, 3)]
    assert [ReadFailed(3) in each.progress for each in outputs] == [False, False, True]


def test_a_new_leader_does_not_answer_reads_before_its_epoch_has_committed() -> None:
    """Goal: its high watermark may lie below what was acknowledged. Method: read too early."""
    cluster = CoreCluster()
    cluster.elect_without_replicating(1)
    assert cluster[1].is_leader
    assert ReadFailed(5) in read(cluster, 5).progress
