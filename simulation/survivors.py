"""Choose a minority that a run can do without: the other nodes must be able to elect a leader.

Half of the runs heal in two steps. First a minority stays down or cut off, and the survivors alone
must make progress; then everything heals. The minority depends on what the nodes hold at that
moment, not on a count of voters. Nodes may disagree about the voter set, and a majority of one set
need not be a majority of another. A node can be elected if a majority of *its own* voter set
survives, can vote, and has no log ahead of its own (Raft sections 5.2 and 5.4.1; dissertation
sections 4.1 and 4.2).
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from quorum.core.node.raft_node import RaftNode
from quorum.types import NodeId, OffsetAndEpoch
from simulation.cluster import Cluster
from simulation.faults.processes import CRASH_MODES
from simulation.member import Member
from simulation.seeded_random import SeededRandom

_SEEDS = 1 << 64
"""Endings are drawn from a seed range of their own, so that the fault phase stays the same."""
_MINORITY_SHARE = 0.7
"""Share of the runs that leave out a minority if they can; in effect about half.

Of one or two voters none can be spared, nor a node without which no node could be elected.
"""
_LEADER_SHARE = 0.7
"""Share of the minorities that include the leader if it can be spared."""
_ANOTHER_SHARE = 0.5
"""Chance of leaving out one more node."""
_DOWN_SHARE = 0.6
"""Share of the left-out nodes that are down; the others run and are cut off."""
_WAYS = ((False, False), (False, False), (True, False), (False, True))
"""Whether a cut-off node still reaches the survivors, and whether they reach it."""
_WAIT_EVENTS = 300
_STOP_SHARE = 0.1
"""While nodes disagree about the voter set, chance per step that the fault phase ends."""
_CHANGE = "change-voters"


@dataclass(frozen=True, slots=True)
class Ending:
    """How the fault phase of a run ends."""

    leaves_minority: bool
    """Whether a minority stays down or cut off while the survivors must make progress."""
    waits: bool
    """Whether the fault phase waits a while for nodes to disagree about the voter set."""
    rng: random.Random

    @staticmethod
    def draw(seed: int) -> Ending:
        """Draw the ending of a run."""
        rng = SeededRandom(_SEEDS + seed)
        return Ending(rng.random() < _MINORITY_SHARE, rng.random() < 0.5, rng)


def wait_for_disagreement(cluster: Cluster, ending: Ending) -> None:
    """Run on, for a limited time, until nodes disagree about the voter set."""
    if not ending.waits or _CHANGE not in cluster.options.faults.acts:
        return
    until = cluster.counts.events + _WAIT_EVENTS
    while cluster.counts.events < until:
        cluster.scheduler.step()
        if _do_sets_differ(cluster) and ending.rng.random() < _STOP_SHARE:
            return


def _do_sets_differ(cluster: Cluster) -> bool:
    """Return whether running nodes use different voter records."""
    found = {
        each.replica.node.voters_offset
        for each in cluster.members.values()
        if each.replica is not None
    }
    return len(found) > 1


def leave_minority(cluster: Cluster, rng: random.Random) -> list[Member]:
    """Heal all but some nodes, which stay down or are cut off; empty where none can be spared.

    Nodes that were down stay down as far as they can be spared. The others of the minority are
    taken from the running nodes, mostly including the leader.

    First a copy of a disk, or a disk from the past, is detected with every node up. Most fault
    phases of profile clones end beside a copy.
    """
    if cluster.are_faults_suspended():
        cluster.heal()
        while cluster.are_faults_suspended():
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
    """Return the nodes to try to leave out, in this order."""
    found = [each for each in members if each.is_up]
    rng.shuffle(found)
    if rng.random() < _LEADER_SHARE:
        found.sort(key=lambda each: not (each.replica is not None and each.replica.node.is_leader))
    return found


def _leave_out(
    cluster: Cluster, member: Member, rest: Sequence[NodeId], rng: random.Random
) -> None:
    """Stop a node, or cut its links one way or both ways."""
    is_leader = member.replica is not None and member.replica.node.is_leader
    if is_leader:
        cluster.happened("left-out-leader")
    if member.is_up and rng.random() >= _DOWN_SHARE:
        is_considered, has_contact = rng.choice(_WAYS)
        if not is_considered:
            cluster.network.cut([member.id], rest, both_ways=False)
        if not has_contact:
            cluster.network.cut(rest, [member.id], both_ways=False)
        cluster.happened("left-out-cut")
        return
    if member.is_up:
        name = rng.choice(sorted(CRASH_MODES))
        member.crash(name, CRASH_MODES[name], is_refusing=name == "kill")
    member.stay_down()
    cluster.happened("left-out-down")


def can_spare(cluster: Cluster, away: Collection[Member]) -> bool:
    """Return whether the other nodes can elect a leader, as they are now."""
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
    """Return whether enough of ``node``'s voters are able to vote and not ahead of it."""
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
    """Return the position that votes compare.

    End of the log, or a checkpoint beyond it (630.13).
    """
    end = node.log_end
    snapshots = node.snapshots
    if snapshots and not end.is_at_least(snapshots[-1]):
        return snapshots[-1]
    return end
