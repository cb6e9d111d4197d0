"""What a stranger can do to a node with little effort, each as a program of its own.

``python -m tests.integration.attacks NAME HOST PORT SECONDS`` attacks one node from ``SOURCE`` and
prints one JSON object: what was tried and what became of it. Every attack shows by these counts,
or by those of the node, that it really took place.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
from grpc import aio

from quorum.transport.hello import Hello, decode_hello, encode_hello
from quorum.types import ReplicaKey
from quorum.v1 import admin_pb2, common_pb2, metadata_pb2, raft_pb2
from tests.integration.raw_http2 import StalledCalls

SOURCE = "127.0.0.2"
"""Attackers use another address than clients on the node's own machine."""
AGAIN_SECONDS = 5.0
"""An attack keeps the resources it got. A thousand refused calls a second would be another attack,
on processor time, which costs the attacker as much."""
OBSERVER = ReplicaKey(-1, bytes(16))
WIDE_OPTIONS = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0))
Counts = dict[str, int]


@contextlib.asynccontextmanager
async def channels(host: str, port: int, count: int) -> AsyncIterator[list[aio.Channel]]:
    """Connections from ``SOURCE``: gRPC has no such setting, so through a relay of our own."""

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            there = await asyncio.open_connection(host, port, local_addr=(SOURCE, 0))
            await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    target = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    made = [aio.insecure_channel(target, options=WIDE_OPTIONS) for _ in range(count)]
    try:
        yield made
    finally:
        for channel in made:
            await channel.close()
        server.close()


async def status_of(call: Awaitable[Any]) -> str:
    """``OK``, or the name of the status that ended a call."""
    try:
        await call
    except aio.AioRpcError as error:
        return str(error.code().name)
    return "OK"


