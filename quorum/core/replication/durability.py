"""What becomes possible when the disk reports a ticket durable.

See: quorum/core/DESIGN.md (the order of duties) and ADR 7 (the vote floor).
"""

from __future__ import annotations

from quorum.core.contract.events import VoteFloorReached
from quorum.core.contract.output import StoreHighWatermark
from quorum.core.liveness import disk_stall
from quorum.core.replication.commitment import advance_high_watermark
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.roles import Leader
from quorum.core.state.timers import Timer
from quorum.errors import QuorumUsageError
from quorum.types import ElectionState, OffsetAndEpoch


def on_durable(core: CoreState, ticket: int) -> None:
    """Everything handed out up to ``ticket`` is on disk.

    Raises:
        QuorumUsageError: No such ticket was ever given.
    """
    disk = core.disk
    if ticket > disk.last_ticket:
        raise QuorumUsageError(f"ticket {ticket} was never given, the last is {disk.last_ticket}")
    if ticket <= disk.durable_ticket:
        return
    disk.durable_ticket = ticket
    disk_stall.note_progress(core)
    has_flushed = core.log.mark_durable(ticket)
    if has_flushed:
        # What was flushed may be acknowledged: the mark that tells it from a torn tail follows.
        disk.store_watermark_at(core.now_ms + core.config.high_watermark_store_ms)
    flight = core.requests.in_flight
    if flight is not None and not flight.has_left and flight.ticket <= ticket:
        # It leaves only now, so its time begins now.
        flight.due_ms = core.now_ms + core.config.request_timeout_ms
    role = core.role
    if has_flushed and isinstance(role, Leader) and role.established:
        advance_high_watermark(core, role)
    if core.election.vote_floor is not None and not core.chain.quarantined_log:
        _lift_vote_floor(core, core.election.vote_floor)


def _lift_vote_floor(core: CoreState, floor: OffsetAndEpoch) -> None:
    """Forget the floor once what it stands for is back on this disk."""
    flushed_end = core.log.flushed_end
    if flushed_end < core.log.start.offset:
        return
    flushed = OffsetAndEpoch(flushed_end, core.log.epochs.epoch_before(flushed_end))
    if flushed.is_at_least(floor):
        _forget_vote_floor(core, floor, flushed)


def lift_vote_floor_at_leaders_end(core: CoreState) -> None:
    """The leader has nothing beyond what this replica acknowledged to it in this life.

    So whatever the former life acknowledged is back. Of the leader's own epoch it can only have
    been what that leader sent, and a leader cuts nothing; of earlier epochs, what is committed is
    in the leader's log. Without this rule a floor in an epoch to come (a log that is gone
    altogether) would outlive the leader, and a majority that holds everything elect nobody.

    See: ADR 20.
    """
    floor, end = core.election.vote_floor, core.log.end
    if floor is not None and not core.chain.quarantined_log and core.log.flushed_end == end.offset:
        _forget_vote_floor(core, floor, end)


def _forget_vote_floor(core: CoreState, floor: OffsetAndEpoch, reached: OffsetAndEpoch) -> None:
    state = core.election
    core.save_election(ElectionState(state.epoch, state.leader_id, state.voted, None))
    core.event(VoteFloorReached(floor, reached))


def store_high_watermark(core: CoreState) -> None:
    """Write the lower bound of the high watermark; after a crash no more than that is flushed."""
    core.fired(Timer.WATERMARK_STORE)
    core.disk.watermark_store_due_ms = NEVER_MS
    core.effect(StoreHighWatermark(min(core.high_watermark, core.log.flushed_end)))
