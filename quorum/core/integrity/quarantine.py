"""Quarantine this replica's own log: store a vote floor, resign, and end this process run.

The wrong records lie below the high watermark of a running node, where it never truncates. So the
node stops, and its next process run sets the wrong records aside before it begins.

See: ADR 5 and 7.
"""

from __future__ import annotations

from quorum.core.contract.events import DamageSuspected, LogQuarantined
from quorum.core.contract.local_events import DamageFound
from quorum.core.contract.output import QuarantineLog, VerifyLog
from quorum.core.contract.reasons import RoleChangeCause, RoleChangeReason
from quorum.core.protocol.role_transitions import become_resigned
from quorum.core.state.core_state import CoreState
from quorum.core.state.replica_table import preferred_successors
from quorum.core.state.roles import Follower, Leader
from quorum.core.voters import majority
from quorum.types import ElectionState, OffsetAndEpoch


def quarantine(core: CoreState, first_offset: int, cause: str, *, is_history: bool | None) -> None:
    """Stop, because this log is wrong from ``first_offset`` on.

    ``is_history``: True: the files are intact, but a majority has another history; False: the files
    are damaged, which the next start detects by itself; None: it is undecidable which replica is
    wrong, so nothing is set aside.
    """
    if core.chain.quarantined_log:
        return
    core.chain.quarantined_log = cause
    core.requests.end_flight()
    floor = vote_floor_of(core)
    state = core.election
    if is_history is not None:
        core.save_election(ElectionState(state.epoch, state.leader_id, state.voted, floor))
    core.effect(QuarantineLog(first_offset, cause, is_history is True))
    core.event(LogQuarantined(first_offset, floor, cause))
    role = core.role
    if isinstance(role, Leader):
        why = RoleChangeCause(RoleChangeReason.LOG_QUARANTINED)
        become_resigned(core, preferred_successors(role), cause=why)


def on_damage_found(core: CoreState, event: DamageFound) -> None:
    """Have the log verified at once if the others can go on without this replica.

    The image and the newest records are in memory, so no wrong data is served meanwhile, and the
    damage does not grow by waiting. But ending a leadership term without a possible successor costs
    availability.
    """
    if core.chain.quarantined_log:
        return
    is_acted_on = _is_dispensable(core)
    core.event(DamageSuspected(event.cause, is_acted_on))
    if is_acted_on:
        core.progress(VerifyLog(core.log.flushed_end, core.log.cuts))


def _is_dispensable(core: CoreState) -> bool:
    """Whether a majority is left without this replica, as far as it knows.

    Only a leader knows the state of the others. A follower has a leader and fetches from it.
    """
    voters = len(core.voters.latest)
    leader = core.role
    if not core.is_voter:
        return True
    if not isinstance(leader, Leader):
        return voters > 1 and isinstance(leader, Follower)
    limit_ms = core.now_ms - core.config.check_quorum_ms
    level = [each for each in leader.remote.values() if each.last_caught_up_ms >= max(limit_ms, 0)]
    return len(level) >= majority.quorum_size(voters)


def vote_floor_of(core: CoreState) -> OffsetAndEpoch:
    """The newest position this replica may have acknowledged."""
    log, old = core.log, core.election.vote_floor
    end_offset = max(log.flushed_end, log.start.offset)
    end = OffsetAndEpoch(end_offset, log.epochs.epoch_before(end_offset))
    return old if old is not None and old.is_at_least(end) else end
