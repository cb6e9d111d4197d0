"""Raise the log start to a snapshot, and delete the snapshots below it.

A leader trims up to a snapshot once every live replica has fetched that far, or once it has
kept the snapshot long enough. All other replicas follow the leader's log start as far as their
own newest snapshot allows. The log start never falls.

See: KIP-630 (630.5, 630.6, 630.14).
"""

from __future__ import annotations

from quorum.core.contract.events import LogStartAdvanced
from quorum.core.contract.output import AdvanceLogStart
from quorum.core.state.core_state import CoreState
from quorum.core.state.replica_table import replicas_of
from quorum.core.state.roles import Leader
from quorum.core.state.timers import Timer
from quorum.types import OffsetAndEpoch, SnapshotId

_FIRST_EPOCH = 1
"""No epoch before this one had a leader, so its leader knows every replica that has fetched."""


def trim_as_leader(core: CoreState, leader: Leader) -> None:
    """Trim as far as the replicas, or the holding time, allow."""
    target = trim_target(core, leader)
    if target is not None:
        if target.offset > _needed_from(core, leader):
            core.fired(Timer.SNAPSHOT_HOLD)
        _advance(core, target)


def trim_target(core: CoreState, leader: Leader) -> SnapshotId | None:
    """Return the newest snapshot above the log start to trim to; None if there is none."""
    needed_from = _needed_from(core, leader)
    held_limit_ms = core.now_ms - core.config.start_offset_lag_max_ms
    for snapshot_id in reversed(core.snapshots.ids):
        if snapshot_id.offset <= core.log.start.offset:
            return None
        if snapshot_id.offset > core.high_watermark:
            continue
        indexed = core.snapshots.get(snapshot_id)
        is_held_long = indexed is not None and indexed.since_ms <= held_limit_ms
        if snapshot_id.offset <= needed_from or is_held_long:
            return snapshot_id
    return None


def _needed_from(core: CoreState, leader: Leader) -> int:
    """Return the lowest offset that a live replica still has to fetch from this log.

    A replica that has not fetched yet counts as live for one session from the beginning of the
    leadership term, because its position is unknown. The log start then does not move. Voters have
    an entry from the beginning; the observers of an earlier leader are unknown.
    """
    limit_ms = core.now_ms - core.config.observer_session_ms
    if core.epoch > _FIRST_EPOCH and leader.since_ms >= limit_ms:
        return core.log.start.offset
    return min(
        (each.trim_position for each in replicas_of(leader) if each.live_since_ms >= limit_ms),
        default=core.log.end_offset,
    )


def follow_log_start(core: CoreState, leader_log_start: int) -> None:
    """Trim to the leader's log start, but never beyond the newest local snapshot."""
    if leader_log_start <= core.log.start.offset:
        return
    latest = core.snapshots.latest
    if latest is None:
        return
    offset = min(leader_log_start, latest.offset, core.high_watermark)
    if offset > core.log.start.offset:
        _advance(core, OffsetAndEpoch(offset, core.log.epochs.epoch_before(offset)))


def delete_unneeded(core: CoreState) -> None:
    """Delete the snapshots that a lease protected before."""
    delete = core.snapshots.deletable_below(core.log.start)
    if delete:
        _delete(core, delete)


def _advance(core: CoreState, start: OffsetAndEpoch) -> None:
    core.log.advance_start(start)
    core.voters.forget_below(start.offset)
    core.event(LogStartAdvanced(start))
    _delete(core, core.snapshots.deletable_below(start))


def _delete(core: CoreState, delete: tuple[SnapshotId, ...]) -> None:
    core.effect(AdvanceLogStart(core.log.start, delete))
    for snapshot_id in delete:
        core.snapshots.remove(snapshot_id)
