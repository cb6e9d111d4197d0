"""Queries at their read levels, the log for consumers, health and reflection."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from quorate.client import (
    BROKER,
    LINEARIZABLE,
    LOCAL,
    TOPIC,
    Client,
    RefusedError,
    UnavailableError,
    at_least,
)
from quorate.services import reads, registration
from quorum.v1 import common_pb2
from quorum.v1.metadata_pb2 import (
    CONFIG_SOURCE_CLUSTER,
    CONFIG_SOURCE_DEFAULT,
    CONFIG_SOURCE_RESOURCE,
    ListTopicsRequest,
    ReadOptions,
)
from statemachine.codec import encode_record
from statemachine.commands import FeatureRange
from statemachine.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    ListenerEndpoint,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tests.support.served_node import cluster, serving

ID = bytes(range(16))
OTHER = bytes(range(1, 17))


def with_client(scenario, *, nodes=1, leader=1, ask=None):
    """Run ``scenario(log, nodes, client)``; the client knows the nodes of ``ask``."""

    async def run():
        log, made = cluster(nodes, leader=leader)
        async with serving(*made):
            addresses = [made[n - 1].address for n in ask or range(1, nodes + 1)]
            async with Client(addresses, timeout_seconds=30) as client:
                await scenario(log, made, client)

    asyncio.run(run())


def test_every_answer_has_its_position_and_age():
    async def scenario(log, nodes, client):
        for answer in (
            await client.list_topics(),
            await client.describe_topics(["x"]),
            await client.describe_configs([]),
            await client.describe_cluster(),
            await client.describe_quorum(),
            await client.describe_features(),
        ):
            position = answer.position
            assert (position.offset, position.epoch) == (log.end, 1)
            assert (position.age_ms, position.node_id) == (5, 1)

    with_client(scenario)


def test_at_least_waits_for_the_offset():
    async def scenario(log, nodes, client):
        read = asyncio.create_task(client.list_topics(read=at_least(log.end + 1)))
        await nodes[0].has_waits(1)
        nodes[0].commit()
        assert (await read).position.offset == log.end
        assert nodes[0]._waits == []

    with_client(scenario)


def test_a_wait_ends_with_the_deadline_and_leaves_nothing_behind():
    async def scenario(log, nodes, client):
        client._query_timeout = 0.1
        with pytest.raises(UnavailableError):
            await client.list_topics(read=at_least(log.end + 1))
        await nodes[0].has_waits(0)

    with_client(scenario)


@pytest.mark.parametrize("asked", [1, 2])
def test_linearizable_reads_wait_for_a_position_and_then_for_the_image(asked):
    """Goal: leader or not, nothing is answered before both. Method: hold back one by one."""

    async def scenario(log, nodes, client):
        node = nodes[asked - 1]
        node.auto_confirm = False
        read = asyncio.create_task(client.list_topics(read=LINEARIZABLE))
        await node.has_reads(1)
        assert not read.done()
        node.reads.pop()(log.end + 1)
        await node.has_waits(1)
        assert not read.done()
        node.commit()
        answer = await read
        assert (answer.position.offset, answer.position.node_id) == (log.end, asked)

    with_client(scenario, nodes=2, leader=2, ask=[asked])


@pytest.mark.parametrize(
    ("level", "words"),
    [
        (LINEARIZABLE, "no leader confirmed the read"),
        (at_least(7), "has applied offset 1, and did not reach 7 within .* s"),
    ],
)
def test_a_read_that_cannot_be_served_fails_with_its_reason(monkeypatch, level, words):
    monkeypatch.setattr(reads, "_patience", lambda context: 0.05)

    async def scenario(log, nodes, client):
        nodes[0].auto_confirm = False
        stub = client._nodes.node(nodes[0].address).metadata
        with pytest.raises(grpc.aio.AioRpcError, match=words):
            await stub.ListTopics(ListTopicsRequest(read=level), timeout=60)
        await nodes[0].has_waits(0)

    with_client(scenario)


@pytest.mark.parametrize(
    ("left", "patience"),
    [(60, 30), (30.04, 29.99), (10, 9.95), (0.4, 0.35), (0.2, 0.16), (0.01, 0.008)],
)
def test_a_read_waits_until_shortly_before_its_deadline(left, patience):
    """A refusal must arrive: 50 ms are kept for it, of a short deadline a fifth."""
    context = SimpleNamespace(time_remaining=lambda: left)
    assert reads._patience(context) == pytest.approx(patience)


def test_a_negative_offset_is_refused():
    async def scenario(log, nodes, client):
        with pytest.raises(RefusedError, match="-3 is negative"):
            await client.list_topics(read=at_least(-3))

    with_client(scenario)


def test_a_lost_confirmation_is_asked_again_at_the_new_leader():
    async def scenario(log, nodes, client):
        nodes[0].auto_confirm = False
        read = asyncio.create_task(client.list_topics(read=LINEARIZABLE))
        await nodes[0].has_reads(1)
        log.leader, log.epoch = 2, 2
        nodes[0].reads.pop()(None)
        assert (await read).position.node_id == 2

    with_client(scenario, nodes=2)


def test_waiting_reads_leave_room_for_others(monkeypatch):
    """Of the places of calls half are for reads that wait; the others are answered at once."""
    monkeypatch.setattr(registration, "HELD_SHARE", 1024)

    async def scenario(log, nodes, client):
        first = asyncio.create_task(client.list_topics(read=at_least(log.end + 1)))
        await nodes[0].has_waits(1)
        stub = client._nodes.node(nodes[0].address).metadata
        with pytest.raises(grpc.aio.AioRpcError, match="1 held reads are open"):
            await stub.ListTopics(ListTopicsRequest(read=at_least(log.end + 1)), timeout=30)
        await stub.ListTopics(ListTopicsRequest(), timeout=30)
        nodes[0].commit()
        await first

    with_client(scenario)


def test_a_node_where_too_many_wait_refuses_the_call_and_goes_on():
    """It is found out when the confirmation arrives, where an exception would end the node."""

    async def scenario(log, nodes, client):
        nodes[0].auto_confirm, nodes[0].waits_max = False, 0
        stub = client._nodes.node(nodes[0].address).metadata
        call = stub.ListTopics(ListTopicsRequest(read=LINEARIZABLE), timeout=30)
        await nodes[0].has_reads(1)
        nodes[0].reads.pop()(log.end + 1)
        with pytest.raises(grpc.aio.AioRpcError, match="too many calls wait") as refused:
            await call
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED

    with_client(scenario)


def test_an_unknown_level_is_refused():
    async def scenario(log, nodes, client):
        with pytest.raises(RefusedError, match="unknown read level 9"):
            await client.list_topics(read=ReadOptions(level=9))

    with_client(scenario)


def broker(broker_id: int, *, fenced: bool) -> bytes:
    return encode_record(
        RegisterBrokerRecord(
            broker_id=broker_id,
            incarnation_id=OTHER,
            broker_epoch=broker_id * 10,
            end_points=(ListenerEndpoint("PLAINTEXT", "host", 9092, 0),),
            fenced=fenced,
        )
    )


def test_topics_show_leader_epoch_and_offline_replicas():
    async def scenario(log, nodes, client):
        nodes[0].commit(
            broker(1, fenced=False),
            broker(2, fenced=True),
            broker(3, fenced=False),
            encode_record(BrokerRegistrationChangeRecord(3, 30, in_controlled_shutdown=1)),
            encode_record(TopicRecord("t", ID)),
            encode_record(
                PartitionRecord(
                    partition_id=0,
                    topic_id=ID,
                    replicas=(1, 2, 3, 4),
                    isr=(1,),
                    leader=1,
                    leader_epoch=6,
                    partition_epoch=8,
                )
            ),
        )
        answer = await client.describe_topics(["t", "nope"], topic_ids=[ID, OTHER])
        by_name, no_name, by_id, no_id = answer.topics
        assert by_name == by_id
        assert no_name.error_code == common_pb2.ERROR_CODE_UNKNOWN_TOPIC_OR_PARTITION
        assert no_id.error_code == common_pb2.ERROR_CODE_UNKNOWN_TOPIC_ID
        (partition,) = by_name.partitions
        assert (partition.leader_id, partition.leader_epoch, partition.partition_epoch) == (1, 6, 8)
        assert list(partition.offline_replicas) == [2, 3, 4]
        cluster_answer = await client.describe_cluster()
        assert [b.is_fenced for b in cluster_answer.brokers] == [False, True, False]
        assert cluster_answer.brokers[0].listeners[0].port == 9092
        assert (cluster_answer.leader_id, cluster_answer.cluster_id) == (1, "cluster")

    with_client(scenario)


def test_topics_are_listed_by_page_in_order():
    async def scenario(log, nodes, client):
        for n, name in enumerate(["b", "a", "c"]):
            nodes[0].commit(encode_record(TopicRecord(name, bytes([n]) * 16)))
        first = await client.list_topics(limit=2)
        assert ([t.name for t in first.topics], first.has_more) == (["a", "b"], True)
        rest = await client.list_topics(after_name="b")
        assert ([t.name for t in rest.topics], rest.has_more) == (["c"], False)

    with_client(scenario)


def test_configs_name_their_source():
    async def scenario(log, nodes, client):
        nodes[0].commit(
            encode_record(TopicRecord("t", ID)),
            encode_record(ConfigRecord(TOPIC, "t", "retention.ms", "5")),
            encode_record(ConfigRecord(BROKER, "", "min.insync.replicas", "2")),
        )
        resources = [(TOPIC, "t"), (TOPIC, "nope"), (TOPIC, "__cluster_metadata"), (BROKER, "1")]
        answer = await client.describe_configs(resources)
        own, unknown, metadata, one = answer.resources
        assert [(e.name, e.value, e.source) for e in own.entries] == [
            ("retention.ms", "5", CONFIG_SOURCE_RESOURCE)
        ]
        assert unknown.error_code == common_pb2.ERROR_CODE_UNKNOWN_TOPIC_OR_PARTITION
        assert [(e.name, e.value, e.is_read_only) for e in metadata.entries] == [
            ("cleanup.policy", "snapshot", True)
        ]
        assert [(e.name, e.source) for e in one.entries] == [
            ("min.insync.replicas", CONFIG_SOURCE_CLUSTER)
        ]
        full = (await client.describe_configs(resources[:1], include_defaults=True)).resources[0]
        sources = {e.name: (e.value, e.source) for e in full.entries}
        assert sources["retention.ms"] == ("5", CONFIG_SOURCE_RESOURCE)
        assert sources["min.insync.replicas"] == ("2", CONFIG_SOURCE_CLUSTER)
        assert sources["cleanup.policy"][1] == CONFIG_SOURCE_DEFAULT

    with_client(scenario)


def test_features_and_quorum():
    async def scenario(log, nodes, client):
        nodes[0].commit(encode_record(FeatureLevelRecord("metadata.version", 7)))
        nodes[0].supported_features = (
            FeatureRange("kraft.version", 0, 1),
            *nodes[0].supported_features,
        )
        assert [
            (each.name, each.supported_min, each.supported_max, each.finalized_level)
            for each in (await client.describe_features()).features
        ] == [("kraft.version", 0, 1, 1), ("metadata.version", 1, 30, 7)]
        quorum = await client.describe_quorum()
        assert [v.replica_id for v in quorum.voters] == [1, 2]
        assert (quorum.observers[0].log_end_offset, quorum.observers[0].directory_id) == (-1, b"")
        assert (quorum.leader_id, quorum.high_watermark, quorum.is_leader) == (1, log.end, True)
        assert quorum.nodes[0].endpoints[0].port == 9093

    with_client(scenario, nodes=2, ask=[1])


def test_records_are_never_deleted_on_request():
    """A missing resource is reported as unknown; like Kafka, before its policy is checked."""

    async def scenario(log, nodes, client):
        topic_id = bytes(15) + b"\x07"
        nodes[0].commit(
            encode_record(TopicRecord("t", topic_id)),
            encode_record(PartitionRecord(0, topic_id, (1,), (1,), leader=1)),
        )
        for topic, partition, code in (
            ("__cluster_metadata", 0, "POLICY_VIOLATION"),
            ("", 0, "POLICY_VIOLATION"),
            ("t", 0, "POLICY_VIOLATION"),
            ("__cluster_metadata", 1, "UNKNOWN_TOPIC_OR_PARTITION"),
            ("t", 1, "UNKNOWN_TOPIC_OR_PARTITION"),
            ("unknown", 0, "UNKNOWN_TOPIC_OR_PARTITION"),
        ):
            with pytest.raises(RefusedError, match=f"^{code}"):
                await client.delete_records(topic, partition, 5)

    with_client(scenario)


def test_health_and_reflection():
    async def scenario():
        _, nodes = cluster(1)
        async with serving(*nodes) as servers:
            async with grpc.aio.insecure_channel(nodes[0].address) as channel:
                stub = health_pb2_grpc.HealthStub(channel)

                async def check(name: str) -> int:
                    request = health_pb2.HealthCheckRequest(service=name)
                    return (await stub.Check(request, timeout=30)).status

                kept = servers[1].services
                serving_status, not_serving = 1, 2
                assert await check("") == serving_status
                assert await check("quorum.v1.MetadataService") == serving_status
                assert await check("quorate.readiness") == not_serving
                await kept.health.set_ready(is_ready=True)
                assert await check("quorate.readiness") == serving_status
                await kept.drain()
                assert await check("") == not_serving
                assert await check("quorate.readiness") == not_serving

                reflect = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
                await reflect.write(reflection_pb2.ServerReflectionRequest(list_services=""))
                answer = await reflect.read()
                names = {s.name for s in answer.list_services_response.service}
                assert {"quorum.v1.MetadataService", "quorum.v1.AdminService"} <= names
                reflect.cancel()

    asyncio.run(scenario())


def test_local_reads_are_the_default():
    async def scenario(log, nodes, client):
        assert (await client.list_topics(read=LOCAL)).position == (
            (await client.list_topics(read=ReadOptions())).position
        )

    with_client(scenario)
