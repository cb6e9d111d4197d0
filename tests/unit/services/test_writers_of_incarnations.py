"""Writers that say which incarnation of the log they write: nobody of another one serves them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest

from quorate.client import Client
from quorate.client.errors import (
    LogIncarnationError,
    RefusedError,
    UnavailableError,
    from_rpc,
)
from quorate.client.writes import TOPIC
from quorum.errors import ErrorCode
from quorum.incarnation import FIRST_INCARNATION, LogIncarnation
from quorum.types import ZERO_UUID, uuid_to_text
from quorum.v1 import commands_pb2
from quorum.v1.metadata_pb2 import (
    FetchPositionsRequest,
    ProducerCommands,
    WriteRequest,
    WriterIdentity,
    WriteStreamRequest,
)
from quorum.v1.metadata_pb2_grpc import MetadataServiceStub
from tests.support.served_node import FakeNode, cluster, serving

OURS = LogIncarnation(2, b"2" * 16, previous_id=b"1" * 16)
LOST = LogIncarnation(2, b"3" * 16, previous_id=b"1" * 16)
"""A second recovery that knew nothing of ours: only the id tells them apart."""
PATIENCE = 60
Ask = Callable[[MetadataServiceStub, WriterIdentity], Awaitable[Any]]


def change() -> commands_pb2.Command:
    command = commands_pb2.Command(tag=1)
    command.incremental_alter_configs.resource_type = TOPIC
    command.incremental_alter_configs.resource_name = "t"
    command.incremental_alter_configs.alterations.add(name="k", operation=1, value="v")
    return command


async def once(stub: MetadataServiceStub, writer: WriterIdentity) -> None:
    await stub.Write(WriteRequest(writer=writer, command=change()), timeout=PATIENCE)


async def stream(stub: MetadataServiceStub, writer: WriterIdentity) -> None:
    """A hello that has a command with it, as the service permits."""
    call = stub.WriteStream()
    groups = [ProducerCommands(commands=[change()])]
    await call.write(WriteStreamRequest(hello=writer, groups=groups))
    response = await call.read()
    if response is grpc.aio.EOF:
        await call.code()
    assert response.HasField("accepted")
    while not response.answers:
        response = await call.read()
    await call.done_writing()


def asked(node: FakeNode, ask: Ask, writer: WriterIdentity) -> None:
    async def scenario() -> None:
        async with serving(node):
            async with grpc.aio.insecure_channel(node.address) as channel:
                await ask(MetadataServiceStub(channel), writer)

    asyncio.run(scenario())


def refusal(node: FakeNode, ask: Ask, writer: WriterIdentity) -> RefusedError:
    with pytest.raises(grpc.RpcError) as failed:
        asked(node, ask, writer)
    assert node.log.applied == []
    refused = from_rpc(failed.value)
    assert isinstance(refused, RefusedError)
    return refused


def one(incarnation: LogIncarnation) -> FakeNode:
    _, (node,) = cluster(1)
    node.incarnation = incarnation
    return node


@pytest.mark.parametrize("ask", [once, stream])
@pytest.mark.parametrize(
    ("incarnation", "writer"),
    [
        (FIRST_INCARNATION, WriterIdentity(log_incarnation=OURS.id)),
        (OURS, WriterIdentity(log_incarnation=ZERO_UUID)),
        (LOST, WriterIdentity(log_incarnation=OURS.id)),
        (FIRST_INCARNATION, WriterIdentity(log_incarnation_number=1)),
    ],
)
def test_a_leader_of_another_incarnation_refuses_by_name(
    incarnation: LogIncarnation, writer: WriterIdentity, ask: Ask
) -> None:
    refused = refusal(one(incarnation), ask, writer)
    assert isinstance(refused, LogIncarnationError)
    if writer.log_incarnation:
        assert uuid_to_text(incarnation.id) in refused.text
        assert uuid_to_text(writer.log_incarnation) in refused.text


@pytest.mark.parametrize("ask", [once, stream])
@pytest.mark.parametrize(
    ("incarnation", "writer"),
    [
        (OURS, WriterIdentity(client_id="of a former release")),
        (OURS, WriterIdentity(log_incarnation=OURS.id, log_incarnation_number=2)),
        (OURS, WriterIdentity(log_incarnation_number=1)),
        (FIRST_INCARNATION, WriterIdentity(log_incarnation=ZERO_UUID)),
    ],
)
def test_writers_of_its_own_and_those_that_name_none_are_served(
    incarnation: LogIncarnation, writer: WriterIdentity, ask: Ask
) -> None:
    node = one(incarnation)
    asked(node, ask, writer)
    assert len(node.log.applied) == 1


@pytest.mark.parametrize("ask", [once, stream])
def test_an_id_of_another_length_is_invalid(ask: Ask) -> None:
    refused = refusal(one(OURS), ask, WriterIdentity(log_incarnation=b"short"))
    assert refused.code == ErrorCode.INVALID_REQUEST


def test_a_former_voter_that_follows_names_no_leader() -> None:
    """Its hint would lead to a leader of the lost history, and epochs of two logs compare ill."""
    _, (node, _) = cluster(2, leader=2)
    refused = refusal(node, stream, WriterIdentity(log_incarnation=OURS.id))
    assert isinstance(refused, LogIncarnationError)
    assert refused.leader is None


def writes(*, is_former_first: bool, client_knows: bytes) -> tuple[FakeNode, FakeNode]:
    """A client writes where a former voter leads too, in a later epoch than the leader."""
    former, leader = one(FIRST_INCARNATION), one(OURS)
    former.log.epoch = 1_000

    async def scenario() -> None:
        async with serving(former), serving(leader):
            addresses = [former.address, leader.address]
            order = addresses if is_former_first else addresses[::-1]
            async with Client(order, log_incarnation=client_knows) as client:
                await client.set_config(TOPIC, "t", "k", "v", timeout=PATIENCE)

    asyncio.run(scenario())
    return former, leader


@pytest.mark.parametrize("is_former_first", [True, False])
def test_a_client_of_an_incarnation_goes_on_to_its_leader(is_former_first: bool) -> None:
    former, leader = writes(is_former_first=is_former_first, client_knows=OURS.id)
    assert (len(former.log.applied), len(leader.log.applied)) == (0, 1)


def test_a_client_that_meets_a_newer_incarnation_leaves_the_stream_of_a_former_leader() -> None:
    """Method: the former voter is the only node known first, and takes the first write."""

    async def scenario() -> None:
        former, leader = one(FIRST_INCARNATION), one(OURS)
        async with serving(former), serving(leader):
            async with Client([former.address, leader.address]) as client:
                leader.is_ready = False
                await client.set_config(TOPIC, "t", "k", "1", timeout=PATIENCE)
                assert len(former.log.applied) == 1
                leader.is_ready = True
                await client.offset_for_leader_epoch(0, log_incarnation_number=2)
                await client.set_config(TOPIC, "t", "k", "2", timeout=PATIENCE)
        assert (len(former.log.applied), len(leader.log.applied)) == (1, 1)

    asyncio.run(scenario())


def test_positions_are_fetched_with_the_incarnation_of_the_log_that_answers() -> None:
    node = one(OURS)

    async def scenario() -> None:
        async with serving(node):
            async with grpc.aio.insecure_channel(node.address) as channel:
                stub = MetadataServiceStub(channel)
                answer = await stub.FetchPositions(FetchPositionsRequest(), timeout=PATIENCE)
                assert (answer.log_incarnation, answer.log_incarnation_number) == (OURS.id, 2)
                later = FetchPositionsRequest(log_incarnation_number=3)
                with pytest.raises(grpc.RpcError) as failed:
                    await stub.FetchPositions(later, timeout=PATIENCE)
                assert isinstance(from_rpc(failed.value), LogIncarnationError)

    asyncio.run(scenario())


def test_a_client_that_has_fetched_positions_asks_no_former_voter() -> None:
    async def scenario() -> None:
        former, leader = one(FIRST_INCARNATION), one(OURS)
        async with serving(former), serving(leader):
            async with Client([leader.address, former.address], timeout_seconds=3) as client:
                assert await client.fetch_positions(["g"]) == {"g": None}
                leader.log.leader = None
                # The former voter would answer, if it were not given the number.
                with pytest.raises(UnavailableError):
                    await client.offset_for_leader_epoch(0)

    asyncio.run(scenario())
