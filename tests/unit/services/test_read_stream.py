"""Many queries over one stream: what shares a round, what waits, what is bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from quorate.client.limits import READ_MESSAGE_BYTES_MAX, READS_PER_MESSAGE_MAX
from quorate.services import read_stream
from quorate.services.admission import ServiceLimits
from quorum.transport.answers import DETAILS_KEY
from quorum.v1 import common_pb2
from quorum.v1.metadata_pb2 import (
    DescribeConfigsRequest,
    DescribeTopicsRequest,
    ListTopicsRequest,
    ReadAnswer,
    ReadLevel,
    ReadOptions,
    ReadQuery,
    ReadStreamRequest,
)
from quorum.v1.metadata_pb2_grpc import MetadataServiceStub
from statemachine.codec import encode_record
from statemachine.records import ConfigRecord, TopicRecord
from tests.support.served_node import FakeNode, cluster, serving

LINEARIZABLE = ReadOptions(level=ReadLevel.READ_LEVEL_LINEARIZABLE)
LOCAL = ReadOptions(level=ReadLevel.READ_LEVEL_LOCAL)
TOPIC_ID = bytes(range(16))


def at_least(offset: int) -> ReadOptions:
    return ReadOptions(level=ReadLevel.READ_LEVEL_AT_LEAST, at_least_offset=offset)


def message(*levels: ReadOptions, first_tag: int = 1, max_wait_ms: int = 0) -> ReadStreamRequest:
    """One listing of topics at each level, with tags from ``first_tag`` on."""
    queries = [
        ReadQuery(tag=tag, list_topics=ListTopicsRequest(read=level))
        for tag, level in enumerate(levels, first_tag)
    ]
    return ReadStreamRequest(queries=queries, max_wait_ms=max_wait_ms)


async def answers(stream: Any, count: int) -> dict[int, ReadAnswer]:
    """The next ``count`` answers, by tag."""
    found: dict[int, ReadAnswer] = {}
    while len(found) < count:
        response = await stream.read()
        assert response is not grpc.aio.EOF
        assert response.answers
        for answer in response.answers:
            assert answer.tag not in found
            found[answer.tag] = answer
    return found


def with_streams(
    scenario: Callable[..., Awaitable[None]], *, nodes: int = 1, streams: int = 1, **options: Any
) -> None:
    """Run ``scenario(node, stream...)`` on node 1, which does not lead where there are more."""

    async def run() -> None:
        _, made = cluster(nodes, leader=nodes)
        async with serving(*made, **options):
            async with grpc.aio.insecure_channel(made[0].address) as channel:
                stub = MetadataServiceStub(channel)  # type: ignore[no-untyped-call]
                await scenario(made[0], *(stub.ReadStream() for _ in range(streams)))

    asyncio.run(run())


async def reason(stream: Any) -> str:
    """Why the stream has ended."""

    async def to_the_end() -> None:
        while await stream.read() is not grpc.aio.EOF:
            pass

    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await to_the_end()
    (details,) = (v for k, v in caught.value.trailing_metadata() or () if k == DETAILS_KEY)
    info = ErrorInfo()
    assert Status.FromString(details).details[0].Unpack(info)
    return info.reason


def codes(found: dict[int, ReadAnswer]) -> dict[int, str]:
    return {tag: common_pb2.ErrorCode.Name(answer.error_code)[11:] for tag, answer in found.items()}


def test_each_kind_of_query_is_answered_from_one_image() -> None:
    async def scenario(node: FakeNode, stream: Any) -> None:
        node.commit(encode_record(TopicRecord("a", TOPIC_ID)))
        node.commit(encode_record(ConfigRecord(2, "a", "retention.ms", "7")))
        resource = {"type": 2, "name": "a"}
        await stream.write(
            ReadStreamRequest(
                queries=[
                    ReadQuery(tag=7, list_topics=ListTopicsRequest()),
                    ReadQuery(tag=8, describe_topics=DescribeTopicsRequest(names=["a", "b"])),
                    ReadQuery(tag=9, describe_configs=DescribeConfigsRequest(resources=[resource])),
                ]
            )
        )
        found = await answers(stream, 3)
        assert [topic.name for topic in found[7].list_topics.topics] == ["a"]
        described = found[8].describe_topics.topics
        assert [topic.error_code for topic in described] == [0, 3]
        (configs,) = found[9].describe_configs.resources
        assert [(entry.name, entry.value) for entry in configs.entries] == [("retention.ms", "7")]
        for tag, kind in ((7, "list_topics"), (8, "describe_topics"), (9, "describe_configs")):
            position = getattr(found[tag], kind).position
            assert (position.offset, position.age_ms, position.node_id) == (node.log.end, 5, 1)

    with_streams(scenario)


@pytest.mark.parametrize("nodes", [1, 2])
def test_the_linearizable_queries_of_a_message_share_one_round(nodes: int) -> None:
    """And nothing is answered before it, nor before the image has got there."""

    async def scenario(node: FakeNode, stream: Any) -> None:
        node.auto_confirm = False
        await stream.write(message(*[LINEARIZABLE] * 50, LOCAL))
        assert set(await answers(stream, 1)) == {51}
        await node.has_reads(1)
        assert len(node.reads) == 1
        node.reads.pop()(node.log.end + 1)
        await node.has_waits(1)
        # A later message makes a round of its own: the first one began before it.
        await stream.write(message(LINEARIZABLE, first_tag=60))
        await node.has_reads(1)
        node.commit()
        found = await answers(stream, 50)
        assert set(found) == set(range(1, 51))
        assert {answer.list_topics.position.offset for answer in found.values()} == {node.log.end}
        node.reads.pop()(node.log.end)
        assert set(await answers(stream, 1)) == {60}

    with_streams(scenario, nodes=nodes)


def test_each_query_waits_for_its_own_offset() -> None:
    async def scenario(node: FakeNode, stream: Any) -> None:
        end = node.log.end
        await stream.write(message(at_least(end + 2), at_least(end), at_least(end + 1)))
        assert set(await answers(stream, 1)) == {2}
        await node.has_waits(2)
        node.commit()
        assert set(await answers(stream, 1)) == {3}
        node.commit()
        assert set(await answers(stream, 1)) == {1}

    with_streams(scenario)


def test_a_query_that_cannot_be_answered_is_refused_and_the_others_are_answered() -> None:
    async def scenario(node: FakeNode, stream: Any) -> None:
        request = message(at_least(-3), ReadOptions(level=99), LOCAL)  # type: ignore[arg-type]
        request.queries.add(tag=4)
        await stream.write(request)
        found = await answers(stream, 4)
        assert codes(found) == {
            1: "INVALID_REQUEST", 2: "INVALID_REQUEST", 3: "NONE", 4: "INVALID_REQUEST",
        }  # fmt: skip
        assert "-3 is negative" in found[1].message
        assert "level 99" in found[2].message
        assert "no kind" in found[4].message

    with_streams(scenario)


def test_a_wait_in_vain_ends_in_time_with_its_reason() -> None:
    async def scenario(node: FakeNode, stream: Any) -> None:
        node.auto_confirm = False
        await stream.write(message(LINEARIZABLE, at_least(node.log.end + 9), max_wait_ms=30))
        found = await answers(stream, 2)
        assert codes(found) == {1: "REQUEST_TIMED_OUT", 2: "OFFSET_NOT_AVAILABLE"}
        assert "no leader confirmed the read within 0.03 s" in found[1].message
        await node.has_waits(0)
        # What comes too late changes nothing.
        node.reads.pop()(node.log.end)
        await stream.write(message(LOCAL, first_tag=3))
        assert set(await answers(stream, 1)) == {3}

    with_streams(scenario)


def test_an_unconfirmed_read_names_the_leader() -> None:
    async def scenario(node: FakeNode, stream: Any) -> None:
        node.auto_confirm = False
        await stream.write(message(LINEARIZABLE))
        await node.has_reads(1)
        node.reads.pop()(None)
        found = await answers(stream, 1)
        assert codes(found) == {1: "NOT_LEADER_OR_FOLLOWER"}
        assert (found[1].leader.leader_id, found[1].leader.address) == (2, node.peers[2].address)

    with_streams(scenario, nodes=2)


def test_a_node_where_too_many_wait_refuses_those_queries_and_goes_on() -> None:
    """It is found out when the confirmation arrives, where an exception would end the node."""

    async def scenario(node: FakeNode, stream: Any) -> None:
        node.auto_confirm, node.waits_max = False, 0
        await stream.write(message(LINEARIZABLE, LINEARIZABLE, LOCAL))
        await node.has_reads(1)
        node.reads.pop()(node.log.end + 1)
        found = codes(await answers(stream, 3))
        assert found == {1: "RESOURCE_EXHAUSTED", 2: "RESOURCE_EXHAUSTED", 3: "NONE"}

    with_streams(scenario)


def test_waiting_messages_have_bounded_places() -> None:
    """One place."""

    async def scenario(node: FakeNode, stream: Any) -> None:
        node.auto_confirm = False
        await stream.write(message(LINEARIZABLE))
        await stream.write(message(LINEARIZABLE, LINEARIZABLE, first_tag=2))
        found = await answers(stream, 2)
        assert codes(found) == {2: "RESOURCE_EXHAUSTED", 3: "RESOURCE_EXHAUSTED"}
        node.reads.pop()(node.log.end)
        assert set(await answers(stream, 1)) == {1}
        node.auto_confirm = True
        await stream.write(message(LINEARIZABLE, first_tag=4))
        assert codes(await answers(stream, 1)) == {4: "NONE"}

    with_streams(scenario, limits=ServiceLimits(unary_calls_max=2))


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (message(*[LOCAL] * (READS_PER_MESSAGE_MAX + 1)), "INVALID_REQUEST"),
        (ReadStreamRequest(max_wait_ms=-1), "INVALID_REQUEST"),
        (
            ReadStreamRequest(
                queries=[
                    ReadQuery(
                        describe_topics=DescribeTopicsRequest(names=["x" * READ_MESSAGE_BYTES_MAX])
                    )
                ]
            ),
            "MESSAGE_TOO_LARGE",
        ),
    ],
    ids=["many", "negative", "large"],
)
def test_a_message_that_no_client_sends_ends_the_stream(
    request_: ReadStreamRequest, code: str
) -> None:
    async def scenario(_node: FakeNode, stream: Any) -> None:
        await stream.write(request_)
        assert await reason(stream) == code

    with_streams(scenario)


def named(node: FakeNode, names: Sequence[str]) -> None:
    for number, name in enumerate(names, 1):
        node.commit(encode_record(TopicRecord(name, number.to_bytes(16, "big"))))


def test_large_answers_leave_in_many_messages_and_none_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Goal: no message grows beyond its bound. Method: a bound that three answers exceed."""
    monkeypatch.setattr(read_stream, "_GATHERED_BYTES", 600)

    async def scenario(node: FakeNode, stream: Any) -> None:
        named(node, ["n" * 200])
        await stream.write(message(*[LOCAL] * 100))
        found: set[int] = set()
        while len(found) < 100:
            response = await stream.read()
            assert response.ByteSize() < 600 + 300
            found |= {answer.tag for answer in response.answers}

    with_streams(scenario)


