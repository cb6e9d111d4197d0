"""Effects of a ticket that the disk reports as durable.

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
    """Process the report that everything up to ``ticket`` is on disk.

    Raises:
        QuorumUsageError: This ticket was never issued.
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
        # The flushed end may be acknowledged, so the stored durable end must follow.
        disk.store_watermark_at(core.now_ms + core.config.high_watermark_store_ms)
    flight = core.requests.in_flight
    if flight is not None and not flight.has_left and flight.ticket <= ticket:
        # The request leaves only now, so its timeout starts now.
        flight.due_ms = core.now_ms + core.config.request_timeout_ms
    role = core.role
    if has_flushed and isinstance(role, Leader) and role.established:
        advance_high_watermark(core, role)
    if core.election.vote_floor is not None and not core.chain.quarantined_log:
        _lift_vote_floor(core, core.election.vote_floor)


def _lift_vote_floor(core: CoreState, floor: OffsetAndEpoch) -> None:
    """Remove the vote floor once the log has reached it again."""
    flushed_end = core.log.flushed_end
    if flushed_end < core.log.start.offset:
        return
    flushed = OffsetAndEpoch(flushed_end, core.log.epochs.epoch_before(flushed_end))
    if flushed.is_at_least(floor):
        _forget_vote_floor(core, floor, flushed)


def lift_vote_floor_at_leaders_end(core: CoreState) -> None:
    """Remove the vote floor because the leader has no record beyond this log's durable end.

    All records that this replica acknowledged before its loss are then back. Those of the leader's
    epoch came from that leader, which never truncates. Those of earlier epochs, if committed, are
    in the leader's log. Without this rule, a floor with a future epoch (set after the loss of the
    whole log) would outlive the leader, and a majority with all records could elect no leader.

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
    """Store the lower bound of the high watermark, at most the flushed end."""
    core.fired(Timer.WATERMARK_STORE)
    core.disk.watermark_store_due_ms = NEVER_MS
    core.effect(StoreHighWatermark(min(core.high_watermark, core.log.flushed_end)))
