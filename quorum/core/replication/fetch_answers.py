"""Decide the answers to Fetch: records, a point of divergence, or a snapshot.

The core decides on positions; the runtime reads the bytes.
"""

from __future__ import annotations

from quorum.core.contract.events import FetchClassified
from quorum.core.contract.reasons import DivergenceReason
from quorum.core.integrity.divergence_resolution import start_divergence_resolution
from quorum.core.liveness import freshness
from quorum.core.messages.fetch_messages import (
    Diverging,
    FetchDecision,
    FetchRequest,
    OfferSnapshot,
    ServeRecords,
)
from quorum.core.messages.read_messages import NO_ROUND
from quorum.core.positions.fetch_classification import (
    Classification,
    NeedsSnapshot,
    classify_fetch,
)
from quorum.core.protocol.refusals import refuse
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import HeldFetch
from quorum.core.state.roles import Leader
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, NodeId, OffsetAndEpoch


def records_up_to(core: CoreState, request: FetchRequest, end_offset: int) -> ServeRecords | None:
    """Return the records from the request's offset up to ``end_offset``; None if there are none."""
    offset = request.fetch_offset
    if offset >= end_offset:
        return None
    bytes_max = max(1, min(request.max_bytes, core.config.fetch_bytes_max))
    return ServeRecords(offset, bytes_max, end_offset)


def answer_from_log(core: CoreState, leader: Leader, sender: NodeId, request: FetchRequest) -> None:
    """Answer with the records behind a position that is a prefix of this log.

    A replica that has no read round of this leader has no answer of it yet, even if this leader has
    sent it one: it may have restarted. It learns where clients reach the leader.
    """
    is_consumer = request.replica.id == NO_NODE
    is_new = not is_consumer and request.read_round.number == NO_ROUND.number
    core.send(
        sender,
        FetchDecision(
            request.request_id,
            records_up_to(
                core, request, core.high_watermark if is_consumer else core.log.end_offset
            ),
            core.me.id,
            core.epoch,
            core.high_watermark,
            core.log.start.offset,
            leader.reads.stamp,
            core.answering_endpoints() if is_new else (),
            freshness.leader_age_ms(core, leader),
        ),
    )


def answer_held(core: CoreState, leader: Leader, fetch: HeldFetch) -> None:
    """Answer a held Fetch, evaluated on arrival, from the present log.

    While a replica below the log end was held, the log may have been trimmed beyond its offset.
    """
    request = fetch.request
    if request.fetch_offset >= core.log.start.offset:
        answer_from_log(core, leader, fetch.sender, request)
        return
    classification = classify_fetch(
        core.log, core.snapshots.latest, request.fetch_offset, request.last_fetched_epoch
    )
    answer_elsewhere(core, leader, fetch.sender, request, classification)


def answer_elsewhere(
    core: CoreState,
    leader: Leader,
    sender: NodeId,
    request: FetchRequest,
    classification: Classification,
) -> None:
    """Answer with the point of divergence, or with the snapshot to download."""
    place = place_elsewhere(core, sender, request, classification)
    if place is None:
        return
    core.send(
        sender,
        FetchDecision(
            request.request_id,
            place,
            core.me.id,
            core.epoch,
            core.high_watermark,
            core.log.start.offset,
            leader.reads.stamp,
            core.answering_endpoints(),
        ),
    )


def refuse_other_history(
    core: CoreState, sender: NodeId, request: FetchRequest, *, peer_votes: bool
) -> None:
    """Refuse a replica whose digest differs from ours, and resolve the divergence."""
    refuse(core, sender, request, ErrorCode.DIGEST_MISMATCH)
    start_divergence_resolution(
        core,
        sender,
        request.fetch_offset,
        DivergenceReason.OTHER_DIGEST,
        peer_votes=peer_votes,
    )


def place_elsewhere(
    core: CoreState, sender: NodeId, request: FetchRequest, classification: Classification
) -> Diverging | OfferSnapshot | None:
    """Return where a replica must continue whose log is no prefix of ours; as leader and as relay.

    Reports the classification. If there is no such place, refuses the request and returns None.
    """
    place: Diverging | OfferSnapshot | None = None
    where: OffsetAndEpoch | None = None
    match classification:
        case Diverging(point=where):
            place = classification
        case NeedsSnapshot(snapshot_id=where) if where is not None:
            place = OfferSnapshot(where)
    core.event(
        FetchClassified(
            request.replica,
            request.fetch_offset,
            request.last_fetched_epoch,
            "diverging" if isinstance(place, Diverging) else "snapshot",
            str(where),
        )
    )
    if place is None:
        refuse(core, sender, request, ErrorCode.SNAPSHOT_NOT_FOUND)
    return place
