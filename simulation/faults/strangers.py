"""Faults caused by a process that is not a member."""

from __future__ import annotations

from simulation.faults.site import Site


def forge_request(site: Site) -> bool:
    """Send a node an election request that no member has sent."""
    victim = site.any(up=True)
    if victim is None or victim.replica is None:
        return False
    kind = site.cluster.network.stranger.forge_request(victim)
    site.cluster.happened(f"forged-{kind}")
    return True


def forge_change(site: Site) -> bool:
    """Request a voter change from a leader that no voter and no operator wants."""
    leader = site.leader()
    if leader is None or leader.replica is None:
        return False
    kind = site.cluster.network.stranger.forge_change(leader)
    site.cluster.happened(f"forged-{kind}")
    return True
