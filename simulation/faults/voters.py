"""Operators who change the voters during all other faults (853)."""

from __future__ import annotations

from quorum.core.contract.local_events import AddVoter, RemoveVoter
from quorum.types import ReplicaKey, Voter
from simulation.environment import endpoints_of
from simulation.faults.site import Site
from simulation.member import Member
from simulation.operator import asked

_VOTERS_MIN = 3
"""No live voter is removed below this, so that a crash does not end every run."""
_SILENT = 1 << 40
"""A token without a waiting caller: the outcome of the change shows in the log."""


def change_voters(site: Site) -> bool:
    """Ask the leader to remove a voter, or to add a replica, removed before or not.

    As an operator would, mostly to replace a voter whose disk is lost.
    """
    leader = site.leader()
    if leader is None or leader.replica is None:
        return False
    keys = [voter.key for voter in leader.replica.node.voters]
    gone = [key for key in keys if site.budget.is_gone(key)]
    if gone and site.rng.random() < 0.8:
        return _remove(site, leader, site.rng.choice(gone))
    ids = {key.id for key in keys}
    others = [each for each in site.cluster.members.values() if each.id not in ids]
    if len(keys) > _VOTERS_MIN and (not others or site.rng.random() < 0.5):
        return _remove(site, leader, site.rng.choice(keys))
    return bool(others) and _add(site, leader, site.rng.choice(others))


def _remove(site: Site, leader: Member, key: ReplicaKey) -> bool:
    replica = leader.replica
    if replica is None:
        return False
    rest = [voter.key for voter in replica.node.voters if voter.key != key]
    if not site.budget.allows_voters(rest):
        return False
    leader.notify(RemoveVoter(_SILENT, key, origin=asked("remove", key.id)))
    return True


def _add(site: Site, leader: Member, chosen: Member) -> bool:
    replica = leader.replica
    if replica is None or chosen.replica is None:
        return False
    keys = [voter.key for voter in replica.node.voters]
    if not site.budget.allows_voters((*keys, chosen.key)):
        return False
    entry = Voter(chosen.key, endpoints_of(chosen.id)[:1])
    readmit, origin = site.rng.random() < 0.7, asked("add", chosen.id)
    leader.notify(AddVoter(_SILENT, entry, readmit=readmit, origin=origin))
    return True