async def many(
    host: str,
    port: int,
    seconds: float,
    make: Callable[[aio.Channel], Awaitable[str]],
    count: int,
    *,
    again_seconds: float = AGAIN_SECONDS,
) -> Counts:
    """``count`` calls at a time for so long: what ends is made again after a pause."""
    ended: Counter[str] = Counter()
    async with channels(host, port, 8) as made:
        until = time.monotonic() + seconds

        async def again(number: int) -> None:
            while time.monotonic() < until:
                ended["begun"] += 1
                ended[await make(made[number % len(made)])] += 1
                await asyncio.sleep(again_seconds)

        tasks = [asyncio.ensure_future(again(number)) for number in range(count)]
        await asyncio.wait(tasks, timeout=seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return dict(ended)


async def write_streams(host: str, port: int, seconds: float) -> Counts:
    """1,100 write streams that never send a hello."""

    async def one(channel: aio.Channel) -> str:
        call = channel.stream_stream("/quorum.v1.MetadataService/WriteStream")()
        return await status_of(call.read())

    return await many(host, port, seconds, one, 1100)


async def held_reads(host: str, port: int, seconds: float) -> Counts:
    """1,100 reads that wait for an offset which does not come."""
    level = metadata_pb2.ReadOptions(level=2, at_least_offset=10**12)
    data = admin_pb2.DescribeImageRequest(read=level).SerializeToString()

    async def one(channel: aio.Channel) -> str:
        return await status_of(
            channel.unary_unary("/quorum.v1.AdminService/DescribeImage")(data, timeout=100)
        )

    return await many(host, port, seconds, one, 1100)


async def describe_image(host: str, port: int, seconds: float) -> Counts:
    """Sixty callers that request the digest of the image repeatedly."""

    async def one(channel: aio.Channel) -> str:
        return await status_of(
            channel.unary_unary("/quorum.v1.AdminService/DescribeImage")(b"", timeout=20)
        )

    return await many(host, port, seconds, one, 60, again_seconds=0)


async def votes(host: str, port: int, seconds: float) -> Counts:
    """Unknown candidates in growing epochs."""
    epoch = [100]

    async def one(channel: aio.Channel) -> str:
        epoch[0] += 1
        request = raft_pb2.VoteRequest(
            candidate=common_pb2.ReplicaKey(id=77, directory_id=b"x" * 16),
            epoch=epoch[0],
            last=common_pb2.OffsetAndEpoch(),
        )
        return await status_of(
            channel.unary_unary("/quorum.v1.RaftService/Vote")(request.SerializeToString())
        )

    return await many(host, port, seconds, one, 4, again_seconds=0.5)


async def begins(host: str, port: int, seconds: float) -> Counts:
    """400 leaders that do not exist, at an address that counts connections."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    listener.setblocking(False)
    loop, connects, number = asyncio.get_running_loop(), [0], [0]

    async def accept() -> None:
        while True:
            accepted, _ = await loop.sock_accept(listener)
            connects[0] += 1
            accepted.close()

    async def one(channel: aio.Channel) -> str:
        number[0] += 1
        request = raft_pb2.BeginQuorumEpochRequest(epoch=100 + number[0])
        request.leader.id = 1000 + number[0]
        request.leader.directory_id = b"y" * 16
        request.leader_endpoints.add(
            name="CONTROLLER", host="127.0.0.1", port=listener.getsockname()[1]
        )
        return await status_of(
            channel.unary_unary("/quorum.v1.RaftService/BeginQuorumEpoch")(
                request.SerializeToString(), timeout=5
            )
        )

    accepting = asyncio.ensure_future(accept())
    found = await many(host, port, seconds, one, 400)
    accepting.cancel()
    listener.close()
    return {**found, "connects": connects[0]}


async def peer_streams(host: str, port: int, seconds: float) -> Counts:
    """Ten thousand streams of observers without a number, hello included."""
    found: Counter[str] = Counter()
    async with channels(host, port, 8) as made:
        first = made[0].stream_stream("/quorum.v1.RaftService/Exchange")()
        await first.write(encode_hello(Hello("integration", OBSERVER, b"")))
        digest = decode_hello(await first.read()).config_digest
        first.cancel()
        hello = encode_hello(Hello("integration", OBSERVER, digest))
        calls: list[Any] = []

        async def one(number: int) -> None:
            call = made[number % len(made)].stream_stream("/quorum.v1.RaftService/Exchange")()
            calls.append(call)
            found["begun"] += 1
            try:
                await call.write(hello)
                decode_hello(await call.read())
                found["open"] += 1
            except (grpc.RpcError, aio.BaseError, asyncio.InvalidStateError, TypeError):
                found["refused"] += 1

        until = time.monotonic() + seconds
        for begin in range(0, 10_000, 100):
            if time.monotonic() > until:
                break
            await asyncio.gather(*(one(number) for number in range(begin, begin + 100)))
        await asyncio.sleep(max(0.0, until - time.monotonic()))
        for call in calls:
            call.cancel()
    return dict(found)


async def stalled_messages(host: str, port: int, seconds: float) -> Counts:
    """Thirty calls on six connections; each message stops one byte before its end."""

    def run() -> Counts:
        calls = StalledCalls(host, port, SOURCE, connections=6, calls_each=5)
        return calls.run(seconds)

    return await asyncio.to_thread(run)


async def slow_metrics(host: str, port: int, seconds: float) -> Counts:
    """Hundred connections to the metrics port that send a byte a second, and come again."""
    found: Counter[str] = Counter()
    until = time.monotonic() + seconds

    async def one() -> None:
        while time.monotonic() < until:
            try:
                _, writer = await asyncio.open_connection(host, port, local_addr=(SOURCE, 0))
                found["connected"] += 1
                while time.monotonic() < until:
                    writer.write(b"G")
                    await writer.drain()
                    await asyncio.sleep(0.2)
            except OSError:
                found["dropped"] += 1
            await asyncio.sleep(0.05)

    await asyncio.gather(*(one() for _ in range(100)))
    return dict(found)


ATTACKS: dict[str, Callable[[str, int, float], Awaitable[Counts]]] = {
    attack.__name__: attack  # type: ignore[attr-defined]  # a function has a name
    for attack in (
        begins,
        votes,
        stalled_messages,
        write_streams,
        held_reads,
        slow_metrics,
        describe_image,
        peer_streams,
    )
}

if __name__ == "__main__":
    name, host, port, seconds = sys.argv[1:]
    print(json.dumps(asyncio.run(ATTACKS[name](host, int(port), float(seconds)))))  # type: ignore[arg-type]
