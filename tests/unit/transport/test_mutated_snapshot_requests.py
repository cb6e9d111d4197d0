"""FetchSnapshot of topics and partitions that there are not: answered by name, never asked for."""

from __future__ import annotations

import asyncio
import random

import pytest

from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.errors import ErrorCode
from quorum.transport.packing import error_from_number
from quorum.transport.snapshots import serve_fetch_snapshot
from quorum.types import METADATA_PARTITION, METADATA_TOPIC
from quorum.v1 import raft_pb2

CLUSTER = "c"
SEEDS = tuple(str(seed) for seed in range(1, 21))
TOPICS = (METADATA_TOPIC, METADATA_TOPIC.upper(), METADATA_TOPIC + " ", "", "orders", "ü", "\0")
PARTITIONS = (METADATA_PARTITION, 1, -1, (1 << 31) - 1, -(1 << 31))


@pytest.mark.parametrize("seed", SEEDS)
def test_only_what_was_named_rightly_is_asked_for(seed: str) -> None:
    """Draw names and numbers; only requests for the metadata log's partition reach the core."""
    rng = random.Random(f"topics {seed}")
    request = raft_pb2.FetchSnapshotRequest(replica_id=2, replica_directory_id=bytes([2]) * 16)
    named: list[list[bool]] = []
    for _ in range(rng.randint(1, 4)):
        topic = request.topics.add(name=rng.choice(TOPICS))
        named.append([])
        for _ in range(rng.randint(1, 3)):
            wanted = topic.partitions.add(partition=rng.choice(PARTITIONS))
            is_right = topic.name == METADATA_TOPIC and wanted.partition == METADATA_PARTITION
            named[-1].append(is_right)
    asked: list[FetchSnapshotRequest] = []

    async def ask(wanted: FetchSnapshotRequest) -> FetchSnapshotResponse:
        asked.append(wanted)
        return FetchSnapshotResponse(
            wanted.request_id, ErrorCode.SNAPSHOT_NOT_FOUND, 1, 1, wanted.snapshot_id
        )

    answer = asyncio.run(serve_fetch_snapshot(request, CLUSTER, ask, bytes_max=1 << 20))

    assert len(asked) == sum(map(sum, named)), f"seed {seed}"
    found = [
        [error_from_number(each.error_code) for each in topic.partitions] for topic in answer.topics
    ]
    expected = [
        [
            ErrorCode.SNAPSHOT_NOT_FOUND if is_right else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            for is_right in partitions
        ]
        for partitions in named
    ]
    assert found == expected, f"seed {seed}"
