"""Whom a leader serves new records first, and who may wait until some have gathered.

A lone write is committed as soon as a majority has it. Every further replica that is served along
with it costs the leader and its own processor as much again and makes nobody quicker; served a
little later, it gets several writes for the price of one. Whom a commit waits for is evaluated anew
at every append, by who has most: a follower that fails is overtaken after one delay.

Who pays is a linearizable read at an observer: after a lone write it waits there for the delay at
most. A voter hears of the read round, and gets what it lacks with it.

Only the time of an answer is decided here, never what counts as committed. See: ADR 34.
"""

from __future__ import annotations

from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import HeldFetch
from quorum.core.state.roles import Leader
from quorum.core.voters import majority

GATHERED_MAX = 8
"""A replica this many records behind is served at once. One message for eight writes is cheap.
Eight records usually mean concurrent writers, and either follower may be needed to commit. The core
counts records, because it does not know writes. A command of as many records, such as a topic of
eight partitions, is served to every replica at once."""


def take_first(core: CoreState, leader: Leader) -> list[HeldFetch]:
    """Take the held Fetches to answer right after an append; the others become due soon.

    That is as many voters as a majority needs beside the leader, those that have most and among
    equals those that were back first; whoever is ``GATHERED_MAX`` records behind; and whoever lacks
    the record of the voter set in force, because it may not know yet that it votes, or no longer.
    """
    end_offset = core.log.end_offset
    delay_ms = core.config.append_delay_ms
    if not delay_ms:
        return leader.held.take_below(end_offset, core.high_watermark)
    behind = max(end_offset - GATHERED_MAX, core.voters.latest_offset)
    taken = leader.held.take_ahead(_needed(leader), behind)
    leader.held.hasten_below(end_offset, core.now_ms + delay_ms)
    return taken


def may_gather(core: CoreState, leader: Leader, request: FetchRequest) -> bool:
    """Whether a replica below the log end may wait until more records have gathered for it.

    Not while it lacks the record of the voter set in force, and not while a commit may need it: as
    many other voters as make a majority with the leader have at least what it has, and what they
    lack of the rest they were served before.
    """
    end_offset = core.log.end_offset
    if (
        not core.config.append_delay_ms
        or end_offset - request.fetch_offset >= GATHERED_MAX
        or request.fetch_offset <= core.voters.latest_offset
    ):
        return False
    ahead = sum(
        progress.end_offset >= request.fetch_offset and progress.key != request.replica
        for progress in leader.remote.values()
    )
    return ahead >= _needed(leader)


def _needed(leader: Leader) -> int:
    """How many voters beside the leader itself make a majority with it."""
    return majority.quorum_size(len(leader.remote) + leader.counts_itself) - leader.counts_itself
