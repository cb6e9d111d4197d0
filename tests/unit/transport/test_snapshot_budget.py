"""Sharing the bytes of one FetchSnapshot answer (630.11)."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.core.messages.message_types import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.errors import ErrorCode
from quorum.transport.snapshots import divide_budget, response_budget, serve_fetch_snapshot
from quorum.types import METADATA_PARTITION, METADATA_TOPIC
from quorum.v1 import raft_pb2

sizes = st.lists(st.integers(0, 10_000), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("asked", "server_max", "budget"),
    [(100, 1000, 100), (1000, 100, 100), (0, 100, 100), (2**31 - 1, 100, 100)],
)
def test_the_smaller_limit_counts(asked: int, server_max: int, budget: int) -> None:
    """What is asked for and what we send, whichever is less; 0 asks for no limit."""
    assert response_budget(asked, server_max) == budget


@pytest.mark.parametrize(("asked", "sent"), [(0, 300), (2**31 - 1, 300), (120, 120)])
def test_the_setting_bounds_an_answer(asked: int, sent: int) -> None:
    """``quorum.snapshot_response_bytes_max`` over two slices of a file of 1,000 bytes."""
    request = raft_pb2.FetchSnapshotRequest(max_bytes=asked)
    for _ in range(2):
        request.topics.add(name=METADATA_TOPIC).partitions.add(partition=METADATA_PARTITION)

    async def ask(wanted: FetchSnapshotRequest) -> FetchSnapshotResponse:
        chunk = bytes(min(wanted.max_bytes, 1_000 - wanted.position))
        return FetchSnapshotResponse(
            wanted.request_id,
            ErrorCode.NONE,
            1,
            1,
            wanted.snapshot_id,
            size=1_000,
            position=wanted.position,
            chunk=chunk,
        )

    answer = asyncio.run(serve_fetch_snapshot(request, "c", ask, bytes_max=300))
    found = [len(each.unaligned_records) for topic in answer.topics for each in topic.partitions]
    assert found == [sent // 2, sent // 2]


@pytest.mark.parametrize(
    ("budget", "left", "shares"),
    [
        (100, [1000], [100]),
        (100, [1000, 1000], [50, 50]),
        (100, [10, 1000], [10, 90]),
        (100, [1000, 10], [90, 10]),
        (90, [10, 20, 1000], [10, 20, 60]),
        (100, [10, 20], [10, 20]),
        (0, [5, 5], [0, 0]),
        (10, [], []),
    ],
)
def test_examples(budget: int, left: list[int], shares: list[int]) -> None:
    """Short ones leave to others, in any order."""
    assert divide_budget(budget, left) == shares


@given(st.integers(0, 20_000), sizes)
def test_everybody_gets_the_average_and_nothing_is_wasted(budget: int, left: list[int]) -> None:
    """The requirement itself, for any sizes."""
    shares = divide_budget(budget, left)
    average = budget // len(left)
    for share, available in zip(shares, left, strict=True):
        assert min(average, available) <= share <= available
    assert sum(shares) == min(budget, sum(left))
