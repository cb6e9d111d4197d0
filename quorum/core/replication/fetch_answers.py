"""Building the answers to Fetch: records from here, a point of divergence, or a snapshot.

The core names positions (``serve_offset``, ``serve_bytes_max``, ``serve_end_offset``); the
runtime reads the bytes.
"""

from __future__ import annotations

from quorum.core.contract.events import FetchClassified
from quorum.core.liveness import freshness
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.positions.fetch_classification import (
    Diverging,
    FetchAnswer,
    NeedsSnapshot,
    classify_fetch,
)
from quorum.core.protocol.refusals import refuse
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import HeldFetch
from quorum.core.state.roles import Leader
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, NodeId, OffsetAndEpoch, SnapshotId
from quorum.values import value


@value
class Elsewhere:
    """Where a replica goes on instead of at its own log end: exactly one of the two is set."""

    diverging: OffsetAndEpoch | None
    snapshot_id: SnapshotId | None


def answer_from_log(
    core: CoreState,
    leader: Leader,
    sender: NodeId,
    request: FetchRequest,
    *,
    with_endpoints: bool = False,
) -> None:
    """Answer a position known to be a prefix of ours with whatever there is beyond it."""
    log = core.log
    offset = request.fetch_offset
    is_consumer = request.replica.id == NO_NODE
    end = core.high_watermark if is_consumer else log.end_offset
    bytes_max = 0
    if offset < end:
        bytes_max = max(1, min(request.max_bytes, core.config.fetch_bytes_max))
    core.send(
        sender,
        FetchResponse(
            request.request_id,
            ErrorCode.NONE,
            core.me.id,
            core.epoch,
            core.high_watermark,
            log.start.offset,
            None,
            None,
            offset if bytes_max else -1,
            bytes_max,
            end if bytes_max else -1,
            b"",
            None,
            leader.reads.stamp,
            core.answering_endpoints() if with_endpoints else (),
            freshness.leader_age_ms(core, leader),
        ),
    )


def answer_held(core: CoreState, leader: Leader, fetch: HeldFetch) -> None:
    """Answer a Fetch that was evaluated when it came, with what is true now.

    A replica below the log end may have been held, and the log trimmed beyond it meanwhile.
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
    classification: FetchAnswer,
) -> None:
    """Answer with the point of divergence, or with the snapshot to fetch."""
    place = place_elsewhere(core, sender, request, classification)
    if place is None:
        return
    core.send(
        sender,
        FetchResponse(
            request.request_id,
            ErrorCode.NONE,
            core.me.id,
            core.epoch,
            core.high_watermark,
            core.log.start.offset,
            diverging=place.diverging,
            snapshot_id=place.snapshot_id,
            read_round=leader.reads.stamp,
            leader_endpoints=core.answering_endpoints(),
        ),
    )


def place_elsewhere(
    core: CoreState, sender: NodeId, request: FetchRequest, classification: FetchAnswer
) -> Elsewhere | None:
    """Where a replica has to go on whose log is no prefix of ours; leader and relay say the same.

    Reports the verdict. None when there is no such place: the request is refused then.
    """
    place = Elsewhere(
        classification.point if isinstance(classification, Diverging) else None,
        classification.snapshot_id if isinstance(classification, NeedsSnapshot) else None,
    )
    core.event(
        FetchClassified(
            request.replica,
            request.fetch_offset,
            request.last_fetched_epoch,
            "diverging" if place.diverging is not None else "snapshot",
            str(place.diverging or place.snapshot_id),
        )
    )
    if place.diverging is None and place.snapshot_id is None:
        refuse(core, sender, request, ErrorCode.SNAPSHOT_NOT_FOUND)
        return None
    return place
