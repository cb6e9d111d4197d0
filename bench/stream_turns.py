"""Peer stream turns per second, between two processes on loopback.

    python -m bench.stream_turns [--seconds 2] [--plain-asyncio]

Prints one JSON object: Fetch turns per second with 100 B and 64 KiB of records, snapshot chunks
of 1 MiB in MB/s, a bare gRPC stream of the same sizes as the floor *in the same run* (machines
are noisy: quote the ratio), codec cost per frame, and the milliseconds from SIGKILL of the
server to the report of its refused reconnect.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
import timeit
from typing import Any

import grpc
from crc32c import crc32c
from grpc import aio

from bench.build_form import print_form
from bench.loop import loop_factory
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.message_types import Message, Received, ReceivedRequest
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.errors import ErrorCode
from quorum.transport.framing import decode_frame, encode_frame
from quorum.transport.hello import Hello
from quorum.transport.limits import CLIENT_OPTIONS, SERVER_OPTIONS
from quorum.transport.link import Link
from quorum.transport.peers import PeerNetwork
from quorum.transport.server import RaftService
from quorum.types import OffsetAndEpoch, ReplicaKey

CLUSTER = "bench"
SNAPSHOT = OffsetAndEpoch(1_000_000, 3)
CHUNK_BYTES = 1 << 20
ROUNDS = 5
BARE_METHOD = "/bench.Bare/Exchange"


def replica_key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, bytes([node_id]) * 16)


class Server:
    """Responds to every request at once with the number of bytes requested."""

    def __init__(self) -> None:
        self.service: RaftService | None = None
        self.data = os.urandom(CHUNK_BYTES)
        self.crc = crc32c(self.data)

    def receive(self, sender: int, received: Received) -> None:
        assert self.service is not None
        assert isinstance(received, ReceivedRequest)
        message = received.request
        if isinstance(message, FetchRequest):
            records = self.data[: message.max_bytes]
            answer: Message = FetchResponse(
                message.request_id, ErrorCode.NONE, 1, 3, high_watermark=9, records=records
            )
        else:
            assert isinstance(message, FetchSnapshotRequest)
            answer = FetchSnapshotResponse(
                message.request_id, ErrorCode.NONE, 1, 3, message.snapshot_id, size=1 << 40,
                position=message.position, chunk=self.data, chunk_crc=self.crc,
            )  # fmt: skip
        self.service.routes.respond(sender, answer)

    def on_refused(self, peer: int) -> None: ...

    def on_request_failed(self, peer: int, request_id: int, *_: object) -> None: ...


async def serve() -> None:
    server = Server()
    network = PeerNetwork(Link(Hello(CLUSTER, replica_key(1), b"", process_id=b"1"), server, 2.0))
    server.service = network.service

    async def bare(_: object, context: Any) -> None:
        while (frame := await context.read()) is not aio.EOF:
            await context.write(server.data[: int.from_bytes(frame[:4], "big")])

    grpc_server = aio.server(options=SERVER_OPTIONS)
    handlers = {"Exchange": grpc.stream_stream_rpc_method_handler(bare)}
    grpc_server.add_generic_rpc_handlers(
        (
            network.service.handlers(),
            grpc.method_handlers_generic_handler("bench.Bare", handlers),
        )
    )
    port = grpc_server.add_insecure_port("127.0.0.1:0")
    await grpc_server.start()
    print(port, flush=True)
    await grpc_server.wait_for_termination()


class Client:
    """Sends the next request as soon as the response arrives, until the time is up."""

    def __init__(self) -> None:
        self.network: PeerNetwork | None = None
        self.request_id = 0
        self.turns = 0
        self.until = 0.0
        self.make: Any = None
        self.finished = asyncio.Event()
        self.refused_at = 0.0

    async def measure(self, make: Any, seconds: float) -> float:
        """Return the turns per second."""
        self.make, self.turns = make, 0
        self.finished.clear()
        start = time.perf_counter()
        self.until = start + seconds
        self.send()
        await self.finished.wait()
        return self.turns / (time.perf_counter() - start)

    def send(self) -> None:
        assert self.network is not None
        self.request_id += 1
        self.network.send(1, self.make(self.request_id))

    def receive(self, _sender: int, message: Received) -> None:
        self.turns += 1
        if isinstance(message, FetchSnapshotResponse):
            assert crc32c(message.chunk) == message.chunk_crc
        if time.perf_counter() < self.until:
            self.send()
        else:
            self.finished.set()

    def on_refused(self, _peer: int) -> None:
        self.refused_at = time.perf_counter()
        self.finished.set()

    def on_request_failed(self, _peer: int, request_id: int, *_: object) -> None:
        raise RuntimeError(f"request {request_id} failed")


def fetch(size: int) -> Any:
    return lambda request_id: FetchRequest(
        request_id, CLUSTER, replica_key(2), 3, request_id, 3, 5, 500, size
    )


def chunk(request_id: int) -> FetchSnapshotRequest:
    return FetchSnapshotRequest(
        request_id, CLUSTER, replica_key(2), 3, SNAPSHOT, request_id * CHUNK_BYTES, CHUNK_BYTES
    )


CASES: tuple[tuple[str, int, Any, float], ...] = (
    ("turns_per_s_100_b", 100, fetch(100), 1.0),
    ("turns_per_s_64_kib", 64 << 10, fetch(64 << 10), 1.0),
    ("snapshot_mb_per_s", CHUNK_BYTES, chunk, CHUNK_BYTES / 1e6),
)


async def floor(port: int, size: int, seconds: float) -> float:
    """Return the turns per second of a bare stream with frames of the same sizes and no codec."""
    request = size.to_bytes(4, "big") + bytes(96)
    async with aio.insecure_channel(f"ipv4:127.0.0.1:{port}", options=CLIENT_OPTIONS) as channel:
        call = channel.stream_stream(BARE_METHOD)()
        turns, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            await call.write(request)
            await call.read()
            turns += 1
        return turns / (time.perf_counter() - start)


async def compare(
    client: Client, port: int, size: int, make: Any, seconds: float
) -> tuple[float, float]:
    """Return the medians of ours and of the floor, measured in turn on the same machine."""
    ours, bare = [], []
    for _ in range(ROUNDS):
        ours.append(await client.measure(make, seconds / ROUNDS))
        bare.append(await floor(port, size, seconds / ROUNDS))
    return statistics.median(ours), statistics.median(bare)


def microseconds(call: Any) -> float:
    return round(min(timeit.repeat(call, number=5000, repeat=3)) / 5000 * 1e6, 2)


def codec_cost() -> dict[str, float]:
    answer = FetchResponse(1, ErrorCode.NONE, 1, 3, high_watermark=9, records=bytes(100))
    costs: dict[str, float] = {}
    for name, message in (("fetch_request", fetch(100)(1)), ("fetch_response", answer)):
        frame = encode_frame(message)
        costs[f"{name}_encode_us"] = microseconds(lambda m=message: encode_frame(m))
        costs[f"{name}_decode_us"] = microseconds(lambda f=frame: decode_frame(f))
    return costs


async def drive(seconds: float) -> dict[str, Any]:
    arguments = [sys.executable, "-m", "bench.stream_turns", "--serve", *sys.argv[1:]]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as process:  # noqa: ASYNC220
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            client = Client()
            network = PeerNetwork(
                Link(Hello(CLUSTER, replica_key(2), b"", process_id=b"2"), client, 2.0)
            )
            client.network = network
            network.set_peers({1: f"127.0.0.1:{port}"})
            result: dict[str, Any] = {"loop": type(asyncio.get_running_loop()).__module__}
            await client.measure(fetch(100), 0.5)
            for name, size, make, unit in CASES:
                ours, bare = await compare(client, port, size, make, seconds)
                result[name] = round(ours * unit)
                result[f"{name}_floor"] = round(bare * unit)
                result[f"{name}_of_floor"] = round(ours / bare, 2)
            client.finished.clear()
            killed_at = time.perf_counter()
            process.kill()
            await client.finished.wait()
            result["refused_after_kill_ms"] = round((client.refused_at - killed_at) * 1000, 2)
            await network.stop()
        finally:
            process.kill()
    return {**result, **codec_cost()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="per figure")
    parser.add_argument("--plain-asyncio", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    print_form()
    factory = asyncio.new_event_loop if options.plain_asyncio else loop_factory()
    with asyncio.Runner(loop_factory=factory) as runner:
        if options.serve:
            runner.run(serve())
        else:
            print(json.dumps(runner.run(drive(options.seconds)), indent=2))


if __name__ == "__main__":
    main()
