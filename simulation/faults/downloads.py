"""Replicas that fall behind and crash while they download the checkpoint that they need."""

from __future__ import annotations

from pathlib import Path

from quorum.log.layout import partition_directory
from simulation.damaged_files import DATA_DIR
from simulation.faults.processes import CRASH_MODES, start_again
from simulation.faults.site import Site
from simulation.member import Member
from snapshot.naming import FileState, file_path

_BEHIND_US = 20_000
_BEHIND_LOOKS = 75
"""Maximum checks for which a replica stays down until the log is trimmed beyond its end."""
_CHECKPOINT_LOOKS = 10
_LOOK_US = 500
_LOOKS = 800
_SLOW = 20
"""Factor by which its disk is slower meanwhile: checkpoints here have only a few chunks."""
_BACK_US = 10_000
"""Mean time until it restarts, mostly before there is another checkpoint."""
_LEAST_BYTES = (1, 300, 400, 600)
"""Minimum downloaded bytes at the crash: less than the first batch, and more."""
_MODES = ("kill", "kill", "kill", *sorted(CRASH_MODES))
_CORRUPTION_SHARE = 0.3
_WRITTEN_BACK_SHARE = 0.5
"""How often the kernel has written unsynced bytes by then, so that some survive."""


def crash_downloading(site: Site) -> bool:
    """Stop a follower until the log is trimmed, and crash it while it downloads a checkpoint.

    Sometimes a bit of the partial download flips before it restarts. Only while no other node is
    down: a quorum without progress trims nothing.
    """
    member = site.any(up=True)
    if member is None or member.replica is None or member.replica.node.is_leader:
        return False
    if not all(each.is_up for each in site.cluster.members.values()):
        return False
    log_end = member.replica.node.log_end_offset
    member.crash("kill", CRASH_MODES["kill"], is_refusing=True)
    site.later(_BEHIND_US, _come_back, site, member, log_end, _BEHIND_LOOKS)
    return True


def _come_back(site: Site, member: Member, log_end: int, looks: int) -> None:
    leader = site.leader()
    is_behind = (
        leader is not None
        and leader.replica is not None
        and leader.replica.node.log_start.offset > log_end
    )
    if looks and not (is_behind or member.is_up):
        if leader is not None and looks % _CHECKPOINT_LOOKS == 0:
            leader.checkpoint()
        site.later(_BEHIND_US, _come_back, site, member, log_end, looks - 1)
        return
    start_again(member)
    member.disk.slow_down(_SLOW)
    site.later(_LOOK_US, _watch, site, member, site.rng.choice(_LEAST_BYTES), _LOOKS)


def _watch(site: Site, member: Member, least_bytes: int, looks: int) -> None:
    part = _part_file(member)
    if part is None or _size(member, part) < least_bytes:
        if looks:
            site.later(_LOOK_US, _watch, site, member, least_bytes, looks - 1)
        else:
            member.disk.slow_down(1)
        return
    member.disk.slow_down(1)
    if site.rng.random() < _WRITTEN_BACK_SHARE:
        member.disk.fs.write_back()
    name = site.rng.choice(_MODES)
    member.crash(name, CRASH_MODES[name], is_refusing=name == "kill")
    site.cluster.happened(f"crash-{name}-downloading")
    size = _size(member, part)
    if size and site.rng.random() < _CORRUPTION_SHARE:
        member.disk.fs.flip_bit(part, site.rng.randrange(size), site.rng.randrange(8))
        site.cluster.happened("corruption-download")
        member.disk.note("corruption", part.name)
    site.later(site.some_us(_BACK_US), start_again, member)


def _part_file(member: Member) -> Path | None:
    """Return the file into which a running node downloads a checkpoint."""
    replica = member.replica
    # The node itself reports only whether it downloads.
    download = None if replica is None else replica.node._core.following.download  # noqa: SLF001
    if download is None:
        return None
    return file_path(partition_directory(DATA_DIR), download.snapshot_id, FileState.PART)


def _size(member: Member, path: Path) -> int:
    fs = member.disk.fs
    return len(fs.read_bytes(path)) if fs.exists(path) else 0
