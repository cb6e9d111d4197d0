"""What one write stream may hold: results and errors of few bytes in each of a few messages."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from quorate.services import outgoing
from quorate.services.outgoing import OutgoingAnswers
from quorum.v1 import commands_pb2
from quorum.v1.metadata_pb2 import ProducerCommands, WriterIdentity, WriteStreamRequest
from quorum.v1.metadata_pb2_grpc import MetadataServiceStub
from tests.support.served_node import cluster, serving


def test_errors_that_nobody_reads_stop_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: no message and no memory beyond a bound. Method: no write ends; all is refused."""
    monkeypatch.setattr(outgoing, "GATHERED_BYTES_MAX", 600)
    may_write = asyncio.Event()
    create = OutgoingAnswers.__init__
    made: list[OutgoingAnswers[Any]] = []

    def slowed(self: OutgoingAnswers[Any], send: Any, *arguments: Any) -> None:
        async def later(message: Any) -> None:
            await may_write.wait()
            await send(message)

        create(self, later, *arguments)
        made.append(self)

    monkeypatch.setattr(OutgoingAnswers, "__init__", slowed)
    commands, messages = 50, 40

    async def scenario(stream: Any) -> None:
        await stream.write(WriteStreamRequest(hello=WriterIdentity(client_id="c")))
        for first in range(0, commands * messages, commands):
            group = [commands_pb2.Command(tag=tag) for tag in range(first, first + commands)]
            await stream.write(WriteStreamRequest(groups=[ProducerCommands(commands=group)]))
        for _ in range(200):
            await asyncio.sleep(0.001)
        assert made[0].waiting <= 4 * commands
        may_write.set()
        left = set(range(commands * messages))
        while left:
            response = await stream.read()
            assert response.ByteSize() < 600 + 300
            left -= {answer.tag for answer in response.answers}
        await stream.done_writing()
        assert await stream.read() is grpc.aio.EOF

    async def run() -> None:
        _, nodes = cluster(1)
        async with serving(*nodes):
            async with grpc.aio.insecure_channel(nodes[0].address) as channel:
                stub = MetadataServiceStub(channel)  # type: ignore[no-untyped-call]
                await scenario(stub.WriteStream())

    asyncio.run(run())
