"""The relay's side of Fetch and FetchSnapshot: serving committed records to observers.

A relay is an observer with a flag. It follows the leader like any other observer. To its own
observers it serves only the log below its high watermark, so they never have to truncate. It
answers only in an epoch whose leader has answered it, and for at most ``relay_age_max_ms`` after
that leader was known to lead. ``node/routing.py`` sends requests here while ``serves_as_relay``;
otherwise to ``fetch_serving`` and ``snapshot_serving``.

See: KIP-595 (Fetch), KIP-630 (630.5, 630.10); ADR 27.
"""

from __future__ import annotations

from quorum.core.integrity.chain_digests import is_same_history
from quorum.core.messages.fetch_messages import (
    Diverging,
    FetchDecision,
    FetchRequest,
    OfferSnapshot,
    ReceivedFetchRequest,
    ServeRecords,
)
from quorum.core.messages.read_messages import NO_ROUND
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest
from quorum.core.positions.fetch_classification import SERVE, Classification, classify_fetch
from quorum.core.protocol.refusals import refusal_of_leader_request, refuse
from quorum.core.replication import fetch_serving, snapshot_serving
from quorum.core.replication.fetch_answers import (
    place_elsewhere,
    records_up_to,
    refuse_other_history,
)
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import HeldFetch
from quorum.core.state.relay_table import Relay
from quorum.core.state.replica_progress import ReplicaProgress
from quorum.core.state.roles import Follower, Leader
from quorum.core.state.timers import Timer
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, NodeId, OffsetAndEpoch, ReplicaKey

_UPKEEP_MS = 1000


def serves_as_relay(core: CoreState) -> bool:
    """Whether this module handles Fetch and FetchSnapshot of a node that has a ``core.relay``.

    A relay that has become a voter or leads does not serve as a relay.
    """
    return not core.is_voter and not isinstance(core.role, Leader)


def on_fetch(core: CoreState, relay: Relay, sender: NodeId, received: ReceivedFetchRequest) -> None:
    """Answer an observer below this relay."""
    request = received.request
    error = fetch_serving.refusal_of_fetch(core, request, serves=is_serving(core))
    progress = _admitted(core, relay, sender, request, error)
    if progress is None:
        return
    progress.note_subtree(request.subtree)
    if request.fetch_offset <= core.high_watermark:
        progress.note_fetch(
            request.fetch_offset, now_ms=core.now_ms, leader_end=core.high_watermark
        )
    else:
        progress.last_fetch_ms = core.now_ms
    relay.note(progress)
    if not _may_be_prefix(core, progress, received):
        # The observer asks the leader next, and this relay compares its digest upstream. Here the
        # resolution only verifies that this relay's files are intact.
        refuse_other_history(core, sender, request, peer_votes=False)
        return
    _evaluate(
        core,
        relay,
        sender,
        request,
        core.now_ms + min(request.max_wait_ms, core.config.fetch_max_wait_ms),
    )


def _admitted(
    core: CoreState,
    relay: Relay,
    sender: NodeId,
    request: FetchRequest | FetchSnapshotRequest,
    error: ErrorCode | None,
) -> ReplicaProgress | None:
    """Record the contact and return the observer's progress; None if the request was refused."""
    if _is_refused(core, relay, sender, request, error):
        return None
    progress = relay.downstream.get(request.replica)
    if progress is None:
        progress = relay.downstream[request.replica] = ReplicaProgress(
            request.replica, is_voter=False, live_since_ms=core.now_ms
        )
    progress.live_since_ms = core.now_ms
    return progress


def _is_refused(
    core: CoreState,
    relay: Relay,
    sender: NodeId,
    request: FetchRequest | FetchSnapshotRequest,
    error: ErrorCode | None,
) -> bool:
    """Whether the request was refused: for ``error``, or because of the replica that asks."""
    error = error or _refusal_of_replica(core, relay, request.replica)
    if error is not None:
        refuse(core, sender, request, error)
    return error is not None


