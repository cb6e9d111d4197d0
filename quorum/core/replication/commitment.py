"""Appends of a leader, and the part of its log that is committed.

See: Raft sections 5.3 and 5.4.2; KIP-595 (high watermark).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from quorum.core.contract.events import RecordsAppended
from quorum.core.contract.output import Append
from quorum.core.replication.fetch_answers import answer_held
from quorum.core.replication.read_forwarding import adopt_reads
from quorum.core.replication.serving_order import take_first
from quorum.core.state.core_state import CoreState
from quorum.core.state.roles import Leader
from quorum.core.voters import majority
from quorum.errors import QuorumUsageError

if TYPE_CHECKING:
    from quorum.batch import BatchHeader

_end_offset = attrgetter("end_offset")


def voter_ends(core: CoreState, leader: Leader) -> list[int]:
    """Return the known durable log end of every voter; the leader's own is its flushed end."""
    ends = list(map(_end_offset, leader.remote.values()))
    if leader.counts_itself:
        ends.append(core.log.flushed_end)
    return ends


def may_commit(leader: Leader, end_offset: int) -> bool:
    """Whether ``end_offset`` covers a record of this leader's own epoch.

    Older records are committed together with the first record of this epoch, never by counting
    alone (Raft section 5.4.2).
    """
    return end_offset > leader.epoch_start


def advance_high_watermark(core: CoreState, leader: Leader) -> None:
    """Commit what a majority has on disk, and notify held Fetches.

    Replicas get the new high watermark with the next records, or after ``high_watermark_delay_ms``.
    """
    end_offset = majority.reached_by_majority(voter_ends(core, leader))
    if not may_commit(leader, end_offset) or not core.raise_high_watermark(end_offset):
        return
    if leader.change is not None or not leader.counts_itself:
        # The record of the change may be committed now; the leader's next turn handles that.
        leader.membership_due_ms = core.now_ms
    uncommitted = leader.uncommitted
    while uncommitted and uncommitted[0][0] <= end_offset:
        leader.uncommitted_bytes -= uncommitted.popleft()[1]
    if not leader.can_write:
        leader.can_write = True
        core.announce_leadership()
        adopt_reads(core, leader)
    delay_ms = core.config.high_watermark_delay_ms
    if delay_ms:
        leader.held.hasten_unaware_of(end_offset, core.now_ms + delay_ms)
        waiting = leader.held.take_consumers_below(end_offset)
    else:
        waiting = leader.held.take_unaware_of(end_offset)
    for fetch in waiting:
        answer_held(core, leader, fetch)


def propose(
    core: CoreState, end_offset: int, payload: bytes, headers: Sequence[BatchHeader] = ()
) -> None:
    """Append ``payload`` as the records [log end, ``end_offset``) of this epoch.

    Raises:
        QuorumUsageError: Not a leader that may write, an empty range, or more uncommitted
            bytes than allowed; nothing has changed.
    """
    leader = core.role
    if not isinstance(leader, Leader) or not leader.takes_writes:
        raise QuorumUsageError(f"node {core.me.id} may not write in epoch {core.epoch}")
    base_offset = core.log.end_offset
    if end_offset <= base_offset:
        raise QuorumUsageError(f"end offset {end_offset} is not above log end {base_offset}")
    size = len(payload)
    if leader.uncommitted_bytes + size > core.config.uncommitted_bytes_max:
        raise QuorumUsageError(f"{leader.uncommitted_bytes} uncommitted bytes are the limit")
    leader.uncommitted.append((end_offset, size))
    leader.uncommitted_bytes += size
    effect = Append(base_offset, end_offset, core.epoch, payload, headers=headers)
    append(core, leader, effect)


def append(core: CoreState, leader: Leader, effect: Append) -> None:
    """Grow the leader's log, and answer or hasten the Fetches that wait for records.

    They are answered before the records are flushed here: a follower's disk may be faster than
    ours, and our own end counts only once it is durable.
    """
    core.log.append(effect.end_offset, effect.epochs, core.effect(effect))
    core.event(RecordsAppended(effect.base_offset, effect.end_offset, effect.epoch))
    serve_held(core, leader)


def serve_held(core: CoreState, leader: Leader) -> None:
    """Answer the held Fetches that are to be answered right after an append."""
    for fetch in take_first(core, leader):
        answer_held(core, leader, fetch)
