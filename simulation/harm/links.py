"""Links that carry nothing, carry one way, come and go, or are slow."""

from __future__ import annotations

from simulation.harm.site import Site

_FLAPS_MAX = 8


def partition(site: Site) -> bool:
    """The nodes fall into two sides; nothing passes, or nothing passes one way."""
    ids = sorted(site.cluster.members)
    side = [each for each in ids if site.rng.random() < 0.5]
    rest = [each for each in ids if each not in side]
    both_ways = site.rng.random() < 0.6
    site.cluster.network.cut(side, rest, both_ways=both_ways)
    if side and rest:
        site.cluster.happened("cut-both-ways" if both_ways else "cut-one-way")
    return bool(side and rest)


def isolate_leader(site: Site) -> bool:
    """Nothing leaves the leader; half of the time nothing reaches it either."""
    leader = site.leader()
    if leader is None or len(site.cluster.members) < 2:
        return False
    rest = [each for each in sorted(site.cluster.members) if each != leader.id]
    site.cluster.network.cut([leader.id], rest, both_ways=site.rng.random() < 0.5)
    return True


def majority_ring(site: Site) -> bool:
    """Every voter sees a majority, and no two of them the same one."""
    voters = list(site.cluster.voter_ids)
    count = len(voters)
    if count < 3:
        return False
    site.rng.shuffle(voters)
    if count == 3:
        # The smallest bridge: two that see the third, and not each other.
        site.cluster.network.cut(voters[:1], voters[1:2], both_ways=True)
        return True
    reach = count // 4 or 1
    for at, voter in enumerate(voters):
        near = {voters[(at + step) % count] for step in range(-reach, reach + 1)}
        far = [each for each in voters if each not in near]
        site.cluster.network.cut([voter], far, both_ways=True)
    return True


def flap(site: Site) -> bool:
    """One node's links come and go several times."""
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
    """Messages between two nodes take tens of milliseconds more, until links are mended."""
    ids = sorted(site.cluster.members)
    if len(ids) < 2:
        return False
    one, other = site.rng.sample(ids, 2)
    site.cluster.network.slow(one, other, site.rng.randint(5_000, 120_000))
    return True


def heal(site: Site) -> bool:
    """All links carry again, for nodes and for clients."""
    return site.cluster.network.heal()


def cut_clients(site: Site) -> bool:
    """Clients do not reach some of the nodes; answers under way are lost as well."""
    ids = sorted(site.cluster.voter_ids)
    site.cluster.network.cut_clients(each for each in ids if site.rng.random() < 0.5)
    return True