def _may_be_prefix(
    core: CoreState, progress: ReplicaProgress, received: ReceivedFetchRequest
) -> bool:
    """Whether the observer's log may be a prefix of the committed log here.

    Digests are compared only if the position is valid by epoch and not above the high watermark.
    """
    request = received.request
    offset = request.fetch_offset
    return (
        offset > core.high_watermark
        or classify_committed(core, offset, request.last_fetched_epoch) is not SERVE
        or is_same_history(core, progress, received)
    )


def is_serving(core: CoreState) -> bool:
    """Whether this relay may answer: its leader has answered it in this epoch, and recently.

    While a snapshot replaces its log, it has nothing to serve.
    """
    role, following = core.role, core.following
    return (
        isinstance(role, Follower)
        and role.has_fetched
        and not following.is_replacing_log
        and following.upstream.epoch == core.epoch
        and not _is_out_of_age(core)
    )


def _is_out_of_age(core: CoreState) -> bool:
    """Whether the last proof that the leader led is older than ``relay_age_max_ms``."""
    return core.now_ms - core.following.upstream.confirmed_ms > core.config.relay_age_max_ms


def _refusal_of_replica(core: CoreState, relay: Relay, key: ReplicaKey) -> ErrorCode | None:
    """Return why this replica is not served here; None if it is.

    Voters fetch from the leader only. A replica on this relay's own route would form a loop. The
    number of relays in a chain is bounded.
    """
    if key.id == NO_NODE:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    path = core.following.upstream.path
    if (
        core.voters.latest.contains(key)
        or any(each.matches(key) for each in path)
        or len(path) >= core.config.relay_hops_max
    ):
        return ErrorCode.INELIGIBLE_REPLICA
    if key not in relay.downstream and len(relay.downstream) >= core.config.observers_max:
        return ErrorCode.RESOURCE_EXHAUSTED
    return None


def _evaluate(
    core: CoreState, relay: Relay, sender: NodeId, request: FetchRequest, deadline_ms: int
) -> None:
    """Answer a Fetch of this epoch from the present log, or hold it until ``deadline_ms``."""
    offset, committed = request.fetch_offset, core.high_watermark
    is_due = core.now_ms >= deadline_ms or len(relay.held) >= core.config.held_fetches_max
    if offset > committed:
        # The observer fetched from the leader before. Its records above will soon be here too.
        if is_due:
            refuse(core, sender, request, ErrorCode.OFFSET_NOT_AVAILABLE)
        else:
            _hold(core, relay, HeldFetch(sender, request, deadline_ms, is_voter=False))
        return
    classification = classify_committed(core, offset, request.last_fetched_epoch)
    if classification is not SERVE:
        place = place_elsewhere(core, sender, request, classification)
        if place is not None:
            _answer(core, sender, request, place)
    elif offset < committed or request.high_watermark < committed or is_due:
        _answer(core, sender, request, records_up_to(core, request, committed))
    else:
        _hold(core, relay, HeldFetch(sender, request, deadline_ms, is_voter=False))


def _hold(core: CoreState, relay: Relay, fetch: HeldFetch) -> None:
    for displaced in relay.held.hold(fetch):
        _evaluate(core, relay, displaced.sender, displaced.request, core.now_ms)


def classify_committed(core: CoreState, offset: int, last_fetched_epoch: int) -> Classification:
    """Return ``classify_fetch`` for the committed part of the log, for ``offset`` within it.

    A point of divergence is never above the high watermark, since records there may be truncated.
    """
    log, committed = core.log, core.high_watermark
    latest = core.snapshots.latest
    classification = classify_fetch(log, latest, offset, last_fetched_epoch)
    if (
        classification is SERVE
        and offset > 0
        and log.epochs.epoch_before(offset) != last_fetched_epoch
    ):
        # Only a damaged or foreign log has another record below our high watermark.
        known = log.end_offset_for_epoch(last_fetched_epoch - 1)
        classification = Diverging(known or OffsetAndEpoch(log.start.offset, log.start.epoch))
    if isinstance(classification, Diverging) and classification.point.offset > committed:
        return Diverging(OffsetAndEpoch(committed, log.epochs.epoch_before(committed)))
    return classification


