"""A node that stops ends every call itself, with a status that sends its client elsewhere."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from quorate.client import TOPIC, Client
from quorate.client.errors import OutcomeUnknownError, RefusedError, from_rpc
from quorate.client.results import ChangeBatch
from quorum.transport.answers import DETAILS_KEY
from quorum.v1 import admin_pb2, common_pb2
from quorum.v1.admin_pb2_grpc import AdminServiceStub
from quorum.v1.errors_pb2 import OffsetBounds
from quorum.v1.metadata_pb2 import (
    DescribeTopicsRequest,
    FetchLogRequest,
    ReadLevel,
    ReadOptions,
    WatchRequest,
    WriteRequest,
)
from quorum.v1.metadata_pb2_grpc import MetadataServiceStub
from tests.support.served_node import cluster, serving, stop
from tests.unit.services.test_write_and_watch_services import HELLO, answers, change, message

STOPPING = common_pb2.ERROR_CODE_BROKER_NOT_AVAILABLE
PATIENCE_S = 60.0


def with_stubs(scenario, *, count=1):
    async def run():
        log, nodes = cluster(count)
        async with serving(*nodes) as servers:
            async with grpc.aio.insecure_channel(nodes[0].address) as channel:
                stubs = MetadataServiceStub(channel), AdminServiceStub(channel)
                await scenario(log, nodes[0], *stubs, servers[1])

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))


async def ending(call) -> grpc.aio.AioRpcError:
    """Return the end of a call or stream; skip its messages."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:  # noqa: PT012 - the last read
        if hasattr(call, "read"):
            while await call.read() is not grpc.aio.EOF:
                pass
        await call
    return caught.value


def details(error: grpc.aio.AioRpcError) -> dict[str, object]:
    data = dict(error.trailing_metadata())[DETAILS_KEY]
    found = {}
    for detail in Status.FromString(data).details:
        for kind in (ErrorInfo, RetryInfo, OffsetBounds):
            if detail.Is(kind.DESCRIPTOR):
                found[kind] = kind.FromString(detail.value)
    return found


def test_a_watch_gets_the_position_to_resume_from():
    async def scenario(log, node, metadata, admin, server):
        stream = metadata.Watch(WatchRequest(from_offset=0, from_epoch=0))
        assert (await stream.read()).changes.batches[-1].end_offset == log.end
        while not server.services.closing.is_awaited:
            await asyncio.sleep(0)
        await stop(server)
        error = await ending(stream)
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        found = details(error)
        assert found[ErrorInfo].reason == "BROKER_NOT_AVAILABLE"
        assert found[RetryInfo].retry_delay.ToMilliseconds() > 0
        bounds = found[OffsetBounds]
        assert (bounds.resume_offset, bounds.resume_epoch) == (log.end, 1)

    with_stubs(scenario)


def test_a_write_stream_hands_out_what_is_answered_and_ends():
    """Method: of two commands one is evaluated when the node stops; its answer comes first."""

    async def scenario(log, node, metadata, admin, server):
        stream = metadata.WriteStream()
        await stream.write(HELLO)
        assert (await stream.read()).HasField("accepted")
        node.held = []
        await stream.write(message(change(1), change(2)))
        await node.holds(2)
        node.held[0]()
        stopping = asyncio.create_task(stop(server))
        assert [answer.tag for answer in await answers(stream, 1)] == [1]
        error = from_rpc(await ending(stream))
        assert isinstance(error, RefusedError)
        assert error.code == STOPPING
        await stopping
        assert server.services.metadata.write_streams.open_count == 0

    with_stubs(scenario)


@pytest.mark.parametrize("has_closed", [False, True])
def test_a_silent_write_stream_ends_too(has_closed):
    """Method: no hello at all; or a half-close while a command is still being evaluated."""

    async def scenario(log, node, metadata, admin, server):
        stream = metadata.WriteStream()
        if has_closed:
            node.held = []
            await stream.write(HELLO)
            await stream.write(message(change(1)))
            await stream.done_writing()
            await node.holds(1)
        else:
            await stream.initial_metadata()
        await stop(server)
        error = await ending(stream)
        assert details(error)[ErrorInfo].reason == "BROKER_NOT_AVAILABLE"

    with_stubs(scenario)


