"""The nodes that may stay down in the healing phase, and what the others must do."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.local_events import AddVoter, Resign
from quorum.types import Endpoint, Voter
from simulation import healing
from simulation.cluster import Cluster
from simulation.episode import run
from simulation.faults.identities import clone
from simulation.faults.site import Site
from simulation.healing import HealingPhase, progress_bound_ms
from simulation.invariants.violation import Violation
from simulation.lanes import run_lane
from simulation.member import Member
from simulation.memory_filesystem import KEEP_ALL
from simulation.options import Options
from simulation.survivors import Ending, can_spare, leave_minority
from simulation.trace import Trace

SEED = 3
EVENTS = 300
STEPS_MAX = 10_000
SLACK_MS = 50
"""Simulated time of one check."""


def _healthy(voters: int, observers: int = 0) -> Cluster:
    """A cluster in which nothing goes wrong, with a leader."""
    options = Options(voters=(voters,), observers=(observers,))
    cluster = Cluster(SEED, Trace(None, is_kept=False), options)
    cluster.start()
    cluster.heal()
    _until(cluster, lambda: cluster.counts.events >= EVENTS and bool(_leaders(cluster)))
    return cluster


def _leaders(cluster: Cluster) -> list[Member]:
    members = cluster.members.values()
    return [each for each in members if each.replica and each.replica.node.can_write]


def _leader(cluster: Cluster) -> Member:
    (leader,) = _leaders(cluster)
    return leader


def test_half_of_all_runs_leave_a_minority_out() -> None:
    """Goal: the share that the tests' page names. Method: a lane of short runs."""
    report = run_lane(range(1, 25), Options(events=800), jobs=1)
    assert not report.failures
    assert 9 <= report.counts.acts["minority-left-out"] <= 18
    for act in ("left-out-down", "left-out-cut", "left-out-leader"):
        assert report.counts.acts[act] >= 1
    assert 0 < report.progress_percent_max < 100


@pytest.mark.parametrize(("voters", "most"), [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2)])
def test_no_more_than_a_minority_of_the_voters_is_left_out(voters: int, most: int) -> None:
    cluster = _healthy(voters)
    nodes = list(cluster.members.values())
    for count in range(voters):
        # The most caught-up node is kept, so that all others can elect it.
        order = sorted(nodes, key=lambda each: each.replica.node.log_end_offset)  # type: ignore[union-attr]
        assert can_spare(cluster, order[:count]) == (count <= most)


def test_a_voter_set_counts_only_for_nodes_that_use_it() -> None:
    """Goal: two voters become three. Method: stop while the leader's follower has the record.

    By the old set one of two is no majority; by the new one two of three are, if the one that has
    the record is among them.
    """
    cluster = _healthy(2, observers=1)
    leader, new = _leader(cluster), cluster.members[11]
    follower = next(each for each in cluster.members.values() if each not in (leader, new))
    assert not can_spare(cluster, [leader])
    entry = Voter(new.key, (Endpoint("CONTROLLER", "n11", 9093),))
    leader.notify(AddVoter(1 << 40, entry))
    _until(cluster, lambda: _voters_of(leader) == 3)
    cluster.network.cut([leader.id], [new.id], both_ways=False)
    assert not can_spare(cluster, [leader])
    _until(cluster, lambda: _voters_of(follower) == 3)
    assert _voters_of(new) == 2
    assert can_spare(cluster, [leader])


def _until(cluster: Cluster, is_so: Callable[[], bool]) -> None:
    for _ in range(STEPS_MAX):
        if is_so():
            return
        cluster.scheduler.step()
    raise AssertionError("it never came to that")


def _voters_of(member: Member) -> int:
    assert member.replica is not None
    return len(member.replica.node.voters)


