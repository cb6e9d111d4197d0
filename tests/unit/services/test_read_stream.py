"""Many queries over one stream: what shares a round, what waits, what is bounded."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from quorate.client.limits import READ_MESSAGE_BYTES_MAX, READS_PER_MESSAGE_MAX
from quorate.services.admission import ServiceLimits
from quorum.v1.metadata_pb2 import (
    DescribeConfigsRequest,
    DescribeTopicsRequest,
    ListTopicsRequest,
    ReadOptions,
    ReadQuery,
    ReadStreamRequest,
)
from quorum.v1.metadata_pb2_grpc import MetadataServiceStub
from statemachine.codec import encode_record
from statemachine.records import ConfigRecord, TopicRecord
from tests.support.read_streams import (
    LINEARIZABLE,
    LOCAL,
    answers,
    at_least,
    codes,
    message,
    reason,
    with_streams,
)
from tests.support.served_node import FakeNode, cluster, serving

TOPIC_ID = bytes(range(16))


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
