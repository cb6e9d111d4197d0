"""Every code that a command may be refused with, from the controller to a client, by both ways.

The commands of one case are sent one after another to a fresh controller; the last is evaluated.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from quorate.services.access import AccessPolicy
from quorate.services.answers import ANSWERS, COMMAND_CODES
from quorum.errors import ErrorCode
from quorum.transport.answers import DETAILS_KEY
from quorum.transport.node_names import NodeNames
from quorum.v1 import commands_pb2, common_pb2, metadata_pb2
from quorum.v1.metadata_pb2_grpc import MetadataServiceStub
from statemachine.commands import InitProducerId
from statemachine.records import FeatureLevelRecord, ProducerIdsRecord
from tests.support.evaluated_node import TOPIC, WRITER, EvaluatedNode
from tests.support.served_node import serving

ABSENT = b"z" * 16
SUPPORTED = {"name": "metadata.version", "min_version": 7, "max_version": 33}
BROKER: dict[str, Any] = {
    "broker_id": 9,
    "cluster_id": "c",
    "incarnation_id": b"n" * 16,
    "features": [SUPPORTED],
    "log_dirs": [b"L" * 16],
}


@dataclass
class Sent:
    """One command and the numbers of its producer."""

    kind: str
    fields: dict[str, Any]
    sequence: int = 0
    oldest_open: int = 0
    producer: dict[str, int] = field(default_factory=dict)

    @property
    def command(self) -> commands_pb2.Command:
        return commands_pb2.Command(tag=1, sequence=self.sequence, **{self.kind: self.fields})


@dataclass
class Case:
    """What is sent to which node."""

    sent: list[Sent]
    node: dict[str, Any] = field(default_factory=dict)
    loses: bool = False
    """Before the command is committed."""
    waiting: int = 0
    """Other commands that are in the queue already."""
    is_deposed: bool = False
    """Before the command comes, and the service does not know yet."""
    is_bound: bool = False
    """ACLs are enforced, and there are none."""


def one(kind: str, **fields: Any) -> Case:
    return Case([Sent(kind, fields)])


def denied(kind: str, **fields: Any) -> Case:
    return Case([Sent(kind, fields)], is_bound=True)


def setting(name: str = "retention.ms") -> dict[str, Any]:
    change = {"name": name, "operation": 1, "value": "1"}
    return {"resource_type": 2, "resource_name": "t", "alterations": [change]}


def numbered(*numbers: tuple[int, int], producer: int = WRITER, epoch: int = 3) -> Case:
    who = {"producer_id": producer, "producer_epoch": epoch}
    return Case([Sent("incremental_alter_configs", setting(), *each, who) for each in numbers])


def update(level: int, upgrade_type: int) -> dict[str, Any]:
    change = {"name": "metadata.version", "level": level, "upgrade_type": upgrade_type}
    return {"updates": [change]}


USED_UP = (FeatureLevelRecord("metadata.version", 33), ProducerIdsRecord(1, 1, 2**63 - 1))
CASES: dict[str, Case] = {
    "UNKNOWN_PRODUCER_ID": numbered((0, 0), producer=99),
    "INVALID_PRODUCER_EPOCH": numbered((0, 0), epoch=2),
    "INVALID_PRODUCER_ID_MAPPING": one("init_producer_id", producer_id=WRITER, producer_epoch=3),
    "OUT_OF_ORDER_SEQUENCE_NUMBER": numbered((0, 5)),
    "DUPLICATE_SEQUENCE_NUMBER": numbered((5, 5), (2, 2)),
    "PRODUCER_WINDOW_EXCEEDED": numbered((100, 0)),
    "CLUSTER_AUTHORIZATION_FAILED": denied("unregister_broker", broker_id=1),
    "TOPIC_AUTHORIZATION_FAILED": denied("incremental_alter_configs", **setting()),
    "GROUP_AUTHORIZATION_FAILED": denied(
        "incremental_alter_configs", **{**setting(), "resource_type": 32}
    ),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": denied("init_producer_id", transactional_id="n"),
    "INVALID_REQUEST": one("delete_topic"),
    "POLICY_VIOLATION": one("create_topic", name="__cluster_metadata"),
    "MESSAGE_TOO_LARGE": Case(
        [Sent("create_topic", {"name": "x", "partition_count": 50, "replication_factor": 1})],
        node={"batch_bytes_max": 1000},
    ),
    "UNKNOWN_TOPIC_OR_PARTITION": one("delete_topic", name="none"),
    "UNKNOWN_TOPIC_ID": one("delete_topic", topic_id=ABSENT),
    "INCONSISTENT_TOPIC_ID": one("delete_topic", name="t", topic_id=ABSENT),
    "INVALID_TOPIC": one("create_topic", name="a b", partition_count=1, replication_factor=1),
    "TOPIC_ALREADY_EXISTS": one("create_topic", name="t", partition_count=1, replication_factor=1),
    "INVALID_PARTITIONS": one("create_topic", name="x", partition_count=0, replication_factor=1),
    "INVALID_REPLICATION_FACTOR": one(
        "create_topic", name="x", partition_count=1, replication_factor=9
    ),
    "INVALID_REPLICA_ASSIGNMENT": one(
        "create_topic", name="x", assignments=[{"partition": 0, "broker_ids": [1, 1]}]
    ),
    "INVALID_CONFIG": one("incremental_alter_configs", **setting("no.such")),
    "INVALID_UPDATE_VERSION": one("update_features", **update(34, 1)),
    "FEATURE_UPDATE_FAILED": one("update_features", **update(20, 2)),
    "UNSUPPORTED_VERSION": one(
        "register_broker", **{**BROKER, "features": [{**SUPPORTED, "max_version": 32}]}
    ),
    "UNSUPPORTED_SASL_MECHANISM": one(
        "alter_user_scram_credentials", deletions=[{"name": "u", "mechanism": 9}]
    ),
    "UNACCEPTABLE_CREDENTIAL": one(
        "alter_user_scram_credentials", upsertions=[{"name": "u", "mechanism": 1, "iterations": 1}]
    ),
    "RESOURCE_NOT_FOUND": one(
        "alter_user_scram_credentials", deletions=[{"name": "u", "mechanism": 1}]
    ),
    "INCONSISTENT_CLUSTER_ID": one("register_broker", **{**BROKER, "cluster_id": "other"}),
    "INVALID_REGISTRATION": one("register_broker", **{**BROKER, "log_dirs": []}),
    "DUPLICATE_BROKER_REGISTRATION": one("register_broker", **{**BROKER, "broker_id": 1}),
    "BROKER_ID_NOT_REGISTERED": one("unregister_broker", broker_id=9),
    "STALE_BROKER_EPOCH": one("broker_heartbeat", broker_id=1, broker_epoch=99),
    "LOG_INCARNATION_MISMATCH": one(
        "commit_position", group="g", offset=1, leader_epoch=1, log_incarnation=ABSENT
    ),
    "INVALID_TRANSACTION_TIMEOUT": one(
        "init_producer_id", transactional_id="n", timeout_ms=900_001
    ),
    "CONCURRENT_TRANSACTIONS": one("init_producer_id", transactional_id="busy", timeout_ms=1),
    "UNKNOWN_SERVER_ERROR": Case([Sent("init_producer_id", {})], node={"bootstrap": USED_UP}),
    "NOT_LEADER_OR_FOLLOWER": Case([Sent("delete_topic", {"name": "t"})], is_deposed=True),
    "RESOURCE_EXHAUSTED": Case(
        [Sent("delete_topic", {"name": "t"})], node={"queue_commands_max": 1}, waiting=1
    ),
    "OUTCOME_UNKNOWN": Case([Sent("delete_topic", {"name": "t"})], loses=True),
}
WAYS = ["Write", "WriteStream"]


def test_every_code_of_a_command_has_a_case() -> None:
    assert sorted(CASES) == sorted(code.name for code in COMMAND_CODES)


def reason_of(error: grpc.aio.AioRpcError) -> str:
    (details,) = (v for k, v in error.trailing_metadata() or () if k == DETAILS_KEY)
    info = ErrorInfo()
    assert Status.FromString(details).details[0].Unpack(info)
    return str(info.reason)


async def answer_of(route: str, stub: Any, sent: Sent) -> tuple[str, commands_pb2.CommandResult]:
    """The code, and what a good answer holds."""
    numbers = {**sent.producer, "oldest_open": sent.oldest_open}
    if route == "Write":
        request = metadata_pb2.WriteRequest(command=sent.command, **numbers)
        try:
            return "NONE", (await stub.Write(request, timeout=30)).answer.result
        except grpc.aio.AioRpcError as error:
            return reason_of(error), commands_pb2.CommandResult()
    stream = stub.WriteStream()
    await stream.write(metadata_pb2.WriteStreamRequest(hello=metadata_pb2.WriterIdentity()))
    group = metadata_pb2.ProducerCommands(commands=[sent.command], **numbers)
    await stream.write(metadata_pb2.WriteStreamRequest(groups=[group]))
    await stream.done_writing()
    answers = [each async for message in stream for each in message.answers]
    assert len(answers) == 1
    return ErrorCode(answers[0].error_code).name, answers[0].result


async def evaluated(route: str, case: Case) -> tuple[str, commands_pb2.CommandResult]:
    node = EvaluatedNode(**case.node)
    if case.is_deposed:
        node.bench.log.depose()
    node.loses = case.loses
    for _ in range(case.waiting):
        node.bench.submit(InitProducerId())
    policy = AccessPolicy(NodeNames("node-{id}.test"), frozenset()) if case.is_bound else None
    async with serving(node, policy=policy), grpc.aio.insecure_channel(node.address) as channel:
        stub = MetadataServiceStub(channel)
        *before, last = case.sent
        for each in before:
            assert (await answer_of(route, stub, each))[0] == "NONE"
        return await answer_of(route, stub, last)


@pytest.mark.parametrize("route", WAYS)
@pytest.mark.parametrize("code", CASES)
def test_a_command_is_refused(route: str, code: str) -> None:
    assert asyncio.run(evaluated(route, CASES[code]))[0] == code


def alteration(partition: int, *isr: int, **more: Any) -> dict[str, Any]:
    epochs = {"leader_epoch": 5, "partition_epoch": 7}
    members = [{"broker_id": each, "broker_epoch": each} for each in isr]
    return {"partition": partition, **epochs, "isr": members, **more}


def altered(change: dict[str, Any], topic: bytes = TOPIC) -> Case:
    topics = [{"topic_id": topic, "partitions": [change]}]
    return one("alter_partition", broker_id=1, broker_epoch=1, topics=topics)


PARTS: dict[str, Case] = {
    "UNKNOWN_TOPIC_ID": altered(alteration(0, 1), topic=ABSENT),
    "UNKNOWN_TOPIC_OR_PARTITION": altered(alteration(9, 1)),
    "NOT_CONTROLLER": altered(alteration(0, 1, leader_epoch=6)),
    "FENCED_LEADER_EPOCH": altered(alteration(0, 1, leader_epoch=4)),
    "INVALID_UPDATE_VERSION": altered(alteration(0, 1, partition_epoch=6)),
    "INVALID_REQUEST": altered(alteration(0, 1, 1)),
    "INELIGIBLE_REPLICA": altered(alteration(2, 1, 3)),
    "NEW_LEADER_ELECTED": altered(alteration(3, 1, 2)),
    "PREFERRED_LEADER_NOT_AVAILABLE": one(
        "elect_leaders", topic_name="t", partitions=[2], election_type=1
    ),
    "BROKER_NOT_AVAILABLE": one("elect_leaders", topic_name="t", partitions=[1], election_type=2),
}


def test_every_code_of_a_part_has_a_case() -> None:
    for route in WAYS:
        assert sorted(PARTS) == sorted(code.name for code in ANSWERS[route].parts)


@pytest.mark.parametrize("route", WAYS)
@pytest.mark.parametrize("code", PARTS)
def test_a_part_is_refused_in_a_good_answer(route: str, code: str) -> None:
    answer, result = asyncio.run(evaluated(route, PARTS[code]))
    assert answer == "NONE"
    kinds = (result.elect_leaders, *result.alter_partition.topics)
    (part,) = (each for kind in kinds for each in kind.partitions)
    assert common_pb2.ErrorCode.Name(part.error_code) == f"ERROR_CODE_{code}"
