"""Clients and a node's servers enforce the same maximum message size.

The ports are those of a node: one for all callers, or one for clients and one for peers. Tests send
raw messages, with a client without limits of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import grpc
import pytest

from quorate.client.client import Client
from quorate.client.errors import ClientError
from quorate.client.limits import FRAMING_BYTES, MESSAGE_BYTES_MAX
from quorate.client.results import ChangeBatch, DescribeConfigsResponse
from quorate.client.watch import Watch
from quorate.config.sections import BATCH_BYTES_MAX_MAX
from quorate.demo.ports import free_ports
from quorate.server.listeners import Listeners
from quorate.services import calls, read_stream
from quorate.services.change_message import message_of
from quorate.services.describe import DESCRIBED_CONFIG_BYTES_MAX
from quorate.services.errors import RequestRefusedError
from quorate.services.registration import ClientServices
from quorate.services.too_large import check_batch_fits
from quorum.batch import encode_batch
from quorum.transport.limits import MESSAGE_BYTES_MAX as PEER_MESSAGE_BYTES_MAX
from quorum.transport.server import RaftService
from quorum.v1 import commands_pb2, common_pb2
from statemachine.codec import encode_record
from statemachine.records import ConfigRecord, TopicRecord
from tests.support.served_node import cluster
from tests.unit.services.test_calls import METHODS, NAMES, call

METRICS = commands_pb2.CONFIG_RESOURCE_TYPE_CLIENT_METRICS
UNLIMITED = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
Scenario = Callable[[Any, str], Awaitable[None]]
LAYOUTS = pytest.mark.parametrize("shares_port", [True, False], ids=["one-port", "two-ports"])


class NoPeers:
    """Peers' methods on a server that no peer calls."""

    def handlers(self) -> grpc.GenericRpcHandler[Any, Any]:
        return grpc.method_handlers_generic_handler("quorum.v1.RaftService", {})

    async def send_goodbye(self) -> None:
        """No client is connected."""


def on_listeners(scenario: Scenario, *, shares_port: bool) -> None:
    """Run ``scenario(node, client address)`` against what a node listens with."""

    async def run() -> None:
        _, (node,) = cluster(1)
        client, peer = (f"127.0.0.1:{port}" for port in free_ports(2))
        services = ClientServices(node)
        listeners = Listeners(
            cast(RaftService, NoPeers()),
            services,
            client_address=client,
            peer_address=client if shares_port else peer,
            credentials=None,
        )
        node.peers, node.address = {node.node_id: node}, client
        await listeners.start()
        try:
            await scenario(node, client)
        finally:
            await services.stop()
            await listeners.stop()
            services.close()

    asyncio.run(run())


@LAYOUTS
@pytest.mark.parametrize(("path", "method"), METHODS, ids=NAMES)
def test_what_no_client_may_send_is_refused(path: str, method: Any, shares_port: bool) -> None:
    """Goal: the same limit on every port. Method: a byte more than a client sends."""

    async def scenario(_node: Any, address: str) -> None:
        async with grpc.aio.insecure_channel(address, options=UNLIMITED) as channel:
            code, _ = await call(channel, path, method, bytes(MESSAGE_BYTES_MAX + 1))
            assert code is grpc.StatusCode.RESOURCE_EXHAUSTED

    assert BATCH_BYTES_MAX_MAX + FRAMING_BYTES <= MESSAGE_BYTES_MAX < PEER_MESSAGE_BYTES_MAX
    on_listeners(scenario, shares_port=shares_port)


@LAYOUTS
def test_an_answer_too_large_for_a_client_is_a_judgement_of_the_server(
    monkeypatch: pytest.MonkeyPatch, shares_port: bool
) -> None:
    """Goal: the client learns what to do. Method: a small limit, and a listing beyond it."""
    monkeypatch.setattr(calls, "MESSAGE_BYTES_MAX", 64)
    monkeypatch.setattr(read_stream, "_ANSWER_BYTES_MAX", 64)

    async def scenario(node: Any, address: str) -> None:
        for n in range(3):
            node.commit(encode_record(TopicRecord(f"topic-{n}", bytes([n]) * 16)))
        async with Client([address], timeout_seconds=30) as client:
            assert len((await client.list_topics(limit=1)).topics) == 1
            with pytest.raises(ClientError, match="request less at a time") as refused:
                await client.list_topics()
        assert "the answer of ListTopics has " in str(refused.value)
        assert refused.value.code == common_pb2.ERROR_CODE_MESSAGE_TOO_LARGE

    on_listeners(scenario, shares_port=shares_port)


