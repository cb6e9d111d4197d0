"""The unary methods, as a probe in another language sees them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import grpc
import pytest
from grpc import aio

from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.message_types import Message
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest
from quorum.transport.limits import CLIENT_OPTIONS
from quorum.types import METADATA_TOPIC, NO_NODE
from quorum.v1 import common_pb2, raft_pb2, raft_pb2_grpc
from tests.support.peer_harness import (
    CLUSTER,
    PATIENCE_S,
    Replica,
    answer_to,
    fetch,
    key,
    replica,
    run,
)

METHODS = ["Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "Fetch", "FetchSnapshot"]


def with_probe(
    scenario: Callable[[Replica, aio.Channel], Awaitable[None]],
) -> None:
    """Run against one replica and a plain channel to it."""

    async def body() -> None:
        async with (
            replica(1) as node,
            aio.insecure_channel(node.address, options=CLIENT_OPTIONS) as channel,
        ):
            await scenario(node, channel)

    run(body())


@pytest.mark.parametrize("method", ["Vote", "BeginQuorumEpoch", "EndQuorumEpoch"])
def test_no_unary_call_takes_part_in_elections(method: str) -> None:
    """Without node certificates no caller can prove its identity."""

    async def scenario(node: Replica, channel: aio.Channel) -> None:
        author = common_pb2.ReplicaKey(id=2)
        request = {
            "Vote": raft_pb2.VoteRequest(
                candidate=author, epoch=4, last=common_pb2.OffsetAndEpoch()
            ),
            "BeginQuorumEpoch": raft_pb2.BeginQuorumEpochRequest(
                leader=common_pb2.ReplicaKey(id=2)
            ),
            "EndQuorumEpoch": raft_pb2.EndQuorumEpochRequest(leader=author),
        }[method]
        call = channel.unary_unary(f"/quorum.v1.RaftService/{method}")
        with pytest.raises(aio.AioRpcError) as caught:
            await call(request.SerializeToString(), timeout=30)
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
        assert "stream" in str(caught.value.details())
        assert node.handler.received == []

    with_probe(scenario)


def test_a_plain_consumer_fetches() -> None:
    """No replica, no high watermark known; records come back whole."""

    async def scenario(node: Replica, channel: aio.Channel) -> None:
        node.handler.on_request = lambda sender, message: node.network.send(
            sender, answer_to(message, records=b"abc", log_start_offset=3)
        )
        stub = raft_pb2_grpc.RaftServiceStub(channel)
        answer = await stub.Fetch(raft_pb2.FetchRequest(cluster_id="x", fetch_offset=3), timeout=30)
        assert answer.records == b"abc"
        assert not answer.HasField("high_watermark")
        assert not answer.HasField("diverging")
        _, asked = node.handler.received[0]
        assert isinstance(asked, FetchRequest)
        assert (asked.replica.id, asked.high_watermark, asked.cluster_id) == (NO_NODE, -1, "x")

    with_probe(scenario)


def test_no_client_fetches_as_a_replica() -> None:
    """Neither method, for whichever node: an error that is counted, and the core is not asked."""
    wanted = raft_pb2.FetchSnapshotTopic(
        name=METADATA_TOPIC, partitions=[raft_pb2.FetchSnapshotPartition()]
    )

    async def scenario(node: Replica, channel: aio.Channel) -> None:
        stub = raft_pb2_grpc.RaftServiceStub(channel)
        for node_id in (0, 1, 2, -2):
            disk = key(2).directory_id
            replica_key = common_pb2.ReplicaKey(id=node_id, directory_id=disk)
            snapshot = raft_pb2.FetchSnapshotRequest(
                replica_id=node_id, replica_directory_id=disk, topics=[wanted]
            )
            for call in (
                stub.Fetch(raft_pb2.FetchRequest(replica=replica_key, fetch_offset=9), timeout=30),
                stub.FetchSnapshot(snapshot, timeout=30),
            ):
                with pytest.raises(aio.AioRpcError) as caught:
                    await call
                assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
                assert "stream" in str(caught.value.details())
        assert node.link.counters.malformed == 8
        assert node.handler.received == []

    with_probe(scenario)


def test_a_probe_cannot_catch_a_replicas_answer() -> None:
    """A call waits beside node 2's own Fetch with the same request id: each gets its own."""

    async def scenario(node: Replica, channel: aio.Channel) -> None:
        async with replica(2) as follower:
            follower.network.set_peers({1: node.address})
            follower.network.send(1, fetch(2, 0, max_wait_ms=111))
            await node.handler.until(lambda: len(node.handler.received) == 1)
            stub = raft_pb2_grpc.RaftServiceStub(channel)
            consumer = common_pb2.ReplicaKey(id=NO_NODE)
            call = asyncio.ensure_future(
                stub.Fetch(raft_pb2.FetchRequest(replica=consumer, max_wait_ms=222), timeout=30)
            )
            await node.handler.until(lambda: len(node.handler.received) == 2)
            for sender, asked in node.handler.received:
                node.network.send(sender, answer_to(asked, high_watermark=asked.max_wait_ms))
            assert (await call).high_watermark == 222
            await follower.handler.until(lambda: bool(follower.handler.received))
            assert follower.handler.received[0][1].high_watermark == 111

    with_probe(scenario)


