"""A client in a process of its own that describes topics at a fixed rate, and keeps its latencies.

In the process that creates topics, an answer would wait until that has encoded and decoded what it
creates.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection

from bench.loop import loop_factory
from quorate.client.client import Client

PER_SECOND = 50
_STOP_SECONDS_MAX = 30.0


@contextmanager
def describing(addresses: Sequence[str], topic: str) -> Iterator[list[float]]:
    """Describe a topic again and again; at the end the list has the milliseconds of each answer.

    Raises:
        RuntimeError: The process failed; its error is on standard error.
    """
    found: list[float] = []
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_run, args=(list(addresses), topic, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        _receive(ours)
        yield found
        ours.send(None)
        found.extend(_receive(ours))
    finally:
        ours.close()
        process.join(_STOP_SECONDS_MAX)
        process.kill()


def _receive(connection: Connection) -> list[float]:
    try:
        received: list[float] = connection.recv()
    except EOFError as error:
        raise RuntimeError("the process that describes topics has failed") from error
    return received


def _run(addresses: list[str], topic: str, connection: Connection) -> None:
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        connection.send(runner.run(_describe(addresses, topic, connection)))


async def _describe(addresses: list[str], topic: str, connection: Connection) -> list[float]:
    found: list[float] = []
    async with Client(addresses, timeout_seconds=60) as client:
        await client.describe_topics([topic])
        connection.send([])
        while not connection.poll():
            started = time.perf_counter()
            (described,) = (await client.describe_topics([topic])).topics
            found.append((time.perf_counter() - started) * 1000)
            if described.error_code:
                raise RuntimeError(f"topic {topic!r} is not there: {described.error_code}")
            await asyncio.sleep(1 / PER_SECOND)
    return found