def test_a_client_that_reads_nothing_makes_the_node_hold_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Goal: a few messages, however much is asked for. Method: a write that does not end."""
    monkeypatch.setattr(read_stream, "_GATHERED_BYTES", 600)
    made: list[read_stream.ReadSession] = []
    create = read_stream.ReadSession.__init__

    def kept(self: read_stream.ReadSession, *arguments: Any) -> None:
        create(self, *arguments)
        made.append(self)

    monkeypatch.setattr(read_stream.ReadSession, "__init__", kept)

    async def scenario(node: FakeNode, stream: Any) -> None:
        named(node, ["n" * 60_000])
        await stream.write(message(*[LOCAL] * 500))
        while not made or not made[0]._ready:
            await asyncio.sleep(0)
        for _ in range(100):
            await asyncio.sleep(0)
            held = made[0]._outgoing.waiting
            assert held <= 4
        assert set(await answers(stream, 500)) == set(range(1, 501))

    with_streams(scenario)


def test_an_answer_that_no_message_holds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_stream, "_ANSWER_BYTES_MAX", 100)

    async def scenario(node: FakeNode, stream: Any) -> None:
        named(node, ["n" * 200])
        await stream.write(message(LOCAL))
        found = await answers(stream, 1)
        assert codes(found) == {1: "MESSAGE_TOO_LARGE"}
        assert not found[1].HasField("list_topics")

    with_streams(scenario)


def test_a_stream_that_ends_leaves_nothing_behind() -> None:
    async def scenario(node: FakeNode, stream: Any) -> None:
        node.auto_confirm = False
        await stream.write(message(LINEARIZABLE, at_least(node.log.end + 1)))
        await node.has_reads(1)
        await node.has_waits(1)
        stream.cancel()
        await node.has_waits(0)
        node.reads.pop()(node.log.end)

    with_streams(scenario)


def test_a_stopping_node_sends_ready_results_and_the_reason_for_its_end() -> None:
    async def run() -> None:
        _, (node,) = cluster(1)
        async with serving(node) as servers:
            async with grpc.aio.insecure_channel(node.address) as channel:
                stub = MetadataServiceStub(channel)  # type: ignore[no-untyped-call]
                stream = stub.ReadStream()
                node.auto_confirm = False
                await stream.write(message(LINEARIZABLE, LOCAL))
                await node.has_reads(1)
                servers[1].services.closing.begin()
                assert set(await answers(stream, 1)) == {2}
                assert await reason(stream) == "BROKER_NOT_AVAILABLE"

    asyncio.run(run())


def test_a_client_that_half_closes_gets_all_its_answers() -> None:
    async def scenario(node: FakeNode, stream: Any) -> None:
        node.auto_confirm = False
        await stream.write(message(LINEARIZABLE))
        await stream.done_writing()
        await node.has_reads(1)
        node.reads.pop()(node.log.end)
        assert set(await answers(stream, 1)) == {1}
        assert await stream.read() is grpc.aio.EOF

    with_streams(scenario)


def test_a_stream_with_too_many_open_queries_is_not_read_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Goal: a bound on what one stream holds. Method: a bound of ten, and thirty messages."""
    monkeypatch.setattr(read_stream, "READS_PER_STREAM_MAX", 10)

    async def scenario(node: FakeNode, stream: Any) -> None:
        node.auto_confirm = False
        for tag in range(1, 31):
            await stream.write(message(LINEARIZABLE, first_tag=tag))
        answered: set[int] = set()
        while len(answered) < 30:
            await node.has_reads(min(11, 30 - len(answered)))
            for _ in range(50):
                await asyncio.sleep(0)
            assert len(node.reads) <= 11
            node.reads.pop(0)(node.log.end)
            answered |= set(await answers(stream, 1))

    with_streams(scenario)
