"""The machine's best possible figures, measured in the same run: disk syncs and gRPC echoes."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from grpc import aio

from bench.closed_loop import percentile
from bench.loop import loop_factory

_SYNC_BYTES = 4096
_ECHO_BYTES = 100
_ECHO_STREAMS = 64
_UNARY = "/bench.Floor/Unary"
_STREAM = "/bench.Floor/Stream"


@dataclass(frozen=True, slots=True)
class Floors:
    """Limits for any system on this machine: minimum latencies, maximum rates."""

    fdatasync_p50_ms: float
    fdatasync_p99_ms: float
    grpc_unary_per_s: float
    grpc_unary_64_per_s: float
    grpc_stream_per_s: float
    grpc_streams_64_per_s: float


def measure_fdatasync(folder: Path, *, seconds: float) -> tuple[float, float]:
    """Return the median and 99th percentile of appending and syncing 4 KiB, in milliseconds."""
    took: list[float] = []
    block = bytes(_SYNC_BYTES)
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        until = time.perf_counter() + seconds
        while (before := time.perf_counter()) < until:
            file.write(block)
            os.fdatasync(file.fileno())
            took.append((time.perf_counter() - before) * 1000)
    took.sort()
    return percentile(took, 0.5), percentile(took, 0.99)


async def _unary(request: bytes, _: Any) -> bytes:
    return request


async def _stream(requests: AsyncIterator[bytes], _: Any) -> AsyncIterator[bytes]:
    async for request in requests:
        yield request


async def _rate(one_turn: Any, parallel: int, seconds: float) -> float:
    turns = 0
    until = time.perf_counter() + seconds

    async def loop(number: int) -> None:
        nonlocal turns
        while time.perf_counter() < until:
            await one_turn(number)
            turns += 1

    await asyncio.gather(*(loop(number) for number in range(parallel)))
    return turns / seconds


async def _measure_echo(seconds: float) -> tuple[float, float, float, float]:
    """Measure with client and server in one process: about half the rate of two processors."""
    server = aio.server()
    handlers = {
        "Unary": grpc.unary_unary_rpc_method_handler(_unary),
        "Stream": grpc.stream_stream_rpc_method_handler(_stream),
    }
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("bench.Floor", handlers),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    payload = bytes(_ECHO_BYTES)
    try:
        async with aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            unary = channel.unary_unary(_UNARY)
            calls = [channel.stream_stream(_STREAM)() for _ in range(_ECHO_STREAMS)]

            async def unary_turn(_: int) -> None:
                await unary(payload)

            async def stream_turn(number: int) -> None:
                await calls[number].write(payload)
                await calls[number].read()

            rates = [
                await _rate(turn, parallel, seconds)
                for turn in (unary_turn, stream_turn)
                for parallel in (1, _ECHO_STREAMS)
            ]
            for call in calls:
                await call.done_writing()
    finally:
        await server.stop(None)
    return rates[0], rates[1], rates[2], rates[3]


def measure_floors(folder: Path, *, seconds: float) -> Floors:
    """Measure all floors, each for about ``seconds``."""
    p50_ms, p99_ms = measure_fdatasync(folder, seconds=seconds)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        unary, unary_64, stream, streams_64 = runner.run(_measure_echo(seconds))
    return Floors(p50_ms, p99_ms, unary, unary_64, stream, streams_64)
