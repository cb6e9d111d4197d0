"""Which nodes a run may go on without: the rest must still be able to elect a leader.

Half of the runs heal in two steps. First a minority stays down or cut off, and the survivors alone
must make progress; then everything heals. Who may be left out is found from what the nodes hold at
that moment, not from a count of voters: nodes may disagree about who votes, and then a majority of
one set need not be a majority of another. A node can be elected if a majority of the set that *it*
goes by survives, can vote, and has no more than it has (Raft sections 5.2 and 5.4.1; dissertation
sections 4.1 and 4.2).
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from quorum.core.node.raft_node import RaftNode
from quorum.types import NodeId, OffsetAndEpoch
from simulation.cluster import Cluster
from simulation.harm.processes import CRASH_MODES
from simulation.member import Member
from simulation.seeded_random import SeededRandom

_SEEDS = 1 << 64
"""Endings are drawn apart from everything else, so that a seed means the same fault phase."""
_MINORITY_SHARE = 0.7
"""Of the runs, those that leave a minority out if they can: about half of all do. Of one or two
voters none can be spared, nor where those who are left could elect nobody.
"""
_LEADER_SHARE = 0.7
"""Of the minorities, those that have the leader among them if it can be spared."""
_ANOTHER_SHARE = 0.5
"""After a node was left out, how often one more is."""
_DOWN_SHARE = 0.6
"""Of the nodes left out, those that are down; the others run on and are cut off."""
_WAYS = ((False, False), (False, False), (True, False), (False, True))
"""Whether a node that is cut off is still heard by the survivors, and whether it hears them."""
_WAIT_EVENTS = 300
_STOP_SHARE = 0.1
"""While nodes disagree about who votes, the chance that the fault phase ends with the next step."""
_CHANGE = "change-voters"


@dataclass(frozen=True, slots=True)
class Ending:
    """How the fault phase of a run ends."""

    leaves_minority: bool
    """Whether a minority stays down or cut off while the survivors must make progress."""
    waits: bool
    """Whether it ends only when nodes disagree about who votes, if they do soon."""
    rng: random.Random

    @staticmethod
    def draw(seed: int) -> Ending:
        """The ending of a run."""
        rng = SeededRandom(_SEEDS + seed)
        return Ending(rng.random() < _MINORITY_SHARE, rng.random() < 0.5, rng)


def wait_for_disagreement(cluster: Cluster, ending: Ending) -> None:
    """Go on, for a while at most, to a moment at which nodes disagree about who votes."""
    if not ending.waits or _CHANGE not in cluster.options.faults.acts:
        return
    until = cluster.counts.events + _WAIT_EVENTS
    while cluster.counts.events < until:
        cluster.scheduler.step()
        if _do_sets_differ(cluster) and ending.rng.random() < _STOP_SHARE:
            return


def _do_sets_differ(cluster: Cluster) -> bool:
    """Whether the nodes that run go by different records of who votes."""
    found = {
        each.replica.node.voters_offset
        for each in cluster.members.values()
        if each.replica is not None
    }
    return len(found) > 1


def leave_minority(cluster: Cluster, rng: random.Random) -> list[Member]:
    """Heal all but some nodes, which stay down or are cut off; empty where none can be spared.

    What was down stays down as far as it can be spared; the others of those left out are taken
    from the nodes that run, mostly the leader among them.

    A copy of a disk, or a disk from the past, is found out first, with every node up. Most fault
    phases of profile clones end beside a copy.
    """
    if cluster.is_hushed():
        cluster.heal()
        while cluster.is_hushed():
            cluster.scheduler.step()
    cluster.end_faults()
    members = list(cluster.members.values())
    down = [each for each in members if not each.is_up]
    rng.shuffle(down)
    away = down.copy()
    while not can_spare(cluster, away):
        if not away:
            return []
        away.pop().boot()
    for each in _candidates(members, rng):
        if each.is_up and can_spare(cluster, [*away, each]):
            away.append(each)
            if rng.random() >= _ANOTHER_SHARE:
                break
    rest = [each.id for each in members if each not in away]
    for each in away:
        _leave_out(cluster, each, rest, rng)
    if away:
        cluster.network.cut_clients(each.id for each in away)
    return away


def _candidates(members: Collection[Member], rng: random.Random) -> list[Member]:
    """Whom to try to leave out, in this order."""
    found = [each for each in members if each.is_up]
    rng.shuffle(found)
    if rng.random() < _LEADER_SHARE:
        found.sort(key=lambda each: not (each.replica is not None and each.replica.node.is_leader))
    return found


def _leave_out(
    cluster: Cluster, member: Member, rest: Sequence[NodeId], rng: random.Random
) -> None:
    """Keep a node from the others: it is down, or its links are cut, both ways or one way."""
    is_leader = member.replica is not None and member.replica.node.is_leader
    if is_leader:
        cluster.happened("left-out-leader")
    if member.is_up and rng.random() >= _DOWN_SHARE:
        is_considered, hears = rng.choice(_WAYS)
        if not is_considered:
            cluster.network.cut([member.id], rest, both_ways=False)
        if not hears:
            cluster.network.cut(rest, [member.id], both_ways=False)
        cluster.happened("left-out-cut")
        return
    if member.is_up:
        name = rng.choice(sorted(CRASH_MODES))
        member.crash(name, CRASH_MODES[name], is_refusing=name == "kill")
    member.stay_down()
    cluster.happened("left-out-down")


def can_spare(cluster: Cluster, away: Collection[Member]) -> bool:
    """Whether the others can elect somebody, as they are now."""
    lacking = cluster.budget.lacking()
    able: dict[NodeId, RaftNode] = {}
    for each in cluster.members.values():
        if (
            each.replica is not None
            and each not in away
            and each.id not in lacking
            and each.disk.files.are_intact
            and not each.replica.node.chain.quarantined_log
            and each.replica.node.epoch > 0
        ):
            able[each.id] = each.replica.node
    return any(_could_win(cluster, node, able) for node in able.values())


def _could_win(cluster: Cluster, node: RaftNode, able: Mapping[NodeId, RaftNode]) -> bool:
    """Whether enough of the voters that ``node`` goes by are able, and have no more than it has."""
    voters = [voter.key for voter in node.voters]
    if not node.is_voter or node.why_not_bootstrapped:
        return False
    last, granting = position_of(node), 0
    for key in voters:
        other = able.get(key.id)
        if other is None or other.me != key or other.disqualified:
            continue
        floor = cluster.run_observer.nodes[key.id].election.vote_floor
        is_enough = floor is None or last.is_at_least(floor)
        granting += is_enough and last.is_at_least(position_of(other))
    return granting > len(voters) // 2


def position_of(node: RaftNode) -> OffsetAndEpoch:
    """What counts in votes: the end of the log, or of a checkpoint beyond it (630.13)."""
    end = node.log_end
    snapshots = node.snapshots
    if snapshots and not end.is_at_least(snapshots[-1]):
        return snapshots[-1]
    return end
