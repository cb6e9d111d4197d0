"""What a program without a state machine does about broker events, by the messages alone.

The recipe of docs/operations/client.md: behind the event it asks for the topics that may change by
it, page by page, and leaves out what an answer has already. Compared with the image of the node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import grpc
import pytest

from quorum.types import NO_NODE
from quorum.v1 import metadata_pb2
from quorum.v1.metadata_pb2 import DescribeTopicsRequest, ReadOptions, WatchRequest
from quorum.v1.metadata_pb2_grpc import MetadataServiceStub
from statemachine.codec import encode_record
from statemachine.image import MetadataImage
from statemachine.records import (
    BrokerFencedEvent,
    BrokerUnfencedEvent,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tests.support.record_strategies import World
from tests.support.served_node import FakeNode, cluster, serving

EVENTS = (
    "broker_fenced_event",
    "broker_unfenced_event",
    "broker_shutdown_event",
    "broker_leaving_event",
)
PAGE_TOPICS = 2
"""A page of the test; a program asks for up to 10,000 topics at once."""
_UNCHANGED = -2


class Table:
    """All partitions, by (topic id, number), from records and answers."""

    def __init__(self, stub: MetadataServiceStub) -> None:
        self._stub = stub
        self.partitions: dict[tuple[bytes, int], dict[str, Any]] = {}
        self.included: dict[bytes, int] = {}
        """The offset of the last answer about a topic: changes below it are in the table."""
        self.end = 0
        self.pages = 0

    async def take(self, message: Any) -> None:
        for record in message.state.typed_records:
            self._read(record, 0)
        if message.HasField("state") and message.state.is_last:
            self.end = message.state.offset
        for batch in message.changes.batches:
            events = [self._read(each, batch.end_offset) for each in batch.typed_records]
            for event in events:
                if event is not None:
                    await self._ask(event, batch.end_offset)
            self.end = batch.end_offset

    def _read(self, record: Any, end_offset: int) -> tuple[str, int] | None:
        """Apply a record; return the kind and the broker of an event."""
        kind = record.WhichOneof("record")
        if kind in EVENTS:
            return kind, int(getattr(record, kind).broker_id)
        content = getattr(record, kind)
        if kind == "remove_topic_record":
            self._drop(content.topic_id)
        elif kind in ("partition_record", "partition_change_record") and (
            end_offset > self.included.get(content.topic_id, 0) or not end_offset
        ):
            self._change(kind, content)
        return None

    def _change(self, kind: str, content: Any) -> None:
        key = content.topic_id, content.partition_id
        if kind == "partition_record":
            self.partitions[key] = row_of(content)
            return
        row = self.partitions[key]
        for name in ("isr", "replicas"):
            if content.HasField(name):
                row[name] = tuple(getattr(content, name).values)
        if content.leader != _UNCHANGED:
            row |= {"leader": content.leader, "leader_epoch": row["leader_epoch"] + 1}
        row["partition_epoch"] += 1

    async def _ask(self, event: tuple[str, int], offset: int) -> None:
        wanted = {
            topic_id
            for (topic_id, _), row in self.partitions.items()
            if _may_change(row, *event) and self.included.get(topic_id, 0) < offset
        }
        left = sorted(wanted)
        while left:
            page, left = left[:PAGE_TOPICS], left[PAGE_TOPICS:]
            answer = await self._stub.DescribeTopics(
                DescribeTopicsRequest(
                    read=ReadOptions(
                        level=metadata_pb2.READ_LEVEL_AT_LEAST, at_least_offset=offset
                    ),
                    topic_ids=page,
                ),
                timeout=60,
            )
            self.pages += 1
            self._replace(answer.topics, page, answer.position.offset)

    def _replace(self, topics: Iterable[Any], page: Iterable[bytes], offset: int) -> None:
        for topic_id in page:
            self._drop(topic_id)
            self.included[topic_id] = offset
        for topic in topics:
            # A topic that was deleted meanwhile has an error code and no partitions.
            for each in topic.partitions:
                self.partitions[topic.topic_id, each.partition] = row_of(each)

    def _drop(self, topic_id: bytes) -> None:
        for key in [key for key in self.partitions if key[0] == topic_id]:
            del self.partitions[key]


def _may_change(row: dict[str, Any], kind: str, broker: int) -> bool:
    if kind == "broker_unfenced_event" and row["leader"] == NO_NODE:
        return True
    # A leader is a replica in every cluster, but not in every random world.
    return broker in (*row["replicas"], *row["isr"], row["leader"])


def row_of(content: Any) -> dict[str, Any]:
    leader = content.leader_id if hasattr(content, "leader_id") else content.leader
    return {
        "leader": leader,
        "leader_epoch": content.leader_epoch,
        "partition_epoch": content.partition_epoch,
        "replicas": tuple(content.replicas),
        "isr": tuple(content.isr),
    }


def rows(image: MetadataImage) -> dict[tuple[bytes, int], dict[str, Any]]:
    return {
        (topic_id, number): {name: getattr(state, name) for name in ROW}
        for topic_id, states in image.topics.partitions.items()
        for number, state in states.items()
    }


ROW = ("leader", "leader_epoch", "partition_epoch", "replicas", "isr")


async def reader_of(node: FakeNode, channel: grpc.aio.Channel) -> tuple[Table, Any]:
    stub = MetadataServiceStub(channel)  # type: ignore[no-untyped-call]
    stream = stub.Watch(WatchRequest(record_form=metadata_pb2.RECORD_FORM_TYPED))
    return Table(stub), stream


async def catch_up(table: Table, stream: Any, end: int) -> None:
    while table.end < end:
        await table.take(await stream.read())


def test_an_event_of_which_the_reader_hears_late() -> None:
    """Goal: the answer has a change behind the event, too, which must not be counted twice."""

    async def scenario() -> None:
        _, (node,) = cluster(1)
        topics = [bytes([number]) * 16 for number in range(1, 6)]
        node.commit(*(encode_record(RegisterBrokerRecord(each, broker_epoch=each + 1, fenced=False))
                      for each in (1, 2)))  # fmt: skip
        for topic in topics:
            record = PartitionRecord(0, topic, (1, 2), (1, 2), leader=1)
            node.commit(encode_record(TopicRecord(f"t{topic[0]}", topic)), encode_record(record))
        async with serving(node), grpc.aio.insecure_channel(node.address) as channel:
            table, stream = await reader_of(node, channel)
            await catch_up(table, stream, node.image.provenance.end_offset)
            node.commit(encode_record(BrokerFencedEvent(1, 2)))
            end = node.commit(encode_record(PartitionChangeRecord(0, topics[0], leader=2)))
            await catch_up(table, stream, end)
            assert {row["leader"] for row in table.partitions.values()} == {2}
            assert table.partitions == rows(node.image)
            epochs = [table.partitions[each, 0]["leader_epoch"] for each in topics[:2]]
            assert epochs[0] == epochs[1] + 1, "the later change counts once"
            assert table.pages == 3, "five topics in pages of two"
            stream.cancel()

    asyncio.run(scenario())


def test_an_unfenced_broker_elects_leaders_of_topics_that_it_has_no_part_in() -> None:
    """Goal: the reader asks for those, too. Method: their election was allowed meanwhile."""

    async def scenario() -> None:
        _, (node,) = cluster(1)
        topic = b"t" * 16
        node.commit(*(encode_record(RegisterBrokerRecord(each, broker_epoch=each + 1, fenced=False))
                      for each in (1, 2)))  # fmt: skip
        node.commit(
            encode_record(RegisterBrokerRecord(3, broker_epoch=4)),
            encode_record(TopicRecord("t", topic)),
            encode_record(PartitionRecord(0, topic, (1, 2), (1,), leader=1)),
        )
        async with serving(node), grpc.aio.insecure_channel(node.address) as channel:
            table, stream = await reader_of(node, channel)
            await catch_up(table, stream, node.commit(encode_record(BrokerFencedEvent(1, 2))))
            assert table.partitions[topic, 0]["leader"] == NO_NODE
            unclean = ConfigRecord(2, "t", "unclean.leader.election.enable", "true")
            node.commit(encode_record(unclean))
            await catch_up(table, stream, node.commit(encode_record(BrokerUnfencedEvent(3, 4))))
            assert table.partitions == rows(node.image)
            assert table.partitions[topic, 0]["leader"] == 2
            stream.cancel()

    asyncio.run(scenario())


@pytest.mark.parametrize("seed", [*range(6), 13, 55])
def test_any_history(seed: int) -> None:
    """Goal: brokers, topics and partitions change in any order, and the reader is behind."""

    async def scenario() -> None:
        _, (node,) = cluster(1)
        world = World(seed, reuses_names=True)
        async with serving(node), grpc.aio.insecure_channel(node.address) as channel:
            table, stream = await reader_of(node, channel)
            asked = 0
            for _ in range(12):
                end = 0
                for _ in range(10):
                    end = node.commit(*map(encode_record, world.step()))
                await catch_up(table, stream, end)
                assert table.partitions == rows(node.image)
                asked += table.pages
            assert asked, "there were events"
            stream.cancel()

    asyncio.run(scenario())
