"""Read streams of a test: messages with queries, and their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from quorum.transport.answers import DETAILS_KEY
from quorum.v1 import common_pb2
from quorum.v1.metadata_pb2 import (
    ListTopicsRequest,
    ReadAnswer,
    ReadLevel,
    ReadOptions,
    ReadQuery,
    ReadStreamRequest,
)
from quorum.v1.metadata_pb2_grpc import MetadataServiceStub
from tests.support.served_node import cluster, serving

LINEARIZABLE = ReadOptions(level=ReadLevel.READ_LEVEL_LINEARIZABLE)
LOCAL = ReadOptions(level=ReadLevel.READ_LEVEL_LOCAL)


def at_least(offset: int) -> ReadOptions:
    return ReadOptions(level=ReadLevel.READ_LEVEL_AT_LEAST, at_least_offset=offset)


def message(*levels: ReadOptions, first_tag: int = 1, max_wait_ms: int = 0) -> ReadStreamRequest:
    """One listing of topics at each level, with tags from ``first_tag`` on."""
    queries = [
        ReadQuery(tag=tag, list_topics=ListTopicsRequest(read=level))
        for tag, level in enumerate(levels, first_tag)
    ]
    return ReadStreamRequest(queries=queries, max_wait_ms=max_wait_ms)


async def answers(stream: Any, count: int) -> dict[int, ReadAnswer]:
    """The next ``count`` answers, by tag."""
    found: dict[int, ReadAnswer] = {}
    while len(found) < count:
        response = await stream.read()
        assert response is not grpc.aio.EOF
        assert response.answers
        for answer in response.answers:
            assert answer.tag not in found
            found[answer.tag] = answer
    return found


def with_streams(
    scenario: Callable[..., Awaitable[None]], *, nodes: int = 1, streams: int = 1, **options: Any
) -> None:
    """Run ``scenario(node, stream...)`` on node 1, which does not lead where there are more."""

    async def run() -> None:
        _, made = cluster(nodes, leader=nodes)
        async with serving(*made, **options):
            async with grpc.aio.insecure_channel(made[0].address) as channel:
                stub = MetadataServiceStub(channel)  # type: ignore[no-untyped-call]
                await scenario(made[0], *(stub.ReadStream() for _ in range(streams)))

    asyncio.run(run())


async def reason(stream: Any) -> str:
    """Why the stream has ended."""

    async def to_the_end() -> None:
        while await stream.read() is not grpc.aio.EOF:
            pass

    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await to_the_end()
    (details,) = (v for k, v in caught.value.trailing_metadata() or () if k == DETAILS_KEY)
    info = ErrorInfo()
    assert Status.FromString(details).details[0].Unpack(info)
    return info.reason


def codes(found: dict[int, ReadAnswer]) -> dict[int, str]:
    return {tag: common_pb2.ErrorCode.Name(answer.error_code)[11:] for tag, answer in found.items()}
