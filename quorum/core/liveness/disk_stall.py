"""Disk stalls: the node resigns, and does not campaign or vote until the disk completes writes.

A leader whose disk hangs would otherwise lead forever: the followers commit without it, and its
answers to Fetch work as heartbeats. A follower needs no rule against acknowledging, since its next
Fetch waits for the disk. But it must not campaign or promise votes.

A lone voter keeps its leadership, because no other node could take over.

See: hashicorp/raft #503, etcd #15247 (leaders that outlive their disk).
"""

from __future__ import annotations

from quorum.core.contract.events import DiskRecovered, DiskStalled
from quorum.core.contract.reasons import RoleChangeCause, RoleChangeReason
from quorum.core.protocol.role_transitions import become_resigned
from quorum.core.state.core_state import CoreState
from quorum.core.state.replica_table import preferred_successors
from quorum.core.state.roles import Leader
from quorum.core.state.timers import Timer


def watch(core: CoreState) -> None:
    """Check at the watch's deadline whether the disk completes writes; else a leader resigns."""
    if not core.disk.watch.check(core.now_ms):
        core.fired(Timer.DISK_SUSPECTED)
        return
    core.fired(Timer.DISK_STALLED)
    waited_ms = core.now_ms - core.disk.watch.since_ms
    core.event(DiskStalled(waited_ms))
    role = core.role
    if isinstance(role, Leader) and not core.is_lone_voter:
        cause = RoleChangeCause(RoleChangeReason.DISK_STALLED)
        become_resigned(core, preferred_successors(role), cause=cause)


def note_progress(core: CoreState) -> None:
    """Record that the disk has completed a ticket."""
    watch = core.disk.watch
    if watch.is_stalled:
        watch.is_stalled = False
        core.event(DiskRecovered(core.now_ms - watch.since_ms))
    core.disk.restart_watch(core.now_ms)
