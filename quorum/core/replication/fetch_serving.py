"""The leader's side of replication: evaluate a Fetch, answer or hold it, and advance commits.

A Fetch is both a request and an acknowledgement: the replica has all records below its offset on
disk. It gets one of three answers: records, the point where the logs diverge, or a snapshot to
download first. Without an answer it is held.

See: KIP-595 (Fetch), KIP-630 (snapshot answer), KIP-279 (lineage); Raft section 5.4.2.
"""

from __future__ import annotations

from quorum.core.contract.events import ReplicaRegressed
from quorum.core.integrity.chain_digests import is_same_history
from quorum.core.messages.fetch_messages import Diverging, FetchRequest, ReceivedFetchRequest
from quorum.core.positions.fetch_classification import SERVE, classify_fetch
from quorum.core.protocol.refusals import (
    OFFSET_MAX,
    has_wrong_cluster,
    refusal_of_leader_request,
    refuse,
)
from quorum.core.replication.commitment import advance_high_watermark
from quorum.core.replication.fetch_answers import (
    answer_elsewhere,
    answer_from_log,
    answer_held,
    refuse_other_history,
)
from quorum.core.replication.read_confirmation import note_echo
from quorum.core.replication.serving_order import may_gather
from quorum.core.replication.stranded_observers import note_ahead
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import HeldFetch
from quorum.core.state.replica_progress import ReplicaProgress
from quorum.core.state.replica_table import note_contact, progress_for
from quorum.core.state.roles import Leader
from quorum.core.state.timers import Timer
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, NodeId


