"""Allowed responses fit a message between peers; one that does not fit is reported."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from quorum.config import ANSWERS_BYTES_MAX, PAYLOAD_BYTES_MAX, RELAY_HOPS_MAX, QuorumConfig
from quorum.core.messages.fetch_messages import FetchResponse
from quorum.core.messages.read_messages import ReadRound
from quorum.core.messages.snapshot_messages import FetchSnapshotResponse
from quorum.errors import ErrorCode
from quorum.transport.framing import encode_frame
from quorum.transport.limits import (
    DIGEST_BYTES_MAX,
    ENDPOINTS_MAX,
    HEADER_BYTES_MAX,
    HOST_BYTES_MAX,
    MESSAGE_BYTES_MAX,
    OUTBOX_BYTES_MAX,
)
from quorum.types import Endpoint, OffsetAndEpoch, ReplicaKey
from tests.support.peer_harness import answer_to, fetch, replica, run

pytestmark = pytest.mark.usefixtures("carrier")

ENDPOINTS = (Endpoint("n" * 255, "h" * HOST_BYTES_MAX, 65535),) * ENDPOINTS_MAX
SNAPSHOT = OffsetAndEpoch(1 << 62, 1 << 30)
ROUND = ReadRound(1 << 30, 1 << 62)


def largest_fetch_answer() -> FetchResponse:
    """The largest response of a leader and its relays, apart from the records."""
    return FetchResponse(
        1,
        ErrorCode.NONE,
        leader_id=1 << 30,
        epoch=1 << 30,
        records=bytes(PAYLOAD_BYTES_MAX),
        read_round=ROUND,
        leader_endpoints=ENDPOINTS,
        leader_age_ms=1 << 40,
        path=(ReplicaKey(1 << 30, bytes(16)),) * RELAY_HOPS_MAX,
        contact_age_ms=1 << 40,
    )


def largest_slice() -> FetchSnapshotResponse:
    """The largest response of a leader, apart from the chunk."""
    return FetchSnapshotResponse(
        1,
        ErrorCode.NONE,
        1 << 30,
        1 << 30,
        SNAPSHOT,
        chunk=bytes(PAYLOAD_BYTES_MAX),
        file_digest=bytes(DIGEST_BYTES_MAX),
        read_round=ROUND,
        leader_endpoints=ENDPOINTS,
    )


@pytest.mark.parametrize("largest", [largest_fetch_answer, largest_slice])
def test_the_largest_answers_fit_a_message(largest) -> None:
    size = len(encode_frame(largest()))
    assert PAYLOAD_BYTES_MAX < size <= MESSAGE_BYTES_MAX
    assert size - PAYLOAD_BYTES_MAX <= HEADER_BYTES_MAX


def test_checkpoint_slices_under_way_leave_room_in_a_queue_for_a_fetch_answer() -> None:
    assert ANSWERS_BYTES_MAX + MESSAGE_BYTES_MAX <= OUTBOX_BYTES_MAX


@pytest.mark.parametrize("name", ["fetch_bytes_max", "snapshot_chunk_bytes"])
def test_sizes_that_fit_no_message_are_refused_by_name(name: str) -> None:
    assert replace(QuorumConfig(), **{name: PAYLOAD_BYTES_MAX}).problems() == []
    (problem,) = replace(QuorumConfig(), **{name: PAYLOAD_BYTES_MAX + 1}).problems()
    assert problem.startswith(f"{name} must be at most {PAYLOAD_BYTES_MAX}, ")


def test_slices_together_are_bounded_as_well() -> None:
    config = QuorumConfig(snapshot_chunk_bytes=12 << 20, snapshot_requests_max=4)
    assert config.problems() == []
    (problem,) = replace(config, snapshot_requests_max=5).problems()
    assert problem.startswith("snapshot_requests_max times snapshot_chunk_bytes must be at most ")


def test_a_frame_that_is_dropped_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Goal: the log shows why replication stalls. Method: a response that is too large."""
    caplog.set_level(logging.WARNING, "quorum.transport")

    async def scenario() -> None:
        async with replica(1) as leader, replica(2) as follower:
            follower.network.set_peers({1: leader.address})
            follower.network.send(1, fetch(2, 1))
            await leader.handler.until(lambda: bool(leader.handler.received))
            leader.network.send(2, answer_to(fetch(2, 1), records=bytes(MESSAGE_BYTES_MAX)))
            assert leader.link.counters.outbox_dropped == 1

    run(scenario())
    (line,) = [each.getMessage() for each in caplog.records if "dropped" in each.getMessage()]
    assert line.startswith("stream from ")
    assert f"at most {MESSAGE_BYTES_MAX} fit" in line
