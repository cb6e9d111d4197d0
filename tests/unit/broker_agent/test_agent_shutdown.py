"""Controlled shutdowns of an agent: granted, retried, given up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from quorate.broker_agent.commands import LeaderAndIsr, StopReplica
from quorate.broker_agent.handler import (
    AgentState,
    StateChanged,
)
from quorate.client.errors import (
    UnavailableError,
)
from quorum.v1 import commands_pb2 as wire
from tests.support.agent_world import BROKER, Recorder, Running, World, settings_of

Scenario = Callable[[World, Recorder], Awaitable[None]]


def play(scenario: Scenario, form: str) -> None:
    async def run() -> None:
        await scenario(World(form), Recorder())

    asyncio.run(run())


def states(handler: Recorder) -> list[AgentState]:
    return [each.state for each in handler.of(StateChanged)]


def is_active(handler: Recorder) -> Callable[[], bool]:
    return lambda: states(handler)[-1:] == [AgentState.ACTIVE]


def test_a_shutdown_waits_until_leaderships_have_moved(form: str) -> None:
    """380.4: told to stop what it follows, hand over, and only then it ends."""

    async def scenario(world: World, handler: Recorder) -> None:
        other = world.other(1)
        running = Running(world, handler)
        await running.until(is_active(handler))
        world.topic("orders", [BROKER, 1])
        world.topic("bills", [1, BROKER])
        await running.until(lambda: len(handler.replicas) == 2)
        running.agent.shut_down()
        await running.until(lambda: AgentState.SHUTTING_DOWN in states(handler))
        seen = len(world.beats)
        await running.until(lambda: len(world.beats) > seen + 3)
        # Broker 1 has not applied the moves yet.
        assert not running.task.done()
        (stop,) = handler.of(StopReplica)
        assert not stop.delete_partitions
        assert {topic.name for topic in stop.topics.values()} == {"orders", "bills"}
        after = handler.commands[handler.commands.index(stop) + 1 :]
        assert not [each for each in after if isinstance(each, LeaderAndIsr)]
        at = world.controller.log_end_offset - 1
        beat = wire.BrokerHeartbeat(broker_id=1, broker_epoch=other, metadata_offset=at)
        world.submit(wire.Command(broker_heartbeat=beat))
        ended = await running.ended()
        assert ended.is_clean
        assert ended.broker_epoch == running.agent.broker_epoch
        assert len(handler.replicas) == 2

    play(scenario, form)


def test_a_shutdown_is_retried_under_a_newer_epoch(form: str) -> None:
    """380.2: the registration was replaced under the same incarnation meanwhile."""

    async def scenario(world: World, handler: Recorder) -> None:
        running = Running(world, handler)
        await running.until(is_active(handler))
        former = running.agent.broker_epoch
        world.is_held = True
        world.submit(wire.Command(unregister_broker=wire.UnregisterBroker(broker_id=BROKER)))
        world.submit(wire.Command(register_broker=settings_of(BROKER, 1).registration()))
        running.agent.shut_down()
        await running.until(lambda: any(each.want_shut_down for each in world.beats))
        assert not running.task.done()
        world.is_held = False
        world.moved()
        ended = await running.ended()
        assert ended.is_clean
        assert ended.broker_epoch > former
        epochs = {each.broker_epoch for each in world.beats if each.want_shut_down}
        assert epochs == {former, ended.broker_epoch}

    play(scenario, form)


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_shutdown_without_a_registration_is_not_clean(form: str, *, is_replaced: bool) -> None:
    async def scenario(world: World, handler: Recorder) -> None:
        running = Running(world, handler)
        await running.until(is_active(handler))
        world.is_held = True
        running.agent.shut_down()
        world.submit(wire.Command(unregister_broker=wire.UnregisterBroker(broker_id=BROKER)))
        if is_replaced:
            world.other(BROKER, incarnation=2)
        world.is_held = False
        world.moved()
        assert not (await running.ended()).is_clean

    play(scenario, form)


def test_a_shutdown_has_a_time_limit(form: str) -> None:
    async def scenario(world: World, handler: Recorder) -> None:
        running = Running(world, handler, shutdown_seconds_max=0.1)
        await running.until(is_active(handler))
        world.fails = [UnavailableError("no leader")] * 10_000
        running.agent.shut_down()
        assert not (await running.ended()).is_clean

    play(scenario, form)