def on_fetch(core: CoreState, sender: NodeId, received: ReceivedFetchRequest) -> None:
    """Evaluate a Fetch, count its acknowledgement, and answer or hold it."""
    leader, request = core.role, received.request
    error = refusal_of_fetch(
        core, request, serves=isinstance(leader, Leader) and leader.established
    )
    is_ahead = error is ErrorCode.UNKNOWN_LEADER_EPOCH
    if is_ahead and isinstance(leader, Leader) and leader.established:
        note_ahead(core, leader, received)
    if error is not None or not isinstance(leader, Leader):
        refuse(core, sender, request, error or ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return
    if request.replica.id == NO_NODE:
        _answer_consumer(core, leader, sender, request)
        return
    progress = progress_for(core, leader, request.replica, is_disqualified=request.is_disqualified)
    if _went_back(core, progress, received):
        refuse(core, sender, request, ErrorCode.REPLICA_REGRESSED)
        return
    if request.subtree is not progress.subtree:
        progress.note_subtree(request.subtree)
    if request.supported:
        progress.note_supported(request.supported, now_ms=core.now_ms)
    is_first = progress.last_fetch_ms < 0
    note_contact(core, leader, progress)
    classification = classify_fetch(
        core.log, core.snapshots.latest, request.fetch_offset, request.last_fetched_epoch
    )
    if classification is not SERVE:
        note_echo(core, leader, progress, request.read_round)
        answer_elsewhere(core, leader, sender, request, classification)
        return
    if not is_same_history(core, progress, received):
        refuse_other_history(core, sender, request, peer_votes=progress.is_voter)
        return
    progress.note_fetch(
        request.fetch_offset,
        now_ms=core.now_ms,
        leader_end=core.log.end_offset,
        is_proven=received.is_proven,
    )
    if progress.is_voter and request.fetch_offset > core.high_watermark:
        advance_high_watermark(core, leader)
    note_echo(core, leader, progress, request.read_round)
    stamp = leader.reads.stamp
    # A replica that lacks only the high watermark waits for the next records, or for its delay.
    lacks_watermark = (
        request.high_watermark < core.high_watermark and not core.config.high_watermark_delay_ms
    )
    may_wait = request.fetch_offset >= core.log.end_offset or (
        not is_first and may_gather(core, leader, request)
    )
    if (
        not may_wait
        or request.max_wait_ms == 0
        or lacks_watermark
        or (progress.is_voter and leader.reads.current and request.read_round != stamp)
    ):
        answer_from_log(core, leader, sender, request)
    else:
        _hold(core, leader, sender, request, is_voter=progress.is_voter)


def _went_back(core: CoreState, progress: ReplicaProgress, received: ReceivedFetchRequest) -> bool:
    """Whether a voter's disk was rolled back: it fetches below what it acknowledged in this term.

    A late copy of an old request looks the same, but no request waits for its answer. A replica
    that knows of its loss reports it and has a vote floor, so it is not disqualified. The
    disqualification is final (ADR 28). Therefore only proven acknowledgements of the voter count:
    any process may have sent an unproven request (ADR 52).
    """
    request = received.request
    offset = request.fetch_offset
    if offset >= max(progress.end_offset, progress.proven_end):
        return False
    if not request.has_lost_records:
        core.event(ReplicaRegressed(progress.key, progress.end_offset, offset))
        if progress.is_voter and offset < progress.proven_end:
            return True
    # The replica no longer has the records it acknowledged.
    progress.end_offset = -1
    if received.is_proven:
        progress.proven_end = -1
    return False


def refusal_of_fetch(core: CoreState, request: FetchRequest, *, serves: bool) -> ErrorCode | None:
    """Return what is invalid about a Fetch, its epoch, or its receiver (``serves``)."""
    if has_wrong_cluster(core, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    is_consumer = request.replica.id == NO_NODE
    skips_epoch = is_consumer and request.epoch == -1
    if (
        request.max_wait_ms < 0
        or request.max_bytes < 0
        or not 0 <= request.fetch_offset <= OFFSET_MAX
        or request.last_fetched_epoch < (-1 if is_consumer else 0)
        or (request.last_fetched_epoch > request.epoch and not skips_epoch)
        or request.replica.id < NO_NODE
        or request.replica.id == core.me.id
        or (request.subtree is not None and min(request.subtree.low, request.subtree.members) < 0)
    ):
        return ErrorCode.INVALID_REQUEST
    epoch = core.epoch if skips_epoch else request.epoch
    return refusal_of_leader_request(core, epoch, leads=serves)


def answer_due(core: CoreState, leader: Leader) -> None:
    """Answer the held Fetches whose wait is over from the present log."""
    for fetch in leader.held.take_due(core.now_ms):
        core.fired(_timer_of(core, fetch))
        answer_held(core, leader, fetch)


def _timer_of(core: CoreState, fetch: HeldFetch) -> Timer:
    if fetch.is_consumer:
        return Timer.HELD_FETCH
    if fetch.request.fetch_offset < core.log.end_offset:
        return Timer.APPEND_DELAY
    is_behind = fetch.request.high_watermark < core.high_watermark
    return Timer.WATERMARK_DELAY if is_behind else Timer.HELD_FETCH


def _hold(
    core: CoreState, leader: Leader, sender: NodeId, request: FetchRequest, *, is_voter: bool
) -> None:
    """Hold a Fetch; if too many are held already, answer it without records at once.

    A voter always gets a place: many observers must not turn the quorum's own Fetches into a
    busy loop.
    """
    if not is_voter and len(leader.held) >= core.config.held_fetches_max:
        answer_from_log(core, leader, sender, request)
        return
    wait_ms = min(request.max_wait_ms, core.config.fetch_max_wait_ms)
    is_consumer = request.replica.id == NO_NODE
    if not is_consumer:
        if request.fetch_offset < core.log.end_offset:
            wait_ms = min(wait_ms, core.config.append_delay_ms)
        if request.high_watermark < core.high_watermark:
            wait_ms = min(wait_ms, core.config.high_watermark_delay_ms)
    held = HeldFetch(sender, request, core.now_ms + wait_ms, is_voter, is_consumer)
    for displaced in leader.held.hold(held):
        answer_held(core, leader, displaced)


def _answer_consumer(
    core: CoreState, leader: Leader, sender: NodeId, request: FetchRequest
) -> None:
    """Serve a plain consumer: committed records only, and without tracking (320.1, 320.5)."""
    log = core.log
    offset = request.fetch_offset
    if not log.start.offset <= offset <= log.end_offset:
        refuse(core, sender, request, ErrorCode.OFFSET_OUT_OF_RANGE)
        return
    if request.last_fetched_epoch >= 0 and offset > log.start.offset:
        classification = classify_fetch(log, None, offset, request.last_fetched_epoch)
        if isinstance(classification, Diverging):
            answer_elsewhere(core, leader, sender, request, classification)
            return
    if offset < core.high_watermark or request.max_wait_ms == 0:
        answer_from_log(core, leader, sender, request)
    else:
        _hold(core, leader, sender, request, is_voter=False)
