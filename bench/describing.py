"""A process of its own that describes a topic at a fixed rate, at the leader and at a follower.

In the process that creates topics, an answer would wait until that has encoded and decoded what it
creates. A third server beside them answers every call with its bytes and does nothing else. What
its callers wait for is a core, on a machine whose cores the nodes and the load occupy.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import grpc
from grpc import aio

from bench.loop import loop_factory
from quorate.client.client import Client

PER_SECOND = 50
IDLE_SERVER = "server that does nothing else"
_STOP_SECONDS_MAX = 30.0
_SERVICE, _METHOD = "bench.Idle", "Echo"


@asynccontextmanager
async def describing(nodes: Mapping[str, str], topic: str) -> AsyncIterator[dict[str, list[float]]]:
    """Describe a topic again and again at each of the nodes, given by name and address.

    At the end the dictionary has the milliseconds of each answer by name, and by ``IDLE_SERVER``.
    The event loop turns while the processes start and end: sessions of brokers depend on it.

    Raises:
        RuntimeError: A process failed; its error is on standard error.
    """
    found: dict[str, list[float]] = {}
    async with _process(_serve_idle) as idle:
        port = await asyncio.to_thread(_receive, idle)
        async with _process(_run, dict(nodes), topic, port) as describer:
            await asyncio.to_thread(_receive, describer)
            yield found
            describer.send(None)
            found.update(await asyncio.to_thread(_receive, describer))
        idle.send(None)


@asynccontextmanager
async def _process(work: Callable[..., None], *arguments: object) -> AsyncIterator[Connection]:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs, *arguments), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ours
    finally:
        ours.close()
        await asyncio.to_thread(process.join, _STOP_SECONDS_MAX)
        process.kill()


def _receive(connection: Connection) -> Any:
    try:
        return connection.recv()
    except EOFError as error:
        raise RuntimeError("a process that measures describes has failed") from error


def _run(connection: Connection, nodes: dict[str, str], topic: str, port: int) -> None:
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        connection.send(runner.run(_describe(connection, nodes, topic, port)))


async def _describe(
    connection: Connection, nodes: dict[str, str], topic: str, port: int
) -> dict[str, list[float]]:
    clients = {name: Client([address], timeout_seconds=60) for name, address in nodes.items()}
    found: dict[str, list[float]] = {name: [] for name in (*nodes, IDLE_SERVER)}

    async def describe(client: Client) -> None:
        (described,) = (await client.describe_topics([topic])).topics
        if described.error_code:
            raise RuntimeError(f"topic {topic!r} is not there: {described.error_code}")

    async with aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        echo = channel.unary_unary(f"/{_SERVICE}/{_METHOD}")

        async def call_idle() -> None:
            await echo(bytes(100), timeout=60)

        calls: dict[str, Callable[[], Awaitable[None]]] = {IDLE_SERVER: call_idle}
        try:
            for name, client in clients.items():
                calls[name] = partial(describe, client)
            for call in calls.values():
                await call()
            connection.send(None)
            while not connection.poll():
                for name, call in calls.items():
                    started = time.perf_counter()
                    await call()
                    found[name].append((time.perf_counter() - started) * 1000)
                await asyncio.sleep(1 / PER_SECOND)
        finally:
            for client in clients.values():
                await client.close()
    return found


def _serve_idle(connection: Connection) -> None:
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_idle_server(connection))


async def _idle_server(connection: Connection) -> None:
    async def echo(request: bytes, _: object) -> bytes:
        return request

    server = aio.server()
    handler = grpc.unary_unary_rpc_method_handler(echo)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(_SERVICE, {_METHOD: handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    connection.send(port)
    await asyncio.to_thread(connection.poll, None)
    await server.stop(None)
