"""A message that stops in the middle holds its place for a bounded time, on every kind of call.

Real sockets, and HTTP/2 by hand: no client library sends half a message.
"""

from __future__ import annotations

import asyncio

import pytest

from quorate.client import TOPIC, Client
from quorate.services.admission import ServiceLimits
from quorum.transport.framing import ALIVE_FRAME, PROBE_FRAME, encode_frame
from quorum.transport.hello import Hello, encode_hello
from quorum.transport.limits import REQUEST_BYTES_MAX
from quorum.transport.link import EXCHANGE_METHOD, SERVICE_NAME
from quorum.v1 import metadata_pb2
from tests.integration.raw_http2 import MESSAGE_BYTES, Stall, StalledCalls, message
from tests.support.peer_harness import CLUSTER, fetch, key, mute_stream, replica, run
from tests.support.served_node import cluster, serving

SECONDS = 0.2
CALLS = 3
WATCHED_SECONDS = 3.0
PEER = Hello(CLUSTER, key(2), b"", process_id=b"peer")
HELLO = metadata_pb2.WriteStreamRequest(hello={"client_id": "stalled"}).SerializeToString()
WRITE = Stall()
WRITE_STREAM = Stall("/quorum.v1.MetadataService/WriteStream", message(HELLO))
LIMITED = ServiceLimits(message_seconds_max=SECONDS, stream_idle_seconds_max=SECONDS)


def stall(address: str, calls: Stall) -> dict[str, int]:
    host, _, port = address.rpartition(":")
    attack = StalledCalls(host, int(port), host, connections=1, calls_each=CALLS, stall=calls)
    return attack.run(WATCHED_SECONDS)


@pytest.mark.parametrize("calls", [WRITE, WRITE_STREAM], ids=["Write", "WriteStream"])
@pytest.mark.parametrize("is_limited", [True, False], ids=["limited", "without the limit"])
def test_a_call_of_a_client_gives_its_place_back(calls: Stall, is_limited: bool) -> None:
    """Without the limit all places stay taken, so that the check can fail."""
    limits = LIMITED if is_limited else ServiceLimits(stream_idle_seconds_max=0)

    async def scenario() -> None:
        _, (node,) = cluster(1)
        async with serving(node, limits=limits) as servers:
            counts = await asyncio.to_thread(stall, node.address, calls)
            assert counts["bytes"] > CALLS * (MESSAGE_BYTES // 2)
            # Each place is given back and taken again by the next stalled call.
            assert (counts.get("ended", 0) >= 2 * CALLS) is is_limited
            async with asyncio.timeout(10):
                while any(each.open_count for each in servers[1].services.quotas()):
                    await asyncio.sleep(0.01)

    run(scenario())


@pytest.mark.parametrize("is_limited", [True, False], ids=["limited", "without the limit"])
def test_a_stream_of_a_peer_gives_its_place_back(
    monkeypatch: pytest.MonkeyPatch, is_limited: bool
) -> None:
    monkeypatch.setattr(
        "quorum.transport.inbound.STREAM_SILENCE_S", SECONDS if is_limited else 60.0
    )

    async def scenario() -> None:
        async with replica(1) as leader:
            calls = Stall(
                f"/{SERVICE_NAME}/{EXCHANGE_METHOD}", message(encode_hello(PEER)), REQUEST_BYTES_MAX
            )
            counts = await asyncio.to_thread(stall, leader.address, calls)
            assert counts["bytes"] > CALLS * (REQUEST_BYTES_MAX // 2)
            assert (counts.get("ended", 0) >= 2 * CALLS) is is_limited
            assert (leader.link.counters.streams_silent >= 2 * CALLS) is is_limited

    run(scenario())


def test_a_peer_that_answers_the_probe_keeps_its_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle stream may send nothing for any time."""
    monkeypatch.setattr("quorum.transport.inbound.STREAM_SILENCE_S", 0.05)

    async def scenario() -> None:
        async with replica(1) as leader:
            leader.echo()
            async with mute_stream(leader, PEER) as stream:
                await stream.read()
                for _ in range(5):
                    assert await stream.read() == PROBE_FRAME
                    await stream.write(ALIVE_FRAME)
                await stream.write(encode_frame(fetch(2, 2)))
                await leader.handler.until(lambda: len(leader.handler.received) == 2)
            assert leader.link.counters.streams_silent == 0

    run(scenario())


def test_a_client_writes_on_after_its_idle_stream_was_ended() -> None:
    async def scenario() -> None:
        _, (node,) = cluster(1)
        limits = ServiceLimits(stream_idle_seconds_max=0.5)
        async with serving(node, limits=limits) as servers, Client([node.address]) as client:
            streams = servers[1].services.metadata.write_streams
            for value in ("1", "2"):
                await client.set_config(TOPIC, "t", "retention.ms", value)
                assert streams.open_count == 1
                async with asyncio.timeout(10):
                    while streams.open_count:
                        await asyncio.sleep(0.01)
            # The same producer continues; -1 requested its id.
            assert {context.producer_id for context in node.contexts} == {-1, 1000}

    run(scenario())
