"""The streams on the wire: hello, grouping, bounds, slow watchers, shared conversion."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from quorate.client.errors import OutcomeUnknownError, RefusedError, WatchLaggedError, from_rpc
from quorate.services import change_feed, write_stream
from quorum.errors import ErrorCode, QuorumUsageError
from quorum.v1 import commands_pb2, common_pb2
from quorum.v1.metadata_pb2 import (
    ProducerCommands,
    WatchRequest,
    WriteRequest,
    WriterIdentity,
    WriteStreamRequest,
)
from quorum.v1.metadata_pb2_grpc import MetadataServiceStub
from statemachine.codec import encode_record
from statemachine.records import ConfigRecord
from tests.support.served_node import cluster, serving

HELLO = WriteStreamRequest(hello=WriterIdentity(client_id="c", reason="r"))


def change(tag: int, sequence: int = 0, topic: str = "t") -> commands_pb2.Command:
    command = commands_pb2.Command(tag=tag, sequence=sequence)
    command.incremental_alter_configs.resource_type = 2
    command.incremental_alter_configs.resource_name = topic
    command.incremental_alter_configs.alterations.add(name="k", operation=1, value="v")
    return command


def message(*commands, **group) -> WriteStreamRequest:
    return WriteStreamRequest(groups=[ProducerCommands(commands=commands, **group)])


def with_stub(scenario, *, nodes=1, leader=1):
    async def run():
        log, made = cluster(nodes, leader=leader)
        async with serving(*made) as servers:
            async with grpc.aio.insecure_channel(made[0].address) as channel:
                await scenario(log, made, MetadataServiceStub(channel), servers)

    asyncio.run(run())


async def opened(stub):
    stream = stub.WriteStream()
    await stream.write(HELLO)
    accepted = (await stream.read()).accepted
    assert (accepted.node_id, accepted.leader_epoch, accepted.producer_window) == (1, 1, 32)
    return stream


async def answers(stream, count: int) -> list:
    found = []
    while len(found) < count:
        found += (await stream.read()).answers
    return found


def test_answers_due_in_one_turn_leave_in_one_message():
    async def scenario(log, nodes, stub, servers):
        log.known_producers |= {5, 6}
        stream = await opened(stub)
        nodes[0].held = []
        request = message(*(change(n, n) for n in range(8)), producer_id=5, producer_epoch=0)
        group = message(*(change(n, n) for n in range(8, 12)), producer_id=6, oldest_open=8)
        request.groups.append(group.groups[0])
        await stream.write(request)
        await nodes[0].holds(12)
        nodes[0].release()
        response = await stream.read()
        assert [answer.tag for answer in response.answers] == list(range(12))
        context = nodes[0].contexts[-1]
        assert (context.producer_id, context.sequence, context.oldest_open) == (6, 11, 8)
        assert (context.client_id, context.reason) == ("c", "r")
        stream.cancel()

    with_stub(scenario)


def test_a_closed_stream_still_gets_its_answers():
    async def scenario(log, nodes, stub, servers):
        stream = await opened(stub)
        nodes[0].held = []
        await stream.write(message(change(1), change(2)))
        await stream.done_writing()
        await nodes[0].holds(2)
        nodes[0].release()
        assert [a.tag for a in await answers(stream, 2)] == [1, 2]
        assert await stream.read() is grpc.aio.EOF
        assert servers[1].services.metadata.write_streams.open_count == 0

    with_stub(scenario)


def test_a_bad_command_does_not_affect_others_in_the_stream():
    async def scenario(log, nodes, stub, servers):
        stream = await opened(stub)
        bad = commands_pb2.Command(tag=2)
        long = change(3)
        long.origin.request_id = "x" * 2000
        await stream.write(message(change(1), bad, long, change(4)))
        codes = {a.tag: a.error_code for a in await answers(stream, 4)}
        invalid = common_pb2.ERROR_CODE_INVALID_REQUEST
        assert codes == {1: 0, 2: invalid, 3: invalid, 4: 0}
        stream.cancel()

    with_stub(scenario)


@pytest.mark.parametrize("first", [WriteStreamRequest(), message(change(1))])
def test_a_stream_begins_with_a_hello(first):
    async def scenario(log, nodes, stub, servers):
        stream = stub.WriteStream()
        await stream.write(first)
        with pytest.raises(grpc.aio.AioRpcError, match="must be a hello"):
            await stream.read()
        assert nodes[0].contexts == []

    with_stub(scenario)


def test_a_stream_has_one_hello():
    async def scenario(log, nodes, stub, servers):
        stream = await opened(stub)
        await stream.write(HELLO)
        with pytest.raises(grpc.aio.AioRpcError, match="a second hello"):
            await stream.read()

    with_stub(scenario)


def test_a_follower_refuses_the_stream_and_names_the_leader():
    async def scenario(log, nodes, stub, servers):
        stream = stub.WriteStream()
        await stream.write(HELLO)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stream.read()
        assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        error = from_rpc(caught.value)
        assert isinstance(error, RefusedError)
        assert (error.code_name, error.leader.leader_id) == ("NOT_CONTROLLER", 2)
        assert error.leader.address == nodes[1].address

    with_stub(scenario, nodes=2, leader=2)


def test_a_leader_that_is_not_ready_names_no_leader():
    async def scenario(log, nodes, stub, servers):
        nodes[0].is_ready = False
        stream = stub.WriteStream()
        await stream.write(HELLO)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stream.read()
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE

    with_stub(scenario)


def test_too_many_commands_in_a_message_end_the_stream():
    async def scenario(log, nodes, stub, servers):
        stream = await opened(stub)
        await stream.write(message(*(change(n) for n in range(1025))))
        with pytest.raises(grpc.aio.AioRpcError, match="1025 commands in one message"):
            await stream.read()
        assert nodes[0].contexts == []

    with_stub(scenario)


def test_too_many_open_commands_are_refused_unjudged(monkeypatch):
    monkeypatch.setattr(write_stream, "COMMANDS_PER_STREAM_MAX", 3)

    async def scenario(log, nodes, stub, servers):
        stream = stub.WriteStream()
        await stream.write(HELLO)
        await stream.read()
        nodes[0].held = []
        await stream.write(message(*(change(n) for n in range(5))))
        refused = await answers(stream, 2)
        assert [(a.tag, a.error_code) for a in refused] == [
            (3, common_pb2.ERROR_CODE_QUEUE_FULL),
            (4, common_pb2.ERROR_CODE_QUEUE_FULL),
        ]
        nodes[0].release()
        assert [a.tag for a in await answers(stream, 3)] == [0, 1, 2]
        stream.cancel()

    with_stub(scenario)


def test_a_command_above_the_size_limit_is_refused_alone():
    async def scenario(log, nodes, stub, servers):
        stream = await opened(stub)
        large = change(1)
        large.incremental_alter_configs.alterations[0].value = "x" * (1 << 20)
        await stream.write(message(large, change(2)))
        codes = {a.tag: a.error_code for a in await answers(stream, 2)}
        assert codes == {1: common_pb2.ERROR_CODE_MESSAGE_TOO_LARGE, 2: 0}
        stream.cancel()

    with_stub(scenario)


def test_the_unary_write_answers_or_refuses():
    async def scenario(log, nodes, stub, servers):
        request = WriteRequest(writer=WriterIdentity(client_id="one"), command=change(9))
        answer = (await stub.Write(request, timeout=30)).answer
        assert (answer.tag, answer.offset, answer.epoch) == (9, log.end, 1)
        assert nodes[0].contexts[-1].producer_id == -1
        request.producer_id, request.producer_epoch, request.oldest_open = 77, 0, 0
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Write(request, timeout=30)
        assert from_rpc(caught.value).code_name == "UNKNOWN_PRODUCER_ID"
        nodes[0].refuse = ErrorCode.OUTCOME_UNKNOWN
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Write(request.__class__(command=change(1)), timeout=30)
        assert isinstance(from_rpc(caught.value), OutcomeUnknownError)

    with_stub(scenario)


def test_a_late_answer_to_a_cancelled_call_is_dropped():
    async def scenario(log, nodes, stub, servers):
        nodes[0].held = []
        with pytest.raises(grpc.aio.AioRpcError):
            await stub.Write(WriteRequest(command=change(1)), timeout=0.1)
        nodes[0].release()
        await stub.Write(WriteRequest(command=change(2)), timeout=30)

    with_stub(scenario)


def test_watchers_at_the_same_place_share_one_conversion(monkeypatch):
    monkeypatch.setattr(change_feed, "PROGRESS_SECONDS", 0.02)

    async def scenario(log, nodes, stub, servers):
        streams = [stub.Watch(WatchRequest(from_offset=log.end)) for _ in range(10)]
        for stream in streams:
            assert (await stream.read()).HasField("progress")
        nodes[0].commit()
        for stream in streams:
            response = await stream.read()
            while response.HasField("progress"):
                response = await stream.read()
            (batch,) = response.changes.batches
            assert batch.base_offset == log.end - 1
        assert nodes[0].log_reads == 1
        assert servers[1].services.metadata.watches.open.open_count == 10
        for stream in streams:
            stream.cancel()

    with_stub(scenario)


def test_a_watcher_that_does_not_read_is_ended_with_the_offset_to_resume_from():
    async def scenario():
        _log, nodes = cluster(1)
        for n in range(40):
            nodes[0].commit(encode_record(ConfigRecord(2, "t", "k", f"{n}" + "v" * 200_000)))
        ended = asyncio.Event()
        async with serving(*nodes, on_failure=lambda name, code: ended.set()) as servers:
            servers[1].services.metadata.watches._stall_seconds = 0.1
            async with grpc.aio.insecure_channel(nodes[0].address) as channel:
                stream = MetadataServiceStub(channel).Watch(WatchRequest(from_offset=0))
                await stream.read()
                await ended.wait()
                seen = 0
                with pytest.raises(grpc.aio.AioRpcError) as caught:  # noqa: PT012 - the last read
                    while True:
                        seen = (await stream.read()).changes.batches[-1].end_offset
        error = from_rpc(caught.value)
        assert isinstance(error, WatchLaggedError)
        assert 0 < error.resume_offset <= max(seen, 1) + 1
        assert error.resume_epoch == 1

    asyncio.run(scenario())


def test_an_idle_watch_reports_its_position(monkeypatch):
    monkeypatch.setattr(change_feed, "PROGRESS_SECONDS", 0.02)

    async def scenario(log, nodes, stub, servers):
        stream = stub.Watch(WatchRequest(from_offset=log.end, from_epoch=1))
        progress = (await stream.read()).progress
        assert (progress.offset, progress.epoch) == (log.end, 1)
        stream.cancel()

    with_stub(scenario)


@pytest.mark.parametrize("answers_with", ["what is left", "an error", "nothing"])
def test_a_log_trimmed_while_it_is_read_leaves_no_gap(monkeypatch, answers_with):
    """Goal: the watcher gets an error for a read that lost the race. Method: trim inside it."""

    async def scenario(log, nodes, stub, servers):
        for _ in range(5):
            nodes[0].commit()
        read_log = nodes[0].read_log

        async def trimmed_meanwhile(offset, max_bytes, end_offset):
            log.trim(4)
            if answers_with == "an error":
                raise QuorumUsageError("read at 2, below log start 4")
            return b"" if answers_with == "nothing" else await read_log(4, max_bytes, end_offset)

        monkeypatch.setattr(nodes[0], "read_log", trimmed_meanwhile)
        stream = stub.Watch(WatchRequest(from_offset=2, from_epoch=1))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stream.read()
        assert caught.value.code() is grpc.StatusCode.OUT_OF_RANGE
        assert from_rpc(caught.value).bounds.earliest_offset == 4

    with_stub(scenario)


def test_a_watch_goes_through_a_change_of_leader_without_a_gap():
    """Goal: every change once, in order. Method: two leadership terms, with each one's control
    batch.
    """

    async def scenario(log, nodes, stub, servers):
        stream = stub.Watch(WatchRequest(from_offset=log.end, from_epoch=1))
        expected, seen = log.end, []
        for epoch in (1, 2, 3):
            log.epoch = epoch
            nodes[0].commit()
            nodes[0].commit()
        while expected < log.end:
            response = await stream.read()
            for batch in response.changes.batches:
                assert batch.base_offset == expected
                expected = batch.end_offset
                seen.append(batch.epoch)
        assert seen == [1, 1, 2, 2, 3, 3]
        stream.cancel()

    with_stub(scenario)


def test_a_watch_below_the_log_start_gets_the_position_to_restart_from():
    async def scenario(log, nodes, stub, servers):
        for _ in range(5):
            nodes[0].commit()
        log.trim(4)
        stream = stub.Watch(WatchRequest(from_offset=2, from_epoch=1))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stream.read()
        assert caught.value.code() is grpc.StatusCode.OUT_OF_RANGE
        assert from_rpc(caught.value).bounds.earliest_offset == 4

    with_stub(scenario)