@pytest.mark.parametrize("method", METHODS)
def test_any_bytes_end_in_a_status(method: str) -> None:
    """Two hundred random requests: INVALID_ARGUMENT, or an answer if they happen to parse."""

    async def scenario(node: Replica, channel: aio.Channel) -> None:
        def answer(sender: int, message: Message) -> None:
            kind = type(message)
            if kind in (FetchRequest, FetchSnapshotRequest):
                node.network.send(sender, answer_to(message))

        node.handler.on_request = answer
        call = channel.unary_unary(f"/quorum.v1.RaftService/{method}")
        rng = random.Random(method)
        statuses = set()
        for _ in range(200):
            try:
                await call(rng.randbytes(rng.randint(0, 60)), timeout=30)
                statuses.add(grpc.StatusCode.OK)
            except aio.AioRpcError as error:
                statuses.add(error.code())
        assert grpc.StatusCode.INVALID_ARGUMENT in statuses
        assert statuses <= {
            grpc.StatusCode.INVALID_ARGUMENT,
            grpc.StatusCode.PERMISSION_DENIED,
            grpc.StatusCode.OK,
        }
        assert node.link.counters.malformed > 100

    with_probe(scenario)


def test_an_unanswered_call_ends_with_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a deadline of its own, and without one after our bound; nothing is left behind."""
    monkeypatch.setattr("quorum.transport.unary.UNARY_WAIT_S_MAX", 0.05)

    async def scenario(node: Replica, channel: aio.Channel) -> None:
        call = channel.unary_unary("/quorum.v1.RaftService/Fetch")

        async def unanswered(timeout: float | None) -> None:
            with pytest.raises(aio.AioRpcError) as caught:
                await call(b"", timeout=timeout)
            assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED

        await unanswered(None)
        await unanswered(PATIENCE_S)
        timeout = 0.02
        while len(node.handler.received) < 3:
            # So short a deadline may pass before the call has arrived.
            await unanswered(timeout)
            timeout *= 2
        late_sender, late = node.handler.received[0]
        node.network.send(late_sender, answer_to(late))
        assert node.link.counters.responses_unroutable == 1

    with_probe(scenario)


def test_all_requests_of_a_call_share_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Method: two chunks, and a core that takes more than half of the time for each."""
    monkeypatch.setattr("quorum.transport.unary.UNARY_WAIT_S_MAX", 0.5)

    async def scenario(node: Replica, channel: aio.Channel) -> None:
        def answer(sender: int, message: Message) -> None:
            reply = answer_to(message, chunk=b"c", size=2)
            asyncio.get_running_loop().call_later(0.3, node.network.send, sender, reply)

        node.handler.on_request = answer
        chunks = [raft_pb2.FetchSnapshotPartition(position=position) for position in (0, 1)]
        topic = raft_pb2.FetchSnapshotTopic(name=METADATA_TOPIC, partitions=chunks)
        request = raft_pb2.FetchSnapshotRequest(cluster_id=CLUSTER, max_bytes=2, topics=[topic])
        with pytest.raises(aio.AioRpcError) as caught:
            await raft_pb2_grpc.RaftServiceStub(channel).FetchSnapshot(request, timeout=PATIENCE_S)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert len(node.handler.received) <= 2

    with_probe(scenario)


