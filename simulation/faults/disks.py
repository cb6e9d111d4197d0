"""Disks that fail, fill up, hang or become slow; corrupt files and files of other nodes."""

from __future__ import annotations

from dataclasses import dataclass

from quorum.core.voters.majority import quorum_size
from quorum.log.layout import partition_directory
from simulation import file_damage
from simulation.damaged_files import DATA_DIR
from simulation.faults.site import Site
from simulation.forgery import forge_batch
from simulation.invariants.mirror import Batch
from simulation.member import Member
from simulation.memory_filesystem import Faults

_UNREADABLE = (".log", ".checkpoint", ".digest", "quorum-state", "meta.properties")


@dataclass(frozen=True, slots=True)
class EndsWith:
    """A predicate over file names that prints the same in every process."""

    suffix: str

    def __call__(self, name: str) -> bool:
        return name.endswith(self.suffix)


def failing_sync(site: Site) -> bool:
    """One of the next syncs fails; the next crash loses what it should have kept."""
    member = site.any(up=True)
    return member is not None and member.disk.fault(Faults(error_at_sync=site.rng.randrange(4)))


def full_disk(site: Site) -> bool:
    """Writes fail for lack of space from one of the next on, or while a directory is opened."""
    member = site.any(up=site.rng.random() < 0.8)
    if member is None:
        return False
    return _now_or_at_boot(member, Faults(full_at_write=site.rng.randrange(4)))


def unreadable(site: Site) -> bool:
    """Reads of one kind of file fail, at once or while the directory is opened."""
    member = site.any(up=site.rng.random() < 0.5)
    if member is None:
        return False
    suffix = site.rng.choice(_UNREADABLE)
    if suffix == ".digest":
        # Nothing is lost, but from there on the digests of this log are unknown.
        site.cluster.run_observer.is_chain_damaged = True
    return _now_or_at_boot(member, Faults(unreadable=EndsWith(suffix)))


def _now_or_at_boot(member: Member, faults: Faults) -> bool:
    if member.is_up:
        return member.disk.fault(faults)
    member.disk.fault_at_boot(faults)
    member.boot()
    return True


def hang(site: Site) -> bool:
    """A disk completes nothing for a while; its process does not know."""
    member = site.any(up=True)
    if member is not None:
        member.disk.hang(site.cluster.scheduler.now_us, site.some_us(400_000))
    return member is not None


def slow_disk(site: Site) -> bool:
    """Every pass of a disk takes up to fifty times as long, for a while."""
    member = site.any(up=True)
    if member is None:
        return False
    member.disk.slow_down(site.rng.randint(5, 50))
    site.later(site.some_us(500_000), member.disk.slow_down, 1)
    return True


def corruption(site: Site) -> bool:
    """One bit of one file flips while the node is down, within the budget."""
    return _corruption(site, is_running=False)


def corruption_running(site: Site) -> bool:
    """One bit of one file flips below a running node, which may not read it for long."""
    return _corruption(site, is_running=True)


def _corruption(site: Site, *, is_running: bool) -> bool:
    member = site.any(up=is_running)
    if member is None:
        return False
    may_lose = site.budget.allows(member)
    change = member.disk.files.corruption(site.rng, may_lose=may_lose, is_running=is_running)
    if change is None:
        return False
    site.cluster.happened(f"corruption-{change.kind}" + "-running" * is_running)
    member.disk.note("corruption", f"{change.path.name}")
    site.record_damage(member, change)
    return True


def swap(site: Site) -> bool:
    """While a node is down, a file of another node or an earlier one of its own replaces a file.

    The earlier one is from the disk's content when this fault last chose it.
    """
    member = site.any(up=False)
    if member is None:
        return False
    earlier = member.disk.keep_earlier()
    others = [each.disk.fs for each in site.cluster.members.values() if each is not member]
    sources = others if earlier is None else [*others, earlier]
    if not sources:
        return False
    source = site.rng.choice(sources)
    may_lose = site.budget.allows(member)
    change = member.disk.files.swap(site.rng, source, may_lose=may_lose)
    if change is None:
        return False
    age = "earlier" if source is earlier else "foreign"
    site.cluster.happened(f"swap-{change.kind}-{age}")
    member.disk.note("swap", f"{change.path.name} {age}")
    site.record_damage(member, change)
    return True


def damage_files(site: Site) -> bool:
    """Two or three files of a node that is down are deleted, zeroed, flipped, cut or swapped."""
    member = site.any(up=False)
    if member is None or not site.budget.allows(member):
        return False
    disk = member.disk
    others = [each.disk.fs for each in site.cluster.members.values() if each is not member]
    changes = file_damage.damage_files(disk.files, disk.fs, site.rng, others)
    for change in changes:
        site.cluster.happened(f"damage-{change.kind}")
        disk.note("damage", change.path.name)
        site.record_damage(member, change)
    return bool(changes)


def misname_checkpoint(site: Site) -> bool:
    """A checkpoint of a node that is down is copied under the name of a later position."""
    member = site.any(up=False)
    if member is None or not site.budget.allows(member):
        return False
    change = file_damage.misname_checkpoint(member.disk.files, member.disk.fs, site.rng)
    if change is not None:
        member.disk.note("misname", change.path.name)
        site.record_damage(member, change)
    return change is not None


def _others_hold(site: Site, member: Member, batch: Batch) -> bool:
    """Return whether a majority has the batch without that node; else the forged one may win."""
    cluster = site.cluster
    key = (batch.end_offset, batch.epoch)
    holders = sum(
        seen.durable.end_offset >= batch.end_offset
        and seen.damaged_at is None
        and key in seen.durable.boundaries_between(batch.base_offset, batch.end_offset)
        for node_id, seen in cluster.run_observer.nodes.items()
        if node_id in cluster.voter_ids and node_id != member.id
    )
    return holders >= quorum_size(len(cluster.voter_ids))


def forge(site: Site) -> bool:
    """A batch gets other bytes while its node is down, and every digest beside it matches.

    No check of that disk alone can detect it. The batch is one without a producer, so images do not
    differ. The disk counts as damaged until the end.
    """
    member = site.any(up=False)
    if member is None or not site.budget.allows(member) or member.disk.has_lost_its_vote:
        return False
    run_observer = site.cluster.run_observer
    seen = run_observer.nodes.get(member.id)
    if seen is None:
        return False
    durable = seen.durable
    held = [
        run_observer.batches.get(each) for each in durable.boundaries_between(0, durable.end_offset)
    ]
    plain = [
        each.base_offset
        for each in held
        if each is not None and each.producer_id < 0 and _others_hold(site, member, each)
    ]
    if not plain:
        return False
    directory = partition_directory(DATA_DIR)
    forged = forge_batch(member.disk.fs, directory, site.rng.choice(plain))
    if forged is None:
        return False
    run_observer.disguise(*forged)
    member.disk.has_lost_its_vote = True
    run_observer.forged.add(member.id)
    run_observer.damaged(member.id)
    run_observer.is_chain_damaged = True
    site.budget.spend(member)
    return True
