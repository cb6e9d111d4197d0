"""Faults of relays: crashed, paused, cut off, or moved in the tree."""

from __future__ import annotations

from simulation.faults import processes
from simulation.faults.site import Site
from simulation.member import Member
from simulation.memory_filesystem import KEEP_ALL

_STOPPED_US = 250_000
_MOVED_US = 10_000


def _relay(site: Site) -> Member | None:
    members = [site.cluster.members[each] for each in site.cluster.relays.relays()]
    running = [each for each in members if each.is_up]
    return site.rng.choice(running) if running else None


def crash_relay(site: Site) -> bool:
    """As ``crash``, for a node that observers fetch from."""
    member = _relay(site)
    if member is not None:
        processes.stop_and_start(site, member)
    return member is not None


def pause_relay(site: Site) -> bool:
    """Pause a relay for a while; it resumes where it was."""
    member = _relay(site)
    if member is not None:
        member.pause(site.some_us(_STOPPED_US))
    return member is not None


def isolate_relay(site: Site) -> bool:
    """Block all messages to a relay from the voters, or from all nodes, until links are healed.

    Its own observers may still reach it: the leader trims beyond the relay's end before theirs.
    """
    member = _relay(site)
    if member is None:
        return False
    cluster = site.cluster
    far = [each for each in sorted(cluster.members) if each != member.id]
    if site.rng.random() < 0.6:
        far = [each for each in far if each in cluster.voter_ids]
    cluster.network.cut(far, [member.id], both_ways=site.rng.random() < 0.5)
    return True


def move_observer(site: Site) -> bool:
    """Give an observer other relays, sensible or not, and restart it."""
    cluster = site.cluster
    if not cluster.relays.observers:
        return False
    member = cluster.members[site.rng.choice(cluster.relays.observers)]
    cluster.relays.move(site.rng, member.id)
    if member.is_up:
        member.crash("kill", KEEP_ALL, is_refusing=True)
        site.later(site.some_us(_MOVED_US), processes.start_again, member)
    return True
