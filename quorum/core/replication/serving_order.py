"""Order in which a leader serves new records: which replicas first, and which may wait.

A lone write is committed as soon as a majority has it. Each further replica that is served with it
costs the leader and that replica as much processor time again, and makes no commit faster. If it is
served a little later, it gets several writes for the same cost. At every append, the replicas with
the highest ends are chosen first, so a failing follower is overtaken after one delay.

The cost is borne by a linearizable read at an observer: after a lone write it waits there for at
most the delay. A voter gets the read round, and its missing records with it.

This module decides only the time of an answer, never what counts as committed. See: ADR 34.
"""

from __future__ import annotations

from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import HeldFetch
from quorum.core.state.roles import Leader

GATHERED_MAX = 8
"""A replica this many records behind is served at once. One message for eight writes is cheap.
Eight records usually mean concurrent writers, and either follower may be needed to commit. The core
counts records, because it does not know writes. A command of as many records, such as a topic of
eight partitions, is served to every replica at once."""


def take_first(core: CoreState, leader: Leader) -> list[HeldFetch]:
    """Take the held Fetches to answer right after an append; the others become due soon.

    Taken are as many voters as a majority needs besides the leader: those with the highest ends,
    and among equals those that returned first. Also taken are replicas that are ``GATHERED_MAX``
    records behind, and those without the record of the voter set in force, because they may not
    know yet whether they vote.
    """
    end_offset = core.log.end_offset
    delay_ms = core.config.append_delay_ms
    if not delay_ms:
        return leader.held.take_below(end_offset, core.high_watermark)
    behind = max(end_offset - GATHERED_MAX, core.voters.latest_offset)
    taken = leader.held.take_ahead(leader.others_needed, behind)
    leader.held.hasten_below(end_offset, core.now_ms + delay_ms)
    return taken


def may_gather(core: CoreState, leader: Leader, request: FetchRequest) -> bool:
    """Whether a replica below the log end may wait until more records have gathered for it.

    Not while it lacks the record of the voter set in force, and not while a commit may need it. It
    is not needed if enough other voters for a majority with the leader have at least its end; what
    those lack was sent to them before.
    """
    end_offset = core.log.end_offset
    if (
        not core.config.append_delay_ms
        or end_offset - request.fetch_offset >= GATHERED_MAX
        or request.fetch_offset <= core.voters.latest_offset
    ):
        return False
    ahead = 0
    for progress in leader.remote.values():
        if progress.end_offset >= request.fetch_offset and progress.key != request.replica:
            ahead += 1
    return ahead >= leader.others_needed
