"""Comparison of log digests with each Fetch, and answers to digest requests.

The runtime adds this replica's digest to a message that carries one. This module decides whether
the two may be compared (the position must be valid by epoch) and what follows. A missing digest
proves nothing: it is counted and reported, and never counts as equal.

See: ADR 5.
"""

from __future__ import annotations

from quorum.core.contract.events import DigestDiffers, DigestNotComparable
from quorum.core.messages.chain_messages import (
    CHAIN_OFFSETS_MAX,
    ChainDigestRequest,
    ChainDigestResponse,
)
from quorum.core.messages.fetch_messages import ReceivedFetchRequest
from quorum.core.protocol.refusals import OFFSET_MAX, has_wrong_cluster, refuse
from quorum.core.state.core_state import CoreState
from quorum.core.state.replica_progress import ReplicaProgress
from quorum.errors import ErrorCode
from quorum.types import EPOCH_MAX, NodeId


def is_same_history(
    core: CoreState, progress: ReplicaProgress, received: ReceivedFetchRequest
) -> bool:
    """Whether the replica's log may be a prefix of ours, byte for byte.

    Called only for a position that is valid by epoch. False: the digests differ.
    """
    chain, request = core.chain, received.request
    theirs, own = request.digest, received.own_digest
    if theirs and own:
        if theirs != own:
            chain.different += 1
            core.event(DigestDiffers(request.replica, request.fetch_offset))
            return False
        chain.equal += 1
        progress.compared_end = request.fetch_offset
        return True
    if theirs and request.fetch_offset > core.log.flushed_end:
        chain.too_early += 1
        return True
    chain.unknown += 1
    if not progress.is_incomparable:
        progress.is_incomparable = True
        core.event(DigestNotComparable(request.replica, request.fetch_offset))
    return True


def on_chain_digest_request(core: CoreState, sender: NodeId, request: ChainDigestRequest) -> None:
    """Answer with this log's digests, in any role; the runtime fills them in."""
    if has_wrong_cluster(core, request.cluster_id):
        refuse(core, sender, request, ErrorCode.INCONSISTENT_CLUSTER_ID)
        return
    offsets = request.offsets
    if (
        not 0 < len(offsets) <= CHAIN_OFFSETS_MAX
        or not all(0 <= offset <= OFFSET_MAX for offset in offsets)
        or not -1 <= request.epoch <= EPOCH_MAX
        or request.replica.id == core.me.id
    ):
        refuse(core, sender, request, ErrorCode.INVALID_REQUEST)
        return
    core.send(
        sender,
        ChainDigestResponse(
            request.request_id,
            ErrorCode.NONE,
            core.leader_id,
            core.epoch,
            offsets,
            leader_endpoints=core.answering_endpoints(),
            replica=core.me,
        ),
    )
