"""Giving up on the own log: a vote floor, no leadership any more, and the end of this life.

What is wrong lies below the high watermark of a running node, where nothing is ever cut; so the
node stops, and its next life sets aside what is wrong before it begins.

See: ADR 5 and 7.
"""

from __future__ import annotations

from quorum.core.events import LogCondemned
from quorum.core.leader_view import preferred_successors
from quorum.core.output import CondemnLog
from quorum.core.roles import Leader
from quorum.core.state import CoreState
from quorum.core.transitions import become_resigned
from quorum.types import ElectionState, OffsetAndEpoch


def condemn(core: CoreState, first_offset: int, cause: str, *, is_history: bool | None) -> None:
    """Stop, because this log is wrong from ``first_offset`` on.

    ``is_history``: its files are sound, and a majority holds something else; False: the files
    are damaged, which the next start will find by itself; None: nobody can tell who is wrong,
    so nothing is to be set aside.
    """
    if core.chain.condemned:
        return
    core.chain.condemned = cause
    core.in_flight = None
    floor = vote_floor_of(core)
    state = core.election
    if is_history is not None:
        core.save_election(ElectionState(state.epoch, state.leader_id, state.voted, floor))
    core.effect(CondemnLog(first_offset, cause, is_history is True))
    core.event(LogCondemned(first_offset, floor, cause))
    role = core.role
    if isinstance(role, Leader):
        become_resigned(core, preferred_successors(role), reason="its own log is wrong")


def vote_floor_of(core: CoreState) -> OffsetAndEpoch:
    """The newest position this replica may have acknowledged."""
    log, old = core.log, core.election.vote_floor
    end_offset = max(log.flushed_end, log.start.offset)
    end = OffsetAndEpoch(end_offset, log.epochs.epoch_before(end_offset))
    return old if old is not None and old.is_at_least(end) else end
