"""Since when a replica may lack something: never claimed later than it was."""

from __future__ import annotations

from quorum.core.contract.freshness import Freshness
from tests.support.core_cluster import CoreCluster


def age(cluster: CoreCluster, node_id: int) -> int:
    known = cluster[node_id].freshness(cluster.now_ms)
    return cluster.now_ms - known.as_of_ms if known.as_of_ms >= 0 else -1


def led(voters: tuple[int, ...] = (1, 2, 3)) -> CoreCluster:
    cluster = CoreCluster(voters)
    cluster.elect(1)
    cluster.settle()
    return cluster


def test_fetches_that_come_anyway_keep_every_replica_current() -> None:
    """Goal: no read is needed. Method: an idle cluster, checked for three seconds."""
    cluster = led()
    cluster.advance(1_000)
    for _ in range(20):
        cluster.advance(100)
        ages = [age(cluster, node_id) for node_id in (1, 2, 3)]
        # A held Fetch proves its round when the next one comes, a follower one turn later.
        assert 0 <= min(ages) <= max(ages) <= 4 * cluster.config.fetch_max_wait_ms, ages


def test_a_cut_off_leader_grows_old_and_its_follower_with_it() -> None:
    """Goal: an answered Fetch alone proves nothing. Method: two of five on their own."""
    cluster = led((1, 2, 3, 4, 5))
    cluster.advance(1_000)
    for near in (1, 2):
        for far in (3, 4, 5):
            cluster.cut |= {(near, far), (far, near)}
    cut_ms = cluster.now_ms
    for _ in range(15):
        cluster.advance(100)
        assert cluster[1].is_leader
        assert age(cluster, 1) >= cluster.now_ms - cut_ms
        assert age(cluster, 2) >= cluster.now_ms - cut_ms


def test_a_leader_that_has_committed_nothing_of_its_own_claims_nothing() -> None:
    """Goal: an earlier leader may have acknowledged more. Method: look before the first commit."""
    cluster = CoreCluster()
    cluster.elect_without_replicating(1)
    assert cluster[1].is_leader
    assert cluster[1].freshness(cluster.now_ms) == Freshness(-1, -1)


def test_a_lone_voter_is_always_current() -> None:
    cluster = led((1,))
    cluster.advance(5_000)
    assert cluster[1].freshness(cluster.now_ms) == Freshness(
        cluster.now_ms, cluster[1].high_watermark
    )


def test_records_still_to_come_leave_the_replica_as_old_as_it_was() -> None:
    """Goal: an answer without all that is committed proves nothing. Method: one record each."""
    cluster = led()
    cluster.isolate(3)
    cluster.propose(1, 5)
    cluster.settle()
    before = cluster[3].freshness(cluster.now_ms)
    cluster.records_per_answer = 1
    cluster.heal()
    cluster.advance(cluster.config.fetch_timeout_ms // 2)
    seen = []
    while cluster[3].high_watermark < cluster[1].high_watermark and len(seen) < 99:
        seen.append(cluster[3].freshness(cluster.now_ms))
        if not cluster.deliver():
            cluster.advance(10)
    assert seen
    assert set(seen) <= {before}
    cluster.advance(2_000)
    assert cluster[3].freshness(cluster.now_ms).as_of_ms > before.as_of_ms
