"""What a process does that is no member."""

from __future__ import annotations

from simulation.harm.site import Site


def forge_request(site: Site) -> bool:
    """A node receives a request of an election that no member has sent."""
    victim = site.any(up=True)
    if victim is None or victim.replica is None:
        return False
    kind = site.cluster.network.stranger.forge_request(victim)
    site.cluster.happened(f"forged-{kind}")
    return True


def forge_change(site: Site) -> bool:
    """A leader is asked for another voter set, which no voter wants and no operator."""
    leader = site.leader()
    if leader is None or leader.replica is None:
        return False
    kind = site.cluster.network.stranger.forge_change(leader)
    site.cluster.happened(f"forged-{kind}")
    return True
