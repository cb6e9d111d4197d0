"""Processes and machines that crash, start, pause or shut down."""

from __future__ import annotations

from quorum.core.contract.local_events import Resign, ShutDown, TransferLeadership
from simulation.faults.site import Site
from simulation.member import Member
from simulation.memory_filesystem import (
    KEEP_ALL,
    LOSE_ALL,
    REORDERED,
    TORN_TAIL,
    CrashMode,
    Faults,
)
from simulation.operator import asked

CRASH_MODES: dict[str, CrashMode] = {
    "kill": KEEP_ALL,
    "power": LOSE_ALL,
    "torn": TORN_TAIL,
    "reorder": REORDERED,
}
_DOWN_US = 150_000
_LOOP_CRASHES_MAX = 6
_RECOVERY_CALLS = 8
"""About as many changing calls as opening a directory makes."""


def _stop(site: Site, member: Member, name: str) -> None:
    member.crash(name, CRASH_MODES[name], is_refusing=name == "kill")
    site.cluster.happened(f"crash-{name}")


def stop_and_start(site: Site, member: Member) -> None:
    """Crash a node in any way, and start it again after a while."""
    _stop(site, member, site.rng.choice(sorted(CRASH_MODES)))
    site.later(site.some_us(_DOWN_US), start_again, member)


def start_again(member: Member) -> None:
    """Start a node that is still down."""
    if not member.is_up:
        member.boot()


def crash(site: Site) -> bool:
    """Crash one node: its process alone, or its machine with unsynced writes."""
    member = site.any(up=True)
    if member is not None:
        stop_and_start(site, member)
    return member is not None


def crash_leader(site: Site) -> bool:
    """As ``crash``, for the leader."""
    leader = site.leader()
    if leader is not None:
        stop_and_start(site, leader)
    return leader is not None


def crash_all(site: Site) -> bool:
    """Crash all nodes; they restart one by one, or all at once."""
    members = [each for each in site.cluster.members.values() if each.is_up]
    if site.rng.random() < 0.5:
        for member in members:
            stop_and_start(site, member)
        return bool(members)
    name = site.rng.choice(sorted(CRASH_MODES))
    back_us = site.some_us(_DOWN_US)
    for member in members:
        _stop(site, member, name)
        site.later(back_us, start_again, member)
    return bool(members)


def crash_loop(site: Site) -> bool:
    """Crash a node repeatedly, each time soon after it has started."""
    member = site.any(up=True)
    if member is None:
        return False

    def again(crashes: int) -> None:
        start_again(member)
        if crashes and member.is_up:
            site.later(site.some_us(8_000), die, crashes)

    def die(crashes: int) -> None:
        if member.is_up:
            _stop(site, member, site.rng.choice(sorted(CRASH_MODES)))
        site.later(site.some_us(2_000), again, crashes - 1)

    die(site.rng.randint(2, _LOOP_CRASHES_MAX))
    return True


def power_in_call(site: Site) -> bool:
    """Cut the power right after one of the next changing calls to the disk."""
    member = site.any(up=True)
    return member is not None and member.disk.fault(Faults(stop_after_call=site.rng.randrange(12)))


def power_in_recovery(site: Site) -> bool:
    """Start a node that is down, and cut the power while it opens its directory."""
    member = site.any(up=False)
    if member is None:
        return False
    member.disk.fault_at_boot(Faults(stop_after_call=site.rng.randrange(_RECOVERY_CALLS)))
    member.boot()
    return True


def start(site: Site) -> bool:
    """Start a node that is down."""
    member = site.any(up=False)
    if member is not None:
        member.boot()
    return member is not None


def shut_down(site: Site) -> bool:
    """SIGTERM: a node stops campaigning, transfers leadership if it leads, and ends soon."""
    member = site.any(up=True)
    if member is None:
        return False
    incarnation = member.incarnation

    def end() -> None:
        if member.incarnation == incarnation and member.is_up:
            member.crash("kill", KEEP_ALL, is_refusing=True)
            site.later(site.some_us(_DOWN_US), start_again, member)

    member.notify(ShutDown())
    site.later(site.some_us(30_000), end)
    return True


def pause(site: Site) -> bool:
    """Stop a process for a while without ending it."""
    member = site.any(up=True)
    if member is not None:
        member.pause(site.some_us(200_000))
    return member is not None


def resign(site: Site) -> bool:
    """Ask the leader to resign, as an operator does."""
    leader = site.leader()
    if leader is not None:
        leader.notify(Resign())
    return leader is not None


def transfer(site: Site) -> bool:
    """Ask the leader to transfer leadership to the most caught-up voter."""
    leader = site.leader()
    if leader is not None:
        leader.notify(TransferLeadership(0, origin=asked("transfer from", leader.id)))
    return leader is not None


def checkpoint(site: Site) -> bool:
    """Request a checkpoint, as an operator does."""
    member = site.any(up=True)
    if member is not None:
        member.checkpoint()
    return member is not None