def path_of(core: CoreState) -> tuple[ReplicaKey, ...]:
    """Return the relays on the route of this relay's answers: itself first."""
    return (core.me, *core.following.upstream.path)


def _answer(
    core: CoreState,
    sender: NodeId,
    request: FetchRequest,
    content: ServeRecords | Diverging | OfferSnapshot | None,
) -> None:
    # All records acknowledged before this time are below our high watermark, so it is passed on.
    as_of_ms = core.freshness.as_of_ms
    leader_age_ms = core.now_ms - as_of_ms if as_of_ms >= 0 else -1
    core.send(
        sender,
        FetchDecision(
            request.request_id,
            content,
            core.leader_id,
            core.epoch,
            core.high_watermark,
            core.log.start.offset,
            leader_endpoints=core.answering_endpoints(),
            leader_age_ms=leader_age_ms,
            path=path_of(core),
            contact_age_ms=max(0, core.now_ms - core.following.upstream.confirmed_ms),
        ),
    )


def on_fetch_snapshot(
    core: CoreState, relay: Relay, sender: NodeId, request: FetchSnapshotRequest
) -> None:
    """Serve a chunk of this relay's own checkpoint: equal ids mean equal bytes."""
    error = snapshot_serving.refusal_of_fetch_snapshot(core, request, serves=is_serving(core))
    progress = _admitted(core, relay, sender, request, error)
    if progress is None:
        return
    progress.download_end = request.snapshot_id.offset
    relay.note(progress)
    core.send(sender, snapshot_serving.chunk_for(core, request, NO_ROUND))


def poll_relay(core: CoreState, relay: Relay) -> None:
    """Answer the held Fetches that the high watermark, time or a change of epoch allows."""
    held = relay.held
    if len(held):
        if core.is_voter or not is_serving(core):
            if _is_out_of_age(core):
                core.fired(Timer.RELAY_AGE)
            for fetch in held.take_all():
                error = refusal_of_leader_request(core, fetch.request.epoch, leads=False)
                refuse(core, fetch.sender, fetch.request, error or ErrorCode.NOT_LEADER_OR_FOLLOWER)
        else:
            _answer_held(core, relay)
    if core.now_ms >= relay.upkeep_due_ms:
        if relay.downstream and relay.upkeep_due_ms:
            core.fired(Timer.RELAY_UPKEEP)
        if relay.forget_silent(core.now_ms - core.config.observer_session_ms):
            core.fired(Timer.OBSERVER_SESSION)
        relay.refresh()
        relay.upkeep_due_ms = core.now_ms + _UPKEEP_MS


def _answer_held(core: CoreState, relay: Relay) -> None:
    held = relay.held
    if core.high_watermark > relay.answered_to:
        relay.answered_to = core.high_watermark
        for fetch in held.take_up_to(core.high_watermark):
            _evaluate_held(core, relay, fetch, fetch.deadline_ms)
    if core.now_ms >= held.earliest_ms:
        for fetch in held.take_due(core.now_ms):
            core.fired(Timer.RELAY_HELD_FETCH)
            _evaluate_held(core, relay, fetch, core.now_ms)


def _evaluate_held(core: CoreState, relay: Relay, fetch: HeldFetch, deadline_ms: int) -> None:
    """Evaluate a held Fetch again: this relay may now fetch through the requesting replica."""
    if not _is_refused(core, relay, fetch.sender, fetch.request, None):
        _evaluate(core, relay, fetch.sender, fetch.request, deadline_ms)


def relay_deadline(core: CoreState, relay: Relay) -> int:
    """Return when a relay has work to do: a held Fetch is due, or it must stop serving."""
    earliest = relay.held.earliest_ms
    if len(relay.held):
        confirmed_ms = core.following.upstream.confirmed_ms
        earliest = min(earliest, confirmed_ms + core.config.relay_age_max_ms + 1)
    return min(earliest, relay.upkeep_due_ms) if relay.subtree is not None else earliest
