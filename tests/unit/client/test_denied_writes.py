"""A client that may change nothing gets no producer; what it hears of is the right it lacks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from quorate.client import TOPIC, Client, RefusedError
from quorate.controller.requests import Answer, OnAnswer, RequestContext
from quorum.errors import ErrorCode
from quorum.v1 import commands_pb2 as wire
from statemachine.commands import Command, CreateTopic, InitProducerId, WithPosition
from tests.support.served_node import FakeNode, cluster, serving

NO_PRODUCER = "CLUSTER_AUTHORIZATION_FAILED: no producer"
NO_TOPIC = "TOPIC_AUTHORIZATION_FAILED: no topic"
NO_CONFIG = "TOPIC_AUTHORIZATION_FAILED: no configuration"


class Gate:
    """A node's rights: which kinds of commands are allowed. What it evaluates is kept."""

    def __init__(self, node: FakeNode, *allowed: type) -> None:
        self.allowed = set(allowed)
        self.evaluated: list[tuple[Command, RequestContext]] = []
        self._take = node.take
        node.take = self.take  # type: ignore[method-assign]

    def take(self, command: Command, context: RequestContext, on_answer: OnAnswer) -> None:
        self.evaluated.append((command, context))
        if type(command) in self.allowed:
            self._take(command, context, on_answer)
        elif isinstance(command, InitProducerId):
            on_answer(Answer(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no producer"))
        else:
            lack = "topic" if isinstance(command, CreateTopic) else "configuration"
            on_answer(Answer(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"no {lack}"))


@asynccontextmanager
async def gated(*allowed: type, **options: Any) -> AsyncIterator[tuple[Client, Gate, FakeNode]]:
    _, (node,) = cluster(1)
    gate = Gate(node, *allowed)
    async with serving(node), Client([node.address], timeout_seconds=30, **options) as client:
        yield client, gate, node


async def error_of(client: Client, *, dry_run: bool = False) -> str:
    with pytest.raises(RefusedError) as refused:
        await client.write(wire.Command(create_topic=wire.CreateTopic(name="t", dry_run=dry_run)))
    return str(refused.value)


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_command_says_which_right_is_lacking_though_no_producer_is_given(dry_run: bool) -> None:
    async def scenario() -> None:
        async with gated() as (client, gate, _):
            for _ in range(2):
                assert await error_of(client, dry_run=dry_run) == NO_TOPIC
            asked = [each for each, _ in gate.evaluated if isinstance(each, CreateTopic)]
            assert [each.dry_run for each in asked] == [True, True]

    asyncio.run(scenario())


def test_commands_that_wait_together_have_each_its_own_refusal() -> None:
    async def scenario() -> None:
        async with gated() as (client, _, _node):
            ended = await asyncio.gather(
                *(error_of(client) for _ in range(3)),
                client.set_config(TOPIC, "t", "retention.ms", "1"),
                return_exceptions=True,
            )
            assert list(map(str, ended)) == [*[NO_TOPIC] * 3, NO_CONFIG]

    asyncio.run(scenario())


def test_a_command_that_would_be_allowed_is_not_applied_without_a_producer() -> None:
    """A second copy of it could not be told from the first."""

    async def scenario() -> None:
        async with gated(CreateTopic) as (client, gate, _node):
            assert await error_of(client) == NO_PRODUCER
            asked = [each for each, _ in gate.evaluated if isinstance(each, CreateTopic)]
            assert [each.dry_run for each in asked] == [True]

    asyncio.run(scenario())


def test_a_client_that_gets_the_right_later_writes() -> None:
    async def scenario() -> None:
        async with gated() as (client, gate, node):
            assert await error_of(client) == NO_TOPIC
            gate.allowed = {CreateTopic, InitProducerId}
            await client.write(wire.Command(create_topic=wire.CreateTopic(name="t")))
            (made,) = node.log.applied
            assert isinstance(made, CreateTopic)
            assert not made.dry_run
            assert gate.evaluated[-1][1].producer_id >= 0

    asyncio.run(scenario())


def test_a_position_beside_a_denied_command_is_a_dry_run_as_well() -> None:
    """Otherwise the node refuses the pair for what the caller did not do."""

    async def scenario() -> None:
        async with gated() as (client, gate, _node):
            command = wire.Command(create_topic=wire.CreateTopic(name="t"))
            command.with_position.group = "g"
            with pytest.raises(RefusedError):
                await client.write(command)
            (pair,) = [each for each, _ in gate.evaluated if isinstance(each, WithPosition)]
            assert (pair.command.dry_run, pair.position.dry_run) == (True, True)

    asyncio.run(scenario())


@pytest.mark.parametrize("options", [{"ordered": True}, {"writer": "job"}], ids=str)
def test_writes_that_depend_on_each_other_end_at_once(options: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with gated(CreateTopic, **options) as (client, gate, _node):
            assert await error_of(client) == NO_PRODUCER
            assert all(isinstance(each, InitProducerId) for each, _ in gate.evaluated)

    asyncio.run(scenario())
