"""Disks that replace others: new and empty, or copies from the past."""

from __future__ import annotations

import random

from simulation.copies import end_copy, start_copy
from simulation.faults.site import Site
from simulation.member import Member
from simulation.memory_filesystem import KEEP_ALL

_BEHIND_US = 200_000
_NOTICED_WITHIN_US = 2_000_000
_COPY_RUNS_US = 400_000
"""Longer than any timer after which a node sends something."""


def _may_replace(site: Site, member: Member | None) -> bool:
    if member is None or member.disk.has_lost_its_vote or not site.budget.allows(member):
        return False
    # Before the first commit a quorum is not bootstrapped, and waits for its known disks.
    return site.cluster.run_observer.committed.end_offset > 0


def wipe(site: Site) -> bool:
    """Replace a disk by a newly formatted one: a new directory id, an observer until it is added.

    A disk that never votes again may be replaced at any time: it counts as lost already.
    """
    member = site.any(up=False)
    if member is None or not (member.disk.has_lost_its_vote or _may_replace(site, member)):
        return False
    member.wipe(site.rng.randbytes(16))
    site.cluster.run_observer.wiped(member.id)
    site.budget.spend(member)
    return True


def reformat(site: Site) -> bool:
    """Replace a voter's disk by one formatted by the same command: the same directory id."""
    member = site.any(up=False)
    voters = site.cluster.bootstrap_voters
    if member is None or member.key not in [voter.key for voter in voters]:
        return False
    if not _may_replace(site, member):
        return False
    member.disk.reformat(member.key.directory_id, voters)
    site.cluster.run_observer.reformatted(member.id, is_empty=True)
    site.budget.spend(member)
    return True


def roll_back(site: Site) -> bool:
    """Copy a voter's disk, and some time later replace the disk by that copy.

    Promises that the copy has forgotten still bind the node, and nothing can enforce that before
    its first contact. Roll-backs are outside the guarantees, and must be detected. So all other
    nodes are up when it happens, and no other fault occurs until it was detected or the node has
    caught up.
    """
    member = site.any(up=True)
    if member is None or member.id not in site.cluster.voter_ids:
        return False
    if not _may_replace(site, member):
        return False
    member.crash("kill", KEEP_ALL, is_refusing=True)
    member.disk.back_up()
    member.boot()
    site.later(site.some_us(_BEHIND_US), _put_back, site, member)
    return True


def _put_back(site: Site, member: Member) -> None:
    cluster = site.cluster
    others = [each for each in cluster.members.values() if each is not member]
    leader = site.leader()
    if leader in (None, member) or not all(each.is_up for each in others):
        return
    if not member.disk.is_behind_with_copy or not _may_replace(site, member):
        return
    member.crash("kill", KEEP_ALL, is_refusing=True)
    cluster.network.heal()
    member.disk.roll_back()
    cluster.run_observer.reformatted(member.id, is_empty=False)
    site.budget.spend(member)
    cluster.suspend_faults(_NOTICED_WITHIN_US)
    cluster.happened("rolled-back")
    member.boot()


def clone(site: Site) -> bool:
    """Copy a voter's disk, and run a second process on the copy beside the first for a while.

    Every peer with a session of the first refuses the second as long as the first runs. Once the
    first has ended, no peer can tell them apart. So all nodes are up, and no other fault occurs
    meanwhile.
    """
    cluster = site.cluster
    leader = site.leader()
    if leader is None or leader.replica is None or cluster.are_faults_suspended():
        return False
    keys = [voter.key for voter in leader.replica.node.voters]
    members = list(cluster.members.values())
    voters = [each for each in members if each.key in keys]
    # Corruption is found on the original disk; a copy of it would only be found a second time.
    intact = [each for each in voters if each.disk.files.are_intact]
    if len(voters) < 2 or not intact or not all(each.is_up for each in members):
        return False
    cluster.network.heal()
    links = start_copy(cluster, site.rng.choice(intact), random.Random(site.rng.getrandbits(64)))
    for_us = _COPY_RUNS_US + site.some_us(100_000)
    cluster.suspend_faults(for_us)
    # Also when all faults have ended meanwhile: the copy must not run for ever.
    cluster.scheduler.after(for_us, end_copy, links)
    return True
