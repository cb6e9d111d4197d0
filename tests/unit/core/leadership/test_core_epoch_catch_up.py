"""An observer in a later epoch: when the leader moves leadership for it, and when it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.events import ObserverStranded, TransferStarted
from quorum.core.contract.local_events import AddVoter, TransferLeadership
from quorum.core.leadership.epoch_catch_up import EPOCHS_MAX, WAIT_ELECTIONS, poll
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.replication.stranded_observers import REPLICAS_MAX, forget_silent
from quorum.core.state.roles import Leader
from quorum.types import NodeId, ReplicaKey
from simulation.harness.arrival import arrived
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import key, voter

STEP_MS = 500
WAIT_MS = WAIT_ELECTIONS * QuorumConfig().election_timeout_ms
OBSERVER = 9


def led(voters: tuple[NodeId, ...] = (1, 2, 3)) -> CoreCluster:
    cluster = CoreCluster(voters)
    cluster.elect(1)
    cluster.propose(1, 3)
    cluster.settle()
    return cluster


def asks(
    cluster: CoreCluster,
    epoch: int,
    *,
    replica: ReplicaKey | None = None,
    is_proven: bool = True,
    to: NodeId | None = None,
) -> None:
    """Let a replica send a request to the leader, or ``to``, in ``epoch``."""
    request = FetchRequest(77, CLUSTER, replica or key(OBSERVER), epoch, 0, 0)
    asked = arrived(request, is_proven=is_proven)
    for node_id in [to] if to is not None else cluster.leaders():
        cluster.call(node_id, lambda node: node.receive(cluster.now_ms, OBSERVER, asked))


def asks_for(cluster: CoreCluster, ms: int, epoch: int, *, is_proven: bool = True) -> None:
    """The same again and again, for so long."""
    for _ in range(ms // STEP_MS):
        asks(cluster, epoch, is_proven=is_proven)
        cluster.advance(STEP_MS)


def transfers(cluster: CoreCluster) -> list[ReplicaKey | None]:
    """Return the replicas for which leadership moved, over all nodes."""
    return [
        each.observer
        for member in cluster.members.values()
        for each in member.events
        if isinstance(each, TransferStarted)
    ]


def stranded(cluster: CoreCluster) -> list[tuple[NodeId, int, bool]]:
    (leader,) = cluster.leaders()
    found = cluster[leader].replicas_ahead()
    return [(each.key.id, each.epoch, each.is_brought_back) for each in found]


def test_leadership_moves_once_after_the_wait_and_not_before() -> None:
    cluster = led()
    asks_for(cluster, WAIT_MS - STEP_MS, 2)
    assert (cluster.leaders(), cluster[1].epoch, transfers(cluster)) == ([1], 1, [])
    assert stranded(cluster) == [(OBSERVER, 2, True)]
    assert cluster[2].replicas_ahead() == ()
    asks_for(cluster, 4 * STEP_MS, 2)
    assert transfers(cluster) == [key(OBSERVER)]
    assert [cluster[each].epoch for each in (1, 2, 3)] == [2, 2, 2]
    assert stranded(cluster) == []
    asks_for(cluster, 2 * WAIT_MS, 2)
    assert len(transfers(cluster)) == 1


def test_each_epoch_costs_a_transfer_and_each_transfer_its_wait() -> None:
    cluster = led()
    asks_for(cluster, WAIT_MS + 4 * STEP_MS, 3)
    assert (cluster[1].epoch, len(transfers(cluster))) == (2, 1)
    asks_for(cluster, WAIT_MS - 8 * STEP_MS, 3)
    assert cluster[1].epoch == 2
    asks_for(cluster, 12 * STEP_MS, 3)
    assert [cluster[each].epoch for each in (1, 2, 3)] == [3, 3, 3]
    asks_for(cluster, 2 * WAIT_MS, 3)
    assert len(transfers(cluster)) == 2


@pytest.mark.parametrize(
    ("epoch", "is_proven"), [(2, False), (2 + EPOCHS_MAX, True), (2 + EPOCHS_MAX, False)]
)
def test_for_a_stranger_or_from_too_far_leadership_does_not_move(
    epoch: int, is_proven: bool
) -> None:
    """It is shown, and left to an operator."""
    cluster = led()
    asks_for(cluster, 3 * WAIT_MS, epoch, is_proven=is_proven)
    assert (cluster.leaders(), cluster[1].epoch) == ([1], 1)
    assert stranded(cluster) == [(OBSERVER, epoch, False)]
    events = [each for each in cluster.members[1].events if isinstance(each, ObserverStranded)]
    assert events == [ObserverStranded(key(OBSERVER), epoch, 1, is_proven)]


def test_the_furthest_that_leadership_moves_for() -> None:
    cluster = led()
    asks_for(cluster, WAIT_MS + 4 * STEP_MS, 1 + EPOCHS_MAX)
    assert cluster[1].epoch == 2


def test_a_stranger_neither_starts_the_wait_nor_counts_as_the_observer() -> None:
    """It asks long before; then in an epoch out of bounds, and with many unknown ids."""
    cluster = led()
    asks_for(cluster, WAIT_MS, 2, is_proven=False)
    asks(cluster, 2)
    assert stranded(cluster) == [(OBSERVER, 2, True)]
    for _ in range((WAIT_MS - STEP_MS) // STEP_MS):
        asks(cluster, 2)
        asks(cluster, 99, is_proven=False)
        for other in range(100, 100 + 2 * REPLICAS_MAX):
            asks(cluster, 2, replica=key(other), is_proven=False)
        assert len(stranded(cluster)) <= REPLICAS_MAX
        cluster.advance(STEP_MS)
    assert cluster[1].epoch == 1
    assert (OBSERVER, 2, True) in stranded(cluster)
    asks_for(cluster, 4 * STEP_MS, 2)
    assert cluster[1].epoch == 2


def test_an_observer_that_asks_no_more_is_forgotten() -> None:
    """It may have been stopped, or formatted anew."""
    cluster = led()
    asks_for(cluster, WAIT_MS // 2, 2)
    cluster.advance(WAIT_MS)
    assert stranded(cluster) == []
    asks_for(cluster, WAIT_MS // 2, 2)
    assert cluster[1].epoch == 1


def test_a_voter_in_a_later_epoch_is_no_case_of_this() -> None:
    """Its answer to BeginQuorumEpoch moves the leader. On another disk it is an observer."""
    cluster = led()
    asks(cluster, 2, replica=key(2))
    asks(cluster, 2, replica=ReplicaKey(-1))
    assert stranded(cluster) == []
    asks(cluster, 2, replica=replace(key(2), directory_id=b"x" * 16))
    assert stranded(cluster) == [(2, 2, True)]


def test_a_lone_voter_resigns_and_leads_the_next_epoch() -> None:
    cluster = led((1,))
    asks_for(cluster, WAIT_MS + 20 * STEP_MS, 2)
    assert cluster.leaders() == [1]
    assert cluster[1].epoch >= 2
    assert cluster[1].can_write
    assert stranded(cluster) == []


def test_the_epoch_stays_while_no_voter_could_take_over() -> None:
    """The other voters are silent; the leader does not resign for an observer."""
    cluster = led((1, 2))
    asks_for(cluster, WAIT_MS - 2 * STEP_MS, 2)
    cluster.slow_disks.add(2)
    cluster.propose(1, 1)
    asks_for(cluster, STEP_MS, 2)
    assert (cluster.leaders(), transfers(cluster)) == ([1], [])


def test_after_a_transfer_that_failed_the_wait_begins_anew() -> None:
    """The target accepts, but its disk completes nothing, so it requests no vote."""
    cluster = led()
    asks_for(cluster, WAIT_MS - STEP_MS, 2)
    cluster.slow_disks.add(2)
    asks_for(cluster, WAIT_MS // 2, 2)
    assert (cluster.leaders(), len(transfers(cluster))) == ([1], 1)


def test_a_change_of_the_voters_goes_first() -> None:
    cluster = led()
    asks_for(cluster, WAIT_MS - STEP_MS, 2)
    cluster.slow_disks.update((2, 3))
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, AddVoter(1, voter(4))))
    assert cluster[1].pending_change is not None
    asks_for(cluster, 2 * STEP_MS, 2)
    assert transfers(cluster) == []


def test_a_transfer_that_is_under_way_is_not_replaced() -> None:
    """A caller waits for its result, and its target may be about to campaign."""
    cluster = CoreCluster(config=QuorumConfig(transfer_timeout_ms=5_000))
    cluster.elect(1)
    cluster.settle()
    asks_for(cluster, WAIT_MS - STEP_MS, 2)
    cluster.cut = {(3, 1)}
    cluster.propose(1)
    cluster.settle()
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, TransferLeadership(7, 3)))
    asks_for(cluster, 3 * STEP_MS, 2)
    assert transfers(cluster) == [None]


def test_the_wait_ends_at_its_last_millisecond_and_needs_a_successor() -> None:
    """Method: no voter has fetched for as long, so none could take over."""
    cluster = led()
    asks(cluster, 2)
    core = cluster[1]._core
    leader = core.role
    assert isinstance(leader, Leader)
    due_ms = core.now_ms + WAIT_MS
    leader.catch_up_due_ms = due_ms
    (ahead,) = leader.ahead.values()
    ahead.last_ms = due_ms
    for core.now_ms in (due_ms - 1, due_ms):
        assert leader.catch_up_due_ms == due_ms
        poll(core, leader)
    assert leader.catch_up_due_ms == due_ms + WAIT_MS
    assert leader.transfer is None


def test_a_voter_whose_disk_never_votes_is_an_observer_here() -> None:
    cluster = led()
    asked = FetchRequest(77, CLUSTER, key(2), 2, 0, 0, is_disqualified=True)
    cluster.call(1, lambda node: node.receive(cluster.now_ms, 2, asked))
    assert stranded(cluster) == [(2, 2, True)]


def test_who_is_proven_later_takes_no_place_but_its_own() -> None:
    cluster = led()
    for other in range(100, 100 + REPLICAS_MAX):
        asks(cluster, 2, replica=key(other), is_proven=False)
    asks(cluster, 2, replica=key(107))
    assert [each for each, _, _ in stranded(cluster)] == [*range(100, 100 + REPLICAS_MAX)]


def test_an_observer_is_remembered_for_ten_election_timeouts() -> None:
    cluster = led()
    asks(cluster, 2)
    core = cluster[1]._core
    leader = core.role
    assert isinstance(leader, Leader)
    core.now_ms += 10 * core.config.election_timeout_ms
    forget_silent(core, leader)
    assert leader.ahead
    core.now_ms += 1
    forget_silent(core, leader)
    assert not leader.ahead