@LAYOUTS
def test_configurations_beyond_a_message_are_refused_and_fewer_are_served(
    shares_port: bool,
) -> None:
    """Goal: bounded memory and a clear word. Method: nine resources of a mebibyte each."""
    value = "x" * (1 << 20)
    names = [f"s{n}" for n in range(9)]

    async def scenario(node: Any, address: str) -> None:
        for name in names:
            node.commit(encode_record(ConfigRecord(int(METRICS), name, "metrics", value)))
        async with Client([address], timeout_seconds=30) as client:
            with pytest.raises(ClientError, match="request fewer at a time") as refused:
                await client.describe_configs([(METRICS, name) for name in names])
            assert refused.value.code == common_pb2.ERROR_CODE_MESSAGE_TOO_LARGE
            answer = await client.describe_configs([(METRICS, name) for name in names[:7]])
        assert [len(each.entries[0].value) for each in answer.resources] == [len(value)] * 7
        assert isinstance(answer, DescribeConfigsResponse)
        assert answer.to_message().ByteSize() < DESCRIBED_CONFIG_BYTES_MAX + (1 << 16)

    on_listeners(scenario, shares_port=shares_port)


async def follow(watch: Watch, seen: list[int]) -> None:
    """Watch for ever; ``seen`` grows by where every batch ends."""
    async for event in watch:
        if isinstance(event, ChangeBatch):
            seen.append(event.end_offset)


@LAYOUTS
def test_a_batch_larger_than_a_message_ends_a_watch_and_a_fetch_by_name(shares_port: bool) -> None:
    """Goal: a reader of the log gets the remedy, and asks no other node in vain. Method: a batch
    between two small ones; the node would not have accepted it from a client.
    """
    value = "x" * MESSAGE_BYTES_MAX

    async def scenario(node: Any, address: str) -> None:
        node.commit(encode_record(TopicRecord("before", b"1" * 16)))
        at = node.high_watermark
        async with Client([address], timeout_seconds=30) as client:
            watch = client.watch(from_offset=at)
            for size in (1, 1 << 20):
                node.commit(encode_record(ConfigRecord(int(METRICS), "s", "metrics", value[:size])))
            node.commit(encode_record(ConfigRecord(int(METRICS), "s", "metrics", value)))
            node.commit(encode_record(TopicRecord("behind", b"2" * 16)))
            seen: list[int] = []
            with pytest.raises(ClientError, match="continue from offset") as refused:
                await asyncio.wait_for(follow(watch, seen), 30)
            assert seen == [at + 1, at + 2]
            assert refused.value.code == common_pb2.ERROR_CODE_MESSAGE_TOO_LARGE
            assert f"the batch [{at + 2}, {at + 3}) " in str(refused.value)
            consumer = client.consumer()
            consumer.seek(at + 2)
            with pytest.raises(ClientError, match="continue from offset") as refused:
                await consumer.poll()
            assert refused.value.code == common_pb2.ERROR_CODE_MESSAGE_TOO_LARGE
            consumer.seek(at + 3)
            assert [record.offset for record in await consumer.poll()] == [at + 3]
            with pytest.raises(ClientError, match="continue from offset") as refused:
                await asyncio.wait_for(follow(client.watch(), []), 30)
            assert refused.value.code == common_pb2.ERROR_CODE_MESSAGE_TOO_LARGE

    on_listeners(scenario, shares_port=shares_port)


@pytest.mark.parametrize("records", [1, 1_000, 100_000])
def test_the_largest_batch_that_may_be_written_fits(records: int) -> None:
    """Goal: no batch of ours is refused to its readers. Method: one of the most bytes, as a watch
    and as a fetch hand it out.
    """
    most = BATCH_BYTES_MAX_MAX // records - 100 // records - 12
    data = encode_batch([bytes(most)] * records, base_offset=1 << 40, epoch=1 << 30, timestamp=1)
    assert BATCH_BYTES_MAX_MAX * 0.95 < len(data) <= BATCH_BYTES_MAX_MAX
    changes = message_of(data)
    assert changes.end_offset - changes.base_offset == records
    check_batch_fits(0, 1, len(changes.data))
    check_batch_fits(0, 1, len(data), framing_bytes=FRAMING_BYTES)
    with pytest.raises(RequestRefusedError):
        check_batch_fits(0, 1, BATCH_BYTES_MAX_MAX + 1, framing_bytes=FRAMING_BYTES)
