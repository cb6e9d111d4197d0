"""Links that are cut, cut one way, flap, or are slow."""

from __future__ import annotations

from simulation.faults.site import Site

_FLAPS_MAX = 8


def partition(site: Site) -> bool:
    """Split the nodes into two sides; block messages between them, both ways or one way."""
    ids = sorted(site.cluster.members)
    side = [each for each in ids if site.rng.random() < 0.5]
    rest = [each for each in ids if each not in side]
    both_ways = site.rng.random() < 0.6
    site.cluster.network.cut(side, rest, both_ways=both_ways)
    if side and rest:
        site.cluster.happened("cut-both-ways" if both_ways else "cut-one-way")
    return bool(side and rest)


def isolate_leader(site: Site) -> bool:
    """Block all messages from the leader; half of the time also those to it."""
    leader = site.leader()
    if leader is None or len(site.cluster.members) < 2:
        return False
    rest = [each for each in sorted(site.cluster.members) if each != leader.id]
    site.cluster.network.cut([leader.id], rest, both_ways=site.rng.random() < 0.5)
    return True


def majority_ring(site: Site) -> bool:
    """Let every voter reach a majority, no two of them the same one."""
    voters = list(site.cluster.voter_ids)
    count = len(voters)
    if count < 3:
        return False
    site.rng.shuffle(voters)
    if count == 3:
        # The smallest bridge: two that reach the third, and not each other.
        site.cluster.network.cut(voters[:1], voters[1:2], both_ways=True)
        return True
    reach = count // 4 or 1
    for at, voter in enumerate(voters):
        near = {voters[(at + step) % count] for step in range(-reach, reach + 1)}
        far = [each for each in voters if each not in near]
        site.cluster.network.cut([voter], far, both_ways=True)
    return True


def flap(site: Site) -> bool:
    """Cut and restore one node's links several times."""
    member = site.any(up=True)
    if member is None or len(site.cluster.members) < 2:
        return False
    rest = [each for each in sorted(site.cluster.members) if each != member.id]

    def off(times: int) -> None:
        site.cluster.network.cut([member.id], rest, both_ways=True)
        site.later(site.some_us(20_000), on, times)

    def on(times: int) -> None:
        site.cluster.network.heal()
        if times:
            site.later(site.some_us(20_000), off, times - 1)

    off(site.rng.randint(2, _FLAPS_MAX))
    return True


def slow_link(site: Site) -> bool:
    """Delay messages between two nodes by tens of milliseconds, until links are healed."""
    ids = sorted(site.cluster.members)
    if len(ids) < 2:
        return False
    one, other = site.rng.sample(ids, 2)
    site.cluster.network.slow(one, other, site.rng.randint(5_000, 120_000))
    return True


def heal(site: Site) -> bool:
    """Restore all links, between nodes and to clients."""
    return site.cluster.network.heal()


def cut_clients(site: Site) -> bool:
    """Cut clients off from some of the nodes; answers under way are lost as well."""
    ids = sorted(site.cluster.voter_ids)
    site.cluster.network.cut_clients(each for each in ids if site.rng.random() < 0.5)
    return True