def test_what_waits_is_answered_and_an_unjudged_change_is_unknown():
    async def scenario(log, node, metadata, admin, server):
        node.held, node.auto_confirm = [], False
        linearizable = ReadOptions(level=ReadLevel.READ_LEVEL_LINEARIZABLE)
        write = metadata.Write(WriteRequest(command=change(1)), timeout=30)
        read = metadata.DescribeTopics(DescribeTopicsRequest(read=linearizable), timeout=30)
        poll = metadata.FetchLog(FetchLogRequest(offset=log.end, max_wait_ms=30_000), timeout=30)
        changed = asyncio.get_running_loop().create_future()
        asked = asyncio.Event()

        async def change_voters(_change):
            asked.set()
            await changed

        node.change_voters = change_voters
        removal = admin.RemoveVoter(
            admin_pb2.RemoveVoterRequest(voter_id=2, directory_id=bytes(16)), timeout=30
        )
        await node.holds(1)
        await node.has_reads(1)
        await node.has_listeners(2)
        await asked.wait()
        await stop(server)
        for call in (write, removal):
            assert isinstance(from_rpc(await ending(call)), OutcomeUnknownError)
        for call in (read, poll):
            assert from_rpc(await ending(call)).code == STOPPING

    with_stubs(scenario)


def test_a_stopping_node_refuses_calls_with_its_reason():
    """No call is started: even a change is refused with a retriable code."""

    async def scenario(log, node, metadata, admin, server):
        await server.services.stop()
        stream = metadata.WriteStream()
        calls = [
            metadata.Watch(WatchRequest(from_offset=log.end)),
            metadata.Write(WriteRequest(command=change(1)), timeout=30),
            metadata.DescribeTopics(DescribeTopicsRequest(), timeout=30),
            stream,
        ]
        for call in calls:
            assert from_rpc(await ending(call)).code == STOPPING
        assert node.contexts == []

    with_stubs(scenario)


def test_a_client_that_does_not_read_is_cut_off():
    """Goal: a stop takes a bounded time. Method: a write to the stream that does not return."""

    async def scenario(log, node, metadata, admin, server):
        writing = asyncio.Event()

        async def write(*_arguments, **_position):
            writing.set()
            await asyncio.Event().wait()

        server.services.metadata.watches._write = write
        stream = metadata.Watch(WatchRequest(from_offset=0, from_epoch=0))
        await writing.wait()
        server.services.closing.begin()
        assert not await server.services.closing.all_ended(0.05)
        await server.methods.stop(server, None)
        assert server.methods.count == 0
        with pytest.raises(grpc.aio.AioRpcError):
            await stream.read()

    with_stubs(scenario)


def test_the_tasks_of_all_calls_are_over_when_a_stop_returns(caplog, capfd):
    """Goal: no task is cancelled at the end of the loop, which gRPC reports as a traceback.

    Method: streams that only gRPC ends, half of them dropped at the same moment.
    """

    async def scenario(log, node, metadata, admin, server):
        request = WatchRequest(from_offset=log.end, from_epoch=1)
        streams = [metadata.Watch(request, timeout=30) for _ in range(40)]
        for stream in streams:
            await stream.initial_metadata()
        assert server.methods.count == len(streams)
        for stream in streams[::2]:
            stream.cancel()
        await server.methods.stop(server, None)
        assert server.methods.count == 0
        for stream in streams:
            await stream.code()

    with_stubs(scenario)
    assert "Traceback" not in caplog.text + capfd.readouterr().err


def test_clients_go_on_elsewhere_without_a_gap():
    """Many watches and writers of one client; the node they use stops, another one leads."""

    async def run():
        log, nodes = cluster(2)
        async with serving(*nodes) as servers:
            async with Client([node.address for node in nodes]) as client:
                seen = [[] for _ in range(20)]
                offsets = asyncio.Condition()

                async def follow(into):
                    async for event in client.watch(may_restart=False, from_offset=1, from_epoch=1):
                        assert isinstance(event, ChangeBatch)
                        into.append((event.base_offset, event.end_offset))
                        async with offsets:
                            offsets.notify_all()

                async def all_at(end):
                    async with offsets:
                        await offsets.wait_for(lambda: all(s and s[-1][1] == end for s in seen))

                watching = [asyncio.create_task(follow(into)) for into in seen]
                await client.set_config(TOPIC, "t", "retention.ms", "0")
                await all_at(log.end)
                stopping = asyncio.create_task(stop(servers[1]))
                log.leader, log.epoch = 2, 2
                for value in range(1, 5):
                    await client.set_config(TOPIC, "t", "retention.ms", str(value))
                await stopping
                await all_at(log.end)
                for task in watching:
                    task.cancel()
                await asyncio.gather(*watching, return_exceptions=True)
        for each in seen:
            assert each[0][0] == 1
            assert all(a[1] == b[0] for a, b in pairwise(each))

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))
