"""The end of a write stream that its node keeps open: cancelled, with nothing left in gRPC."""

from __future__ import annotations

import asyncio
import contextlib

from quorate.client import stream
from quorate.client.call_tasks import opened_with_tasks
from quorate.client.channels import Node
from quorate.client.search import CALL_ERRORS
from quorate.client.stream import LiveStream
from quorum.v1.metadata_pb2 import WriterIdentity, WriteStreamRequest
from tests.support.served_node import cluster, serving

TURNS = 20
"""Of the event loop, between the end of a read and the status of its call."""


class HungCall:
    """Its node answers nothing. Cancelled, it ends its read at once and has its status later."""

    def __init__(self):
        self.cut = asyncio.Event()
        self.status = asyncio.Event()

    def cancel(self):
        self.cut.set()

    async def read(self):
        await self.cut.wait()
        raise asyncio.InvalidStateError

    async def done_writing(self):
        pass

    def status_comes(self, turns):
        if turns:
            asyncio.get_running_loop().call_soon(self.status_comes, turns - 1)
        else:
            self.status.set()


def test_a_stream_that_was_cut_is_over_when_grpc_has_its_status(monkeypatch):
    """gRPC's core may deliver the end of the read before the status of the call."""
    monkeypatch.setattr(stream, "END_SECONDS_MAX", 0.1)

    async def scenario():
        call = HungCall()
        status = asyncio.create_task(call.status.wait())
        had_status = []

        def on_lost(_stream, _why):
            had_status.append(status.done())
            call.status_comes(TURNS)

        live = LiveStream(
            "node",
            call,
            {status},
            take=lambda: None,
            on_answers=lambda _: None,
            on_lost=on_lost,
        )
        await live.end()
        assert had_status == [False]
        assert status.done()

    asyncio.run(scenario())


def test_the_tasks_of_a_call_are_its_own_and_end_with_its_status():
    """Two calls and tasks of others begin in the same turn of the loop."""

    async def scenario():
        _, nodes = cluster(1)
        async with serving(*nodes):
            node = Node(nodes[0].address, None)
            others = [asyncio.create_task(asyncio.sleep(60))]
            calls = [opened_with_tasks(node.metadata.WriteStream)]
            others.append(asyncio.create_task(asyncio.sleep(60)))
            calls.append(opened_with_tasks(node.metadata.WriteStream))
            for call, _ in calls:
                await call.write(WriteStreamRequest(hello=WriterIdentity(client_id="test")))
            (first, firsts), (second, seconds) = calls
            names = [task.get_coro().__qualname__ for task in (*firsts, *seconds)]
            assert names == 2 * ["_AioCall._handle_status_once_received"]
            assert not firsts & seconds
            first.cancel()
            await asyncio.wait(firsts)
            assert not [task for task in seconds if task.done()]
            second.cancel()
            await asyncio.wait(seconds)
            for call, _ in calls:
                with contextlib.suppress(*CALL_ERRORS, asyncio.CancelledError):
                    await call.read()
            for task in others:
                task.cancel()
            await node.channel.close()

    asyncio.run(scenario())
