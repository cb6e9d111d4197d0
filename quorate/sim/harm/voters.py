"""Operators who change the voters while everything else goes wrong (853)."""

from __future__ import annotations

from quorate.sim.harm.site import Site
from quorum.core.notices import AddVoter, RemoveVoter
from quorum.types import Endpoint, Voter

_VOTERS_MIN = 3
"""Below this nobody is removed, so that a crash does not end every run."""
_UNHEARD = 1 << 40
"""A token that nobody waits under: what becomes of the change shows in the log."""


def change_voters(site: Site) -> bool:
    """Ask the leader to remove a voter, or to add a replica, removed before or not."""
    leader = site.leader()
    if leader is None or leader.replica is None:
        return False
    voters = leader.replica.node.voters
    ids = {voter.key.id for voter in voters}
    others = [each for each in site.cluster.members.values() if each.id not in ids]
    if len(voters) > _VOTERS_MIN and (not others or site.rng.random() < 0.5):
        leader.tell(RemoveVoter(_UNHEARD, site.rng.choice(voters).key))
        return True
    if not others:
        return False
    chosen = site.rng.choice(others)
    if chosen.replica is None:
        return False
    entry = Voter(chosen.replica.node.me, (Endpoint("CONTROLLER", f"n{chosen.id}", 9093),))
    leader.tell(AddVoter(_UNHEARD, entry, readmit=site.rng.random() < 0.7))
    return True
