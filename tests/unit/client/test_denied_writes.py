"""A client that may change nothing gets no producer; what it hears of is the right it lacks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from quorate.client import TOPIC, Client, RefusedError, UnavailableError, producer_requests
from quorate.client.limits import COMMAND_BYTES_MAX
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
        self.refusal: Answer | None = None
        """In place of the lack of a right."""
        self._take = node.take
        node.take = self.take  # type: ignore[method-assign]

    @property
    def requests(self) -> int:
        """How many producers were asked for."""
        return sum(isinstance(each, InitProducerId) for each, _ in self.evaluated)

    def take(self, command: Command, context: RequestContext, on_answer: OnAnswer) -> None:
        self.evaluated.append((command, context))
        if type(command) in self.allowed:
            self._take(command, context, on_answer)
        elif isinstance(command, InitProducerId):
            on_answer(Answer(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no producer"))
        elif self.refusal is not None:
            on_answer(self.refusal)
        else:
            lack = "topic" if isinstance(command, CreateTopic) else "configuration"
            on_answer(Answer(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"no {lack}"))


@asynccontextmanager
async def gated(*allowed: type, **options: Any) -> AsyncIterator[tuple[Client, Gate, FakeNode]]:
    _, (node,) = cluster(1)
    gate = Gate(node, *allowed)
    async with serving(node), Client([node.address], timeout_seconds=30, **options) as client:
        yield client, gate, node


async def error_of(client: Client, *, name: str = "t", dry_run: bool = False) -> str:
    with pytest.raises(RefusedError) as refused:
        await client.write(wire.Command(create_topic=wire.CreateTopic(name=name, dry_run=dry_run)))
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
            made = [each for each in node.log.applied if isinstance(each, CreateTopic)]
            assert [each.dry_run for each in made] == [True, False], "the first shows the right"
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


def test_a_client_that_was_denied_asks_for_one_producer_and_not_for_one_each_time() -> None:
    """The node counts each refusal, and writes it to its audit log."""

    async def scenario() -> None:
        async with gated() as (client, gate, _node):
            await asyncio.gather(*(error_of(client) for _ in range(100)))
            for _ in range(5):
                assert await error_of(client) == NO_TOPIC
            assert (gate.requests, len(gate.evaluated)) == (1, 106)

    asyncio.run(scenario())


def test_commands_that_fill_several_messages_need_no_producer_once_it_was_denied() -> None:
    async def scenario() -> None:
        async with gated() as (client, gate, _node):
            await asyncio.gather(
                *(error_of(client, name="t" * (COMMAND_BYTES_MAX - 100)) for _ in range(3))
            )
            assert gate.requests == 1

    asyncio.run(scenario())


def test_a_refusal_of_a_producer_is_forgotten_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(producer_requests, "DENIAL_SECONDS", 0.0)

    async def scenario() -> None:
        async with gated() as (client, gate, _node):
            for _ in range(3):
                assert await error_of(client) == NO_TOPIC
            assert gate.requests == 3

    asyncio.run(scenario())


@pytest.mark.parametrize(("retry_seconds", "requests"), [(3600.0, 1), (0.0, 3)])
def test_a_producer_that_alone_is_refused_is_not_asked_for_with_each_command(
    monkeypatch: pytest.MonkeyPatch, retry_seconds: float, requests: int
) -> None:
    monkeypatch.setattr(producer_requests, "RETRY_SECONDS", retry_seconds)

    async def scenario() -> None:
        async with gated(CreateTopic) as (client, gate, node):
            for _ in range(3):
                assert await error_of(client) == NO_PRODUCER
            assert gate.requests == requests
            asked = [each for each in node.log.applied if isinstance(each, CreateTopic)]
            assert asked
            assert all(each.dry_run for each in asked)

    asyncio.run(scenario())


def test_a_command_of_a_client_with_new_rights_is_what_its_caller_has_written() -> None:
    """Whatever is refused for another reason than a right shows a new right as well."""

    async def scenario() -> None:
        async with gated() as (client, gate, _node):
            assert await error_of(client) == NO_TOPIC
            gate.allowed = {InitProducerId}
            gate.refusal = Answer(ErrorCode.TOPIC_ALREADY_EXISTS, "it exists")
            command = wire.Command(create_topic=wire.CreateTopic(name="t"))
            command.with_position.group = "g"
            with pytest.raises(RefusedError, match="it exists"):
                await client.write(command)
            pairs = [each for each, _ in gate.evaluated if isinstance(each, WithPosition)]
            dry_runs = [(each.command.dry_run, each.position.dry_run) for each in pairs]
            assert dry_runs == [(True, True), (False, False)]
            assert "it exists" in await error_of(client, dry_run=True)
            last = gate.evaluated[-1][0]
            assert isinstance(last, CreateTopic)
            assert last.dry_run
            assert gate.requests == 2

    asyncio.run(scenario())


def test_a_client_that_was_denied_says_that_no_node_answers() -> None:
    """Not that it was denied: that was another command, and rights may have changed."""

    async def scenario() -> None:
        async with gated() as (client, _gate, node):
            assert await error_of(client) == NO_TOPIC
            node.take = lambda *_: None  # type: ignore[method-assign]
            command = wire.Command(create_topic=wire.CreateTopic(name="t"))
            with pytest.raises(UnavailableError, match="never sent"):
                await client.write(command, timeout=0.2)
            assert not client._writer.is_in_doubt

    asyncio.run(scenario())


@pytest.mark.parametrize("options", [{"ordered": True}, {"writer": "job"}], ids=str)
@pytest.mark.parametrize(("retry_seconds", "requests"), [(3600.0, 1), (0.0, 3)])
def test_a_named_or_an_ordered_client_does_not_ask_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    retry_seconds: float,
    requests: int,
) -> None:
    monkeypatch.setattr(producer_requests, "RETRY_SECONDS", retry_seconds)

    async def scenario() -> None:
        async with gated(CreateTopic, **options) as (client, gate, _node):
            for _ in range(3):
                assert await error_of(client) == NO_PRODUCER
                if client._writer._producer_sessions.is_ordered:
                    await client.begin_epoch()
            assert gate.requests == requests
            if not retry_seconds:
                gate.allowed.add(InitProducerId)
                await client.write(wire.Command(create_topic=wire.CreateTopic(name="t")))

    asyncio.run(scenario())


@pytest.mark.parametrize("options", [{"ordered": True}, {"writer": "job"}], ids=str)
def test_writes_that_depend_on_each_other_end_at_once(options: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with gated(CreateTopic, **options) as (client, gate, _node):
            assert await error_of(client) == NO_PRODUCER
            assert all(isinstance(each, InitProducerId) for each, _ in gate.evaluated)

    asyncio.run(scenario())
