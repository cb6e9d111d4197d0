"""Every way in which a unary call may be ended, for every method."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import grpc
import pytest
from grpc import aio

from quorate.client.errors import LogIncarnationError, from_rpc
from quorum.transport.answers import STATUSES, abort
from quorum.transport.hello import Hello
from quorum.transport.limits import CLIENT_OPTIONS
from quorum.transport.link import EXCHANGE_METHOD
from quorum.transport.node_names import NodeNames
from quorum.types import METADATA_TOPIC, NodeId
from quorum.v1 import common_pb2, raft_pb2
from tests.support.peer_harness import CLUSTER, PATIENCE_S, key, replica, run

METHODS = sorted(set(STATUSES) - {EXCHANGE_METHOD})


class _AnyCertificate(NodeNames):
    """Accepts every caller as the node that it claims to be."""

    def problem(self, node: NodeId, auth: Mapping[str, Iterable[bytes]]) -> None:
        return None


NAMES = _AnyCertificate("node-{id}.quorum.test")
_KEY = common_pb2.ReplicaKey(id=9)
REQUESTS: dict[str, Any] = {
    "Vote": raft_pb2.VoteRequest(candidate=_KEY, last=common_pb2.OffsetAndEpoch()),
    "BeginQuorumEpoch": raft_pb2.BeginQuorumEpochRequest(leader=_KEY),
    "EndQuorumEpoch": raft_pb2.EndQuorumEpochRequest(leader=_KEY),
    "Fetch": raft_pb2.FetchRequest(),
    "FetchSnapshot": raft_pb2.FetchSnapshotRequest(
        topics=[
            raft_pb2.FetchSnapshotTopic(
                name=METADATA_TOPIC, partitions=[raft_pb2.FetchSnapshotPartition()]
            )
        ]
    ),
    "ChainDigest": raft_pb2.ChainDigestRequest(offsets=[1]),
}


@pytest.mark.parametrize("method", METHODS)
def test_a_call_ends_with_a_status(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: a caller gets a reason for every failure. Method: invalid bytes; a limit of one call; a
    silent core; a node that stops."""
    monkeypatch.setattr("quorum.transport.unary.UNARY_CALLS_MAX", 1)
    request = REQUESTS[method].SerializeToString()

    async def scenario() -> None:
        async with (
            replica(1, names=NAMES) as node,
            aio.insecure_channel(node.address, options=CLIENT_OPTIONS) as channel,
        ):
            call = channel.unary_unary(f"/quorum.v1.RaftService/{method}")

            async def ended(coming: Any) -> grpc.StatusCode:
                with pytest.raises(aio.AioRpcError) as caught:
                    await coming
                return caught.value.code()

            assert await ended(call(b"\xff", timeout=30)) is grpc.StatusCode.INVALID_ARGUMENT
            held = asyncio.ensure_future(ended(call(request, timeout=PATIENCE_S)))
            await node.handler.until(lambda: len(node.handler.received) == 1)
            full = await ended(call(request, timeout=PATIENCE_S))
            assert full is grpc.StatusCode.RESOURCE_EXHAUSTED
            await node.network.service.send_goodbye()
            assert await held is grpc.StatusCode.UNAVAILABLE

        monkeypatch.setattr("quorum.transport.unary.UNARY_WAIT_S_MAX", 0.02)
        async with (
            replica(1, names=NAMES) as node,
            aio.insecure_channel(node.address, options=CLIENT_OPTIONS) as channel,
        ):
            call = channel.unary_unary(f"/quorum.v1.RaftService/{method}")
            silent = await ended(call(request, timeout=PATIENCE_S))
            assert silent is grpc.StatusCode.DEADLINE_EXCEEDED

    run(scenario())


def test_a_status_that_comes_too_late_leaves_no_trace() -> None:
    """A deadline that passes during a refusal: gRPC ended the call, and raises an error here."""

    class OverContext:
        async def abort(self, *_: object, **__: object) -> None:
            raise aio.InternalError('Failed "execute_batch"')

    async def scenario() -> None:
        with pytest.raises(asyncio.CancelledError):
            await abort(OverContext(), grpc.StatusCode.DEADLINE_EXCEEDED, "too late")

    run(scenario())


@pytest.mark.parametrize("method", ["Vote", "BeginQuorumEpoch", "EndQuorumEpoch"])
def test_a_recovered_log_has_elections_on_streams_only(method: str) -> None:
    """A unary call states no incarnation of the log, so a proven former voter is refused too."""
    hello = Hello(CLUSTER, key(1), b"", process_id=b"p", log_incarnation_id=b"i" * 16)

    async def scenario() -> None:
        async with (
            replica(1, names=NAMES, hello=hello) as node,
            aio.insecure_channel(node.address, options=CLIENT_OPTIONS) as channel,
        ):
            call = channel.unary_unary(f"/quorum.v1.RaftService/{method}")
            with pytest.raises(aio.AioRpcError) as caught:
                await call(REQUESTS[method].SerializeToString(), timeout=PATIENCE_S)
            assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
            assert type(from_rpc(caught.value)) is LogIncarnationError
            assert "LOG_INCARNATION_MISMATCH" in str(caught.value.details())
            assert node.handler.received == []

    run(scenario())
