"""Two digests at a Fetch, and a request for digests: which are compared, counted and answered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorum.core.contract.events import DigestDiffers, DigestNotComparable
from quorum.core.integrity.chain_digests import is_same_history, on_chain_digest_request
from quorum.core.messages.chain_messages import (
    CHAIN_OFFSETS_MAX,
    ChainDigestRequest,
    ChainDigestResponse,
)
from quorum.core.messages.fetch_messages import FetchRequest, ReceivedFetchRequest
from quorum.core.protocol.refusals import OFFSET_MAX
from quorum.core.state.core_state import CoreState
from quorum.core.state.replica_progress import ReplicaProgress
from quorum.errors import ErrorCode
from quorum.types import EPOCH_MAX, Endpoint, ReplicaKey
from tests.support.bare_core import CLUSTER, EPOCH, LOG_END, core_of, follower, reported, sent
from tests.support.core_disk import key

COUNTED = 5
"""Fetches of each kind that were counted before."""


def counting() -> tuple[CoreState, ReplicaProgress]:
    core = core_of(follower())
    chain = core.chain
    chain.equal = chain.different = chain.too_early = chain.unknown = COUNTED
    return core, ReplicaProgress(key(2), is_voter=True, live_since_ms=0)


def fetch(offset: int, theirs: bytes, own: bytes) -> ReceivedFetchRequest:
    request = FetchRequest(7, CLUSTER, key(2), EPOCH, offset, EPOCH, digest=theirs)
    return ReceivedFetchRequest(request, is_proven=True, own_digest=own)


@pytest.mark.parametrize(
    ("offset", "theirs", "own", "counted"),
    [
        (LOG_END, b"x", b"x", "equal"),
        (LOG_END, b"x", b"y", "different"),
        (LOG_END, b"x", b"", "unknown"),
        (LOG_END, b"", b"y", "unknown"),
        (LOG_END, b"", b"", "unknown"),
        (LOG_END + 1, b"x", b"", "too_early"),
        (LOG_END + 1, b"", b"", "unknown"),
        (LOG_END + 1, b"x", b"x", "equal"),
        (LOG_END + 1, b"x", b"y", "different"),
    ],
)
def test_two_digests_are_compared_if_both_are_known(
    offset: int, theirs: bytes, own: bytes, counted: str
) -> None:
    core, progress = counting()
    assert is_same_history(core, progress, fetch(offset, theirs, own)) == (counted != "different")
    kinds = ("equal", "different", "too_early", "unknown")
    assert {kind: getattr(core.chain, kind) - COUNTED for kind in kinds} == {
        kind: int(kind == counted) for kind in kinds
    }
    assert progress.compared_end == (offset if counted == "equal" else -1)
    assert progress.is_incomparable == (counted == "unknown")
    events = {
        "different": [DigestDiffers(key(2), offset)],
        "unknown": [DigestNotComparable(key(2), offset)],
    }
    assert core.out.events == events.get(counted, [])


def test_that_digests_cannot_be_compared_is_reported_once() -> None:
    core, progress = counting()
    for _ in range(3):
        assert is_same_history(core, progress, fetch(3, b"", b"y"))
    assert core.chain.unknown == COUNTED + 3
    assert len(reported(core, DigestNotComparable)) == 1


ASKED = ChainDigestRequest(7, CLUSTER, key(3), EPOCH, (0, 9))


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, None),
        ({"cluster_id": ""}, None),
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"offsets": ()}, ErrorCode.INVALID_REQUEST),
        ({"offsets": (9,)}, None),
        ({"offsets": tuple(range(CHAIN_OFFSETS_MAX))}, None),
        ({"offsets": tuple(range(CHAIN_OFFSETS_MAX + 1))}, ErrorCode.INVALID_REQUEST),
        ({"offsets": (-1, 9)}, ErrorCode.INVALID_REQUEST),
        ({"offsets": (0, OFFSET_MAX)}, None),
        ({"offsets": (0, OFFSET_MAX + 1)}, ErrorCode.INVALID_REQUEST),
        ({"epoch": -1}, None),
        ({"epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"epoch": EPOCH_MAX}, None),
        ({"epoch": EPOCH_MAX + 1}, ErrorCode.INVALID_REQUEST),
        ({"replica": key(1)}, ErrorCode.INVALID_REQUEST),
        ({"replica": ReplicaKey(1, b"x" * 16)}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_digests_are_answered_to_a_request_within_the_limits(
    fields: dict[str, Any], error: ErrorCode | None
) -> None:
    core = core_of(follower())
    core.known_leader.endpoints = endpoints = (Endpoint("CONTROLLER", "h", 1),)
    request = replace(ASKED, **fields)
    on_chain_digest_request(core, 3, request)
    expected = ChainDigestResponse(7, error or ErrorCode.NONE, 2, EPOCH, leader_endpoints=endpoints)
    if error is None:
        expected = replace(expected, offsets=request.offsets, replica=key(1))
    assert sent(core, 3) == [expected]