def test_nodes_left_out_stay_down_or_cut_off() -> None:
    cluster = _healthy(5, observers=1)
    leader = _leader(cluster)
    gone = next(each for each in cluster.members.values() if each is not leader)
    gone.stop_for("machine")
    if gone.is_up:
        gone.crash("kill", KEEP_ALL, is_refusing=True)
    away = leave_minority(cluster, random.Random(1))
    assert gone in away
    rest = [each for each in cluster.members.values() if each not in away]
    HealingPhase(cluster, rest).run()
    assert not gone.is_up
    assert not any(cluster.network.reaches_client(each.id) for each in away)


def test_a_copy_of_a_disk_is_found_before_a_minority_is_left_out() -> None:
    """Goal: a run that ends beside a copy may leave a minority out as any other one.

    Method: a copy was started, and all are up for as long as it runs; the survivors go on after it.
    """
    cluster = _healthy(3)
    assert clone(Site(cluster, cluster.budget, random.Random(1)))
    away = leave_minority(cluster, random.Random(1))
    assert len(away) == 1
    assert not cluster.are_faults_suspended()
    assert cluster.counts.copies_refused > 0
    HealingPhase(cluster, [each for each in cluster.members.values() if each not in away]).run()


def test_a_change_of_the_leader_in_a_healed_cluster_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Method: the leader is asked to resign when the cluster is healthy."""
    cluster = _healthy(3)
    check_end = healing.check_end

    def resign_as_well(cluster: Cluster, members: list[Member]) -> None:
        check_end(cluster, members)
        _leader(cluster).notify(Resign())

    monkeypatch.setattr(healing, "check_end", resign_as_well)
    with pytest.raises(Violation, match="leader or epoch changed"):
        HealingPhase(cluster, list(cluster.members.values())).run()


def test_survivors_that_elect_no_leader_are_a_failure() -> None:
    """Method: two of three are down, and the third has as long as is allowed, not longer."""
    cluster = _healthy(3)
    last, *away = cluster.members.values()
    for each in away:
        each.crash("kill", KEEP_ALL, is_refusing=True)
        each.stay_down()
    began_us = cluster.scheduler.now_us
    with pytest.raises(Violation, match="no progress in time"):
        HealingPhase(cluster, [last]).run()
    taken_ms = (cluster.scheduler.now_us - began_us) // 1_000
    assert 0 <= taken_ms - progress_bound_ms(cluster.settings.quorum) <= SLACK_MS


def test_the_bound_is_the_one_that_is_documented() -> None:
    assert progress_bound_ms(QuorumConfig()) == 2 * 2_000 + 12 * 1_000 + 2_000


def test_an_ending_does_not_change_what_went_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seed means the same fault phase, whatever its ending."""
    lines: dict[bool, list[str]] = {}
    for leaves in (True, False):
        ending = Ending(leaves, waits=False, rng=random.Random(1))
        monkeypatch.setattr(Ending, "draw", staticmethod(lambda seed, it=ending: it))
        kept: list[str] = []
        assert run(7, Options(events=200), on_line=kept.append).violation is None
        lines[leaves] = kept[: next(at for at, line in enumerate(kept) if " heal " in line)]
    assert lines[True] == lines[False]


def test_clients_find_a_leader_among_nodes_that_have_replaced_all_first_voters() -> None:
    """Goal: a leader that serves is not taken for a quorum that does not recover.

    Method: clients that reach some of the first voters, and none of them.
    """
    cluster = _healthy(2, observers=2)
    first, others = cluster.voter_ids, sorted(set(cluster.members) - set(cluster.voter_ids))
    cluster.network.cut_clients(first[:1])
    assert cluster.known_to_clients() == first
    cluster.network.cut_clients(first)
    assert sorted(cluster.known_to_clients()) == others
    cluster.network.cut_clients(cluster.members)
    assert cluster.known_to_clients() == first


def test_a_run_whose_first_voters_are_all_left_out_recovers() -> None:
    """Goal: as above, in a run. Method: the seed that showed it; its clients asked nobody else."""
    options = Options("interleavings")
    assert run(7710044, options, is_traced=False).violation is None
