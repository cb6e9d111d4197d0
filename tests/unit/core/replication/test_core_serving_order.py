"""The order in which a leader serves replicas: first as many as a commit needs, others later."""

from __future__ import annotations

from itertools import count

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.local_events import SnapshotCreated
from quorum.core.contract.output import Output
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.replication.serving_order import GATHERED_MAX
from quorum.core.state.timers import Timer
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import key

DELAY_MS = 5
OBSERVER = 9
_ids = count(1)


def led(voters: int = 3, *, delay_ms: int = DELAY_MS, **settings: int) -> CoreCluster:
    """Node 1 leads and every replica is at its end with a held Fetch; the test plays them."""
    config = QuorumConfig(append_delay_ms=delay_ms, high_watermark_delay_ms=1000, **settings)
    cluster = CoreCluster(range(1, voters + 1), (OBSERVER,), config=config)
    cluster.elect(1)
    for each in cluster.members:
        cluster.members[each].is_up = each == 1
    cluster.now_ms += config.fetch_max_wait_ms
    cluster.tick(1)
    cluster.queue.clear()
    cluster.sent.clear()
    for each in (*range(2, voters + 1), OBSERVER):
        assert fetch(cluster, each) == [], "nothing to tell yet"
    return cluster


def served(output: Output) -> list[tuple[int, int]]:
    """Return (receiver, end) for every response with records."""
    return sorted(
        (each.to, each.message.records.end_offset)
        for each in (*output.immediate, *output.after_persist)
        if isinstance(each.message, FetchResponse) and each.message.records
    )


def fetch(cluster: CoreCluster, sender: int, offset: int | None = None) -> list[tuple[int, int]]:
    """Send a Fetch of ``sender``, by default caught up; return the replicas that are served."""
    leader = cluster[1]
    request = FetchRequest(
        next(_ids),
        CLUSTER,
        key(sender),
        leader.epoch,
        leader.log_end_offset if offset is None else offset,
        leader.log_end.epoch,
        leader.high_watermark,
        max_wait_ms=500,
    )
    return served(cluster.call(1, lambda node: node.receive(cluster.now_ms, sender, request)))


def propose(cluster: CoreCluster, records: int = 1) -> list[tuple[int, int]]:
    """Append records; return the replicas that are served at once."""

    return served(cluster.propose(1, records))


def wait(cluster: CoreCluster, ms: int) -> list[tuple[int, int]]:
    """Advance the clock; return the replicas that are served then."""
    cluster.now_ms += ms
    return served(cluster.call(1, lambda node: node.tick(cluster.now_ms)))


@pytest.mark.parametrize(("voters", "first"), [(1, []), (2, [2]), (3, [2]), (5, [2, 3])])
def test_as_many_as_a_majority_needs_are_served_at_once(voters: int, first: list[int]) -> None:
    """Goal: no more work than a commit takes. Method: all wait, one write, then the delay."""
    cluster = led(voters)
    end = cluster[1].log_end_offset + 1
    assert propose(cluster) == [(each, end) for each in first]
    assert cluster.members[1].deadline_ms == cluster.now_ms + DELAY_MS
    assert wait(cluster, DELAY_MS - 1) == []
    later = [*range(2 + len(first), voters + 1), OBSERVER]
    assert wait(cluster, 1) == [(each, end) for each in later]
    assert cluster[1].timers_fired[Timer.APPEND_DELAY] == len(later)


def test_writes_gather_from_the_first_one_on() -> None:
    """Goal: one answer for several writes, none waiting longer than the delay for its first."""
    cluster = led()
    propose(cluster)
    wait(cluster, 2)
    fetch(cluster, 2)
    propose(cluster)
    assert wait(cluster, 3) == [
        (3, cluster[1].log_end_offset),
        (OBSERVER, cluster[1].log_end_offset),
    ]


def test_the_most_caught_up_replica_is_served_first() -> None:
    """Goal: a commit needs one answer. Method: the one with less waits longer already."""
    cluster = led()
    propose(cluster)
    fetch(cluster, 2)
    assert cluster[1].high_watermark == cluster[1].log_end_offset
    assert propose(cluster) == [(2, cluster[1].log_end_offset)]


def test_a_failed_follower_is_overtaken_after_one_delay() -> None:
    """Goal: one slow write, not a slow quorum. Method: the first one served never comes back."""
    cluster = led()
    end = cluster[1].log_end_offset + 1
    assert propose(cluster) == [(2, end)]
    assert (3, end) in wait(cluster, DELAY_MS)
    fetch(cluster, 3)
    assert cluster[1].high_watermark == end
    for _ in range(3):
        assert propose(cluster) == [(3, cluster[1].log_end_offset)]
        fetch(cluster, 3)
        assert cluster[1].high_watermark == cluster[1].log_end_offset


def test_a_fetch_that_a_commit_may_need_is_answered_as_it_comes() -> None:
    """Goal: no needless wait. Method: no other replica is writing the records."""
    cluster = led(5)
    end = cluster[1].log_end_offset
    propose(cluster)
    propose(cluster)
    fetch(cluster, 2, end + 1)
    assert fetch(cluster, 4, end) == [], "two others have at least as much and are busy"
    assert fetch(cluster, 5, end + 1) == [(5, end + 2)], "of those only one has as much"


def test_no_replica_is_needed_once_all_is_committed() -> None:
    """Goal: what lags gathers. Method: the quick one is back with everything and waits."""
    cluster = led()
    end = cluster[1].log_end_offset
    propose(cluster)
    fetch(cluster, 2)
    wait(cluster, DELAY_MS)
    assert fetch(cluster, 3, end) == []
    assert (3, end + 1) in wait(cluster, DELAY_MS)


def test_who_is_far_behind_is_served_at_once() -> None:
    """Goal: catching up is not slowed. Method: as many records as are worth an answer."""
    cluster = led()
    end = cluster[1].log_end_offset
    propose(cluster, GATHERED_MAX - 1)
    assert [each for each, _ in propose(cluster)] == [3, OBSERVER]
    propose(cluster)
    fetch(cluster, 2)
    assert fetch(cluster, 3, end + 2) == [], "not that far, and the other one has everything"
    propose(cluster)
    assert fetch(cluster, 3, end + 2) == [(3, end + GATHERED_MAX + 2)]


def test_without_a_delay_every_replica_is_served_at_once() -> None:
    """Goal: it can be switched off."""
    cluster = led(delay_ms=0)
    assert [each for each, _ in propose(cluster)] == [2, 3, OBSERVER]
    end = cluster[1].log_end_offset
    assert fetch(cluster, 3, end - 1) == [(3, end)]


def test_who_waited_until_the_log_was_trimmed_beyond_it_is_sent_to_the_snapshot() -> None:
    """Goal: no trimmed records are served. Method: hold an observer's Fetch, then trim."""
    cluster = led(1, start_offset_lag_max_ms=0)
    node = cluster[1]
    propose(cluster)
    snapshot_id = node.log_end
    assert node.high_watermark == snapshot_id.offset
    cluster.call(
        1, lambda core: core.on_local_event(cluster.now_ms, SnapshotCreated(snapshot_id, 40))
    )
    assert node.log_start == snapshot_id
    assert wait(cluster, DELAY_MS) == [], "no records"
    responses = [message for _, to, message in cluster.sent if to == OBSERVER]
    assert isinstance(responses[-1], FetchResponse)
    assert responses[-1].snapshot_id == snapshot_id
