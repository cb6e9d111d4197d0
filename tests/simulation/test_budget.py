"""The budget of storage faults counts every voter set that may be in force."""

from __future__ import annotations

from quorum.core.contract.local_events import RemoveVoter
from simulation.cluster import Cluster
from simulation.memory_filesystem import KEEP_ALL
from simulation.options import Options
from simulation.trace import Trace

SEED = 3
EVENTS = 300


def _cluster(voters: int) -> Cluster:
    """A cluster in which nothing goes wrong, with a leader."""
    cluster = Cluster(SEED, Trace(None, is_kept=False), Options(voters=(voters,), observers=(1,)))
    cluster.start()
    cluster.heal()
    while cluster.counts.events < EVENTS:
        cluster.scheduler.step()
    return cluster


def _leader(cluster: Cluster) -> int:
    return next(
        each.id
        for each in cluster.members.values()
        if each.replica is not None and each.replica.node.is_leader
    )


def test_a_minority_of_the_voters_and_any_observer() -> None:
    cluster = _cluster(5)
    budget, members = cluster.budget, cluster.members
    for node_id in (1, 2):
        assert budget.allows(members[node_id])
        members[node_id].disk.has_lost_its_vote = True
    assert not budget.allows(members[3])
    assert budget.allows(members[2]), "it counts already"
    assert budget.allows(members[11])


def test_a_disk_of_another_identity_does_not_count_for_the_voter() -> None:
    cluster = _cluster(3)
    member = cluster.members[2]
    key = member.key
    member.crash("kill", KEEP_ALL, is_refusing=True)
    member.wipe(b"another disk's i")
    assert cluster.budget.is_gone(key)
    assert not cluster.budget.allows(cluster.members[1])
    assert not cluster.budget.allows_voters([key, cluster.members[1].key])


def test_a_set_that_is_not_committed_counts() -> None:
    """With one of four removed, two of the other three would be a majority."""
    cluster = _cluster(4)
    leader_id = _leader(cluster)
    one, removed, *_ = (each for each in cluster.voter_ids if each != leader_id)
    assert cluster.budget.allows(cluster.members[one])
    leader = cluster.members[leader_id]
    before = _sizes(cluster)
    leader.notify(RemoveVoter(1, cluster.members[removed].key))
    assert _sizes(cluster) == before | {3}
    assert leader.replica is not None
    assert leader.replica.node.high_watermark <= leader.replica.node.voters_offset


def _sizes(cluster: Cluster) -> set[int]:
    return {len(voters) for voters in cluster.budget.sets()}
