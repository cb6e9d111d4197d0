"""Linearizable reads on a replica that does not lead: request a position from the leader.

A read waits here until the leader has confirmed an offset for it, by a round that began after the
read arrived. One request covers all reads that wait when it leaves; later ones wait for the next
request. A request is repeated after a change of leader or epoch, a refusal, or a timeout. A read
that has waited too long fails. An answer of an earlier epoch, or to an earlier request, is never
used.

If this node is elected meanwhile, it confirms the waiting reads itself.
See: ADR 9; Raft dissertation section 6.4 (read-only queries on followers).
"""

from __future__ import annotations

from quorum.core.contract.output import ReadConfirmed, ReadFailed
from quorum.core.contract.reasons import IgnoreReason
from quorum.core.messages.read_messages import ReadPositionRequest, ReadPositionResponse
from quorum.core.protocol.refusals import OFFSET_MAX, ignore
from quorum.core.protocol.requests import (
    answered,
    has_timed_out,
    is_to_be_sent,
    next_attempt,
    retry_later,
)
from quorum.core.protocol.responses import learn_from_response
from quorum.core.replication.read_confirmation import read_as_leader
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.core.state.roles import Follower, Leader
from quorum.core.state.timers import Timer
from quorum.core.state.waiting_reads import ForwardedRead
from quorum.errors import ErrorCode
from quorum.types import NodeId

PATIENCE_FETCH_TIMEOUTS = 2
"""A read fails after this many fetch timeouts, long enough for a change of leader."""


def ask_position(core: CoreState, token: int) -> None:
    """Find a position for a read from the present leader; fail it if too many wait."""
    waiting = core.forwarded
    role = core.role
    if isinstance(role, Leader) and role.established:
        read_as_leader(core, role, token)
    elif len(waiting) >= core.config.pending_reads_max:
        core.progress(ReadFailed(token))
    else:
        patience_ms = PATIENCE_FETCH_TIMEOUTS * core.config.fetch_timeout_ms
        waiting.add(ForwardedRead(token, core.now_ms + patience_ms))


def poll_reads(core: CoreState) -> None:
    """Fail reads that have waited too long; keep one request under way while reads wait."""
    waiting = core.forwarded
    if not waiting.reads:
        return
    request = waiting.request
    if has_timed_out(core, request):
        waiting.asked = 0
    for read in waiting.take_expired(core.now_ms):
        core.fired(Timer.READ_PATIENCE)
        core.progress(ReadFailed(read.token))
    if request.request_id and not waiting.asked:
        core.requests.close(request)
        request.due_ms = 0
    role = core.role
    if (
        not isinstance(role, Follower)
        or request.request_id
        or not waiting.reads
        or not is_to_be_sent(core, request)
    ):
        return
    waiting.ask(role.leader_id)
    core.send(
        role.leader_id,
        ReadPositionRequest(next_attempt(core, request), core.cluster_id, core.me, core.epoch),
    )


def reads_due_ms(core: CoreState) -> int:
    """Return when ``poll_reads`` has work to do next."""
    waiting = core.forwarded
    if not waiting.reads:
        return NEVER_MS
    due_ms, request = waiting.earliest_deadline_ms, waiting.request
    if request.request_id or isinstance(core.role, Follower):
        return min(due_ms, request.due_ms)
    return due_ms


def on_read_position_response(
    core: CoreState, sender: NodeId, response: ReadPositionResponse
) -> None:
    """Give the position to every read that the request covered."""
    request = answered(core, sender, response, Purpose.READ_POSITION)
    if request is None:
        return
    waiting = core.forwarded
    is_current = learn_from_response(core, sender, response)
    if not waiting.asked:
        # The answer had a newer epoch: the reads are asked again from that epoch's leader.
        return
    role = core.role
    if not is_current or response.error != ErrorCode.NONE:
        on_read_position_failed(core, request)
        return
    if (
        not isinstance(role, Follower)
        or response.leader_id != sender
        or not 0 <= response.read_offset <= OFFSET_MAX
    ):
        detail = f"position {response.read_offset}"
        ignore(core, sender, response, IgnoreReason.BAD_READ_POSITION, detail, is_violation=True)
        on_read_position_failed(core, request)
        return
    for read in waiting.answered():
        core.progress(ReadConfirmed(read.token, response.read_offset))


def on_read_position_failed(core: CoreState, request: PeerRequest) -> None:
    """Repeat an unanswered request after a back-off."""
    core.forwarded.asked = 0
    retry_later(core, request)


def adopt_reads(core: CoreState, leader: Leader) -> None:
    """Confirm the reads that waited for another leader, now that this node leads."""
    for read in core.forwarded.take_all():
        read_as_leader(core, leader, read.token)
