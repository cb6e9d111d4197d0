"""Disks that take the place of others: new and empty, or copies from the past."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.harm.site import Site
from quorate.sim.memory_filesystem import KEEP_ALL

if TYPE_CHECKING:
    from quorate.sim.member import Member


_BEHIND_US = 200_000
_NOTICED_WITHIN_US = 2_000_000


def _may_replace(site: Site, member: Member | None) -> bool:
    if member is None or member.disk.has_lost_its_vote or not site.may_damage(member):
        return False
    # Before the first commit a quorum is not founded, and waits for the disks it knows.
    return site.cluster.witness.committed.end_offset > 0


def wipe(site: Site) -> bool:
    """A disk is replaced and formatted anew: a new directory id, an observer from now on."""
    member = site.any(up=False)
    if member is None or not _may_replace(site, member):
        return False
    member.disk.wipe(site.rng.randbytes(16))
    site.cluster.witness.wiped(member.id)
    site.cluster.damaged.add(member.id)
    return True


def reformat(site: Site) -> bool:
    """A voter's disk is replaced and formatted by the same command: the same directory id."""
    member = site.any(up=False)
    if member is None or member.id not in site.cluster.voter_ids or not _may_replace(site, member):
        return False
    member.disk.reformat(member.directory_id, site.cluster.bootstrap_voters)
    site.cluster.witness.reformatted(member.id, is_empty=True)
    site.cluster.damaged.add(member.id)
    return True


def roll_back(site: Site) -> bool:
    """A voter's disk is copied, and some time later replaced by that copy.

    What the copy has forgotten binds all the same, and nobody can enforce that before the first
    contact: roll-backs are outside of what is promised, and are found out. So everybody else is
    up when it happens, and nothing else goes wrong until it was noticed or has caught up.
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
    cluster.network.mend()
    member.disk.roll_back()
    cluster.witness.reformatted(member.id, is_empty=False)
    cluster.damaged.add(member.id)
    cluster.hush(_NOTICED_WITHIN_US)
    cluster.happened("rolled-back")
    member.boot()
