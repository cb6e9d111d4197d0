"""Which Fetch or FetchSnapshot a leader refuses, at each field's limits; whose echoes count."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorum.core.messages.fetch_messages import FetchRequest, ReceivedFetchRequest, Subtree
from quorum.core.messages.read_messages import ReadRound
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest
from quorum.core.protocol.refusals import OFFSET_MAX
from quorum.core.replication.fetch_serving import on_fetch, refusal_of_fetch
from quorum.core.replication.snapshot_serving import refusal_of_fetch_snapshot
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, OffsetAndEpoch, ReplicaKey
from tests.support.bare_core import CLUSTER, EPOCH, LOG_END, core_of, follower, leading
from tests.support.core_disk import key

REQUEST = FetchRequest(7, CLUSTER, key(2), EPOCH, LOG_END, EPOCH)
SNAPSHOT = OffsetAndEpoch(30, EPOCH)
CHUNK = FetchSnapshotRequest(7, CLUSTER, key(2), EPOCH, SNAPSHOT, 0, 100)
CONSUMER = replace(REQUEST, replica=ReplicaKey(NO_NODE))
INVALID = ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("request_", "fields", "error"),
    [
        (REQUEST, {}, None),
        (REQUEST, {"cluster_id": ""}, None),
        (REQUEST, {"cluster_id": "x", "max_bytes": -1}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        (REQUEST, {"max_wait_ms": 0}, None),
        (REQUEST, {"max_wait_ms": -1}, INVALID),
        (REQUEST, {"max_bytes": 0}, None),
        (REQUEST, {"max_bytes": 1}, None),
        (REQUEST, {"max_bytes": -1}, INVALID),
        (REQUEST, {"fetch_offset": 0}, None),
        (REQUEST, {"fetch_offset": -1}, INVALID),
        (REQUEST, {"fetch_offset": OFFSET_MAX}, None),
        (REQUEST, {"fetch_offset": OFFSET_MAX + 1}, INVALID),
        (REQUEST, {"last_fetched_epoch": 0}, None),
        (REQUEST, {"last_fetched_epoch": -1}, INVALID),
        (REQUEST, {"last_fetched_epoch": EPOCH + 1}, INVALID),
        (REQUEST, {"replica": ReplicaKey(0)}, None),
        (REQUEST, {"replica": ReplicaKey(NO_NODE - 1)}, INVALID),
        (REQUEST, {"replica": ReplicaKey(1, b"x" * 16)}, INVALID),
        (REQUEST, {"subtree": Subtree(0, 0)}, None),
        (REQUEST, {"subtree": Subtree(-1, 0)}, INVALID),
        (REQUEST, {"subtree": Subtree(0, -1)}, INVALID),
        (REQUEST, {"epoch": EPOCH - 1, "last_fetched_epoch": 1}, ErrorCode.FENCED_LEADER_EPOCH),
        (REQUEST, {"epoch": EPOCH + 1}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (REQUEST, {"epoch": -1, "last_fetched_epoch": 0}, INVALID),
        (CONSUMER, {}, None),
        (CONSUMER, {"last_fetched_epoch": -1}, None),
        (CONSUMER, {"last_fetched_epoch": -2}, INVALID),
        (CONSUMER, {"last_fetched_epoch": EPOCH + 1}, INVALID),
        (CONSUMER, {"epoch": -1, "last_fetched_epoch": EPOCH + 9}, None),
        (CONSUMER, {"epoch": 0, "last_fetched_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
    ],
)
def test_a_fetch_within_the_limits_is_served_by_a_leader_alone(
    request_: FetchRequest, fields: dict[str, Any], error: ErrorCode | None
) -> None:
    core = core_of(follower())
    request = replace(request_, **fields)
    assert refusal_of_fetch(core, request, serves=True) == error
    not_leading = error or ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refusal_of_fetch(core, request, serves=False) == not_leading


@pytest.mark.parametrize(
    ("fields", "is_served"),
    [
        ({}, True),
        # Both of these do not fit the leader's log by their epoch or by their offset.
        ({"last_fetched_epoch": EPOCH - 1}, False),
        ({"fetch_offset": LOG_END + 1}, False),
    ],
)
@pytest.mark.parametrize(
    ("node_id", "echo", "counts"),
    [
        (2, ReadRound(EPOCH, 1), True),
        (2, ReadRound(EPOCH, 0), False),
        (2, ReadRound(EPOCH, 2), False),
        (2, ReadRound(EPOCH - 1, 1), False),
        (9, ReadRound(EPOCH, 1), False),
    ],
)
def test_a_voters_echo_counts_whatever_its_position(
    fields: dict[str, Any], is_served: bool, node_id: int, echo: ReadRound, counts: bool
) -> None:
    core, leader = leading((1, 2, 3, 4, 5))
    request = replace(REQUEST, replica=key(node_id), read_round=echo, **fields)
    on_fetch(core, node_id, ReceivedFetchRequest(request, is_proven=True))
    progress = leader.remote.get(node_id) or leader.observers[key(node_id)]
    assert progress.read_round == (1 if counts else 0)
    assert (progress.end_offset == LOG_END) == is_served


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, None),
        ({"max_bytes": 1}, None),
        ({"max_bytes": 0}, ErrorCode.INVALID_REQUEST),
        ({"replica": ReplicaKey(0)}, None),
        ({"replica": ReplicaKey(NO_NODE)}, None),
        ({"replica": ReplicaKey(NO_NODE - 1)}, ErrorCode.INVALID_REQUEST),
        ({"replica": ReplicaKey(1, b"x" * 16)}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_which_request_for_a_chunk_is_refused(
    fields: dict[str, Any], error: ErrorCode | None
) -> None:
    core, _ = leading()
    core.snapshots.add(SNAPSHOT, 500, now_ms=0)
    assert refusal_of_fetch_snapshot(core, replace(CHUNK, **fields), serves=True) == error