def test_too_many_calls_at_a_time_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One is being answered, the second is turned away, the first still gets its answer."""
    monkeypatch.setattr("quorum.transport.unary.UNARY_CALLS_MAX", 1)

    async def scenario(node: Replica, channel: aio.Channel) -> None:
        call = channel.unary_unary("/quorum.v1.RaftService/Fetch")
        first = asyncio.ensure_future(call(b"", timeout=30))
        await node.handler.until(lambda: len(node.handler.received) == 1)
        with pytest.raises(aio.AioRpcError) as caught:
            await call(b"", timeout=30)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        sender, asked = node.handler.received[0]
        node.network.send(sender, answer_to(asked))
        await first

    with_probe(scenario)


def test_snapshot_chunks_share_the_budget_and_unknown_partitions_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A short and a long chunk of our log beside two unknown partitions.

    1,000 bytes for both: the short one has 100 left, so the long one gets 900, in two requests.
    """
    file = bytes(range(256)) * 8

    async def scenario(node: Replica, channel: aio.Channel) -> None:
        def answer(sender: int, message: Message) -> None:
            assert isinstance(message, FetchSnapshotRequest)
            chunk = file[message.position : message.position + message.max_bytes]
            node.network.send(sender, answer_to(message, chunk=chunk, size=len(file)))

        node.handler.on_request = answer
        wanted = raft_pb2.FetchSnapshotPartition
        request = raft_pb2.FetchSnapshotRequest(
            cluster_id=CLUSTER,
            max_bytes=1000,
            topics=[
                raft_pb2.FetchSnapshotTopic(name="other", partitions=[wanted(partition=0)]),
                raft_pb2.FetchSnapshotTopic(
                    name=METADATA_TOPIC,
                    partitions=[
                        wanted(partition=0, position=len(file) - 100),
                        wanted(partition=1),
                        wanted(partition=0, position=10),
                    ],
                ),
            ],
        )
        answer_pb = await raft_pb2_grpc.RaftServiceStub(channel).FetchSnapshot(request, timeout=30)
        (other,), (short, absent, long) = (topic.partitions for topic in answer_pb.topics)
        unknown = common_pb2.ERROR_CODE_UNKNOWN_TOPIC_OR_PARTITION
        assert (other.error_code, absent.error_code) == (unknown, unknown)
        assert short.unaligned_records == file[-100:]
        assert long.unaligned_records == file[10:910]
        assert (long.size, long.position) == (len(file), 10)

    with_probe(scenario)


def test_another_clusters_id_refuses_the_whole_snapshot_request() -> None:
    """Top-level error, no partitions, and the core is not asked."""

    async def scenario(node: Replica, channel: aio.Channel) -> None:
        request = raft_pb2.FetchSnapshotRequest(
            cluster_id="other",
            topics=[
                raft_pb2.FetchSnapshotTopic(
                    name=METADATA_TOPIC, partitions=[raft_pb2.FetchSnapshotPartition()]
                )
            ],
        )
        answer = await raft_pb2_grpc.RaftServiceStub(channel).FetchSnapshot(request, timeout=30)
        assert answer.error_code == common_pb2.ERROR_CODE_INCONSISTENT_CLUSTER_ID
        assert not answer.topics
        assert node.handler.received == []

    with_probe(scenario)


def test_a_waiting_call_ends_with_a_reason_when_the_node_stops() -> None:
    """Goal: no caller is cut off. Method: a Fetch that the core holds; one too late."""

    async def scenario(node: Replica, channel: aio.Channel) -> None:
        stub = raft_pb2_grpc.RaftServiceStub(channel)
        held = stub.Fetch(raft_pb2.FetchRequest(), timeout=PATIENCE_S)
        await node.handler.until(lambda: bool(node.handler.received))
        await node.network.service.send_goodbye()
        for call in (held, stub.Fetch(raft_pb2.FetchRequest(), timeout=PATIENCE_S)):
            with pytest.raises(aio.AioRpcError) as caught:
                await call
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE

    with_probe(scenario)
