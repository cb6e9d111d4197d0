"""The agent on the production controller: registration, heartbeats, generations, its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from quorate.broker_agent.commands import LeaderAndIsr, StopReplica
from quorate.broker_agent.errors import AgentError, DuplicateBrokerError, RegistrationError
from quorate.broker_agent.handler import (
    AgentState,
    HistoryLost,
    HostedReplica,
    Refused,
    Registered,
    StateChanged,
    Waiting,
)
from quorate.client.errors import (
    LogTruncationError,
    OutcomeUnknownError,
    RefusedError,
    UnavailableError,
)
from quorum.errors import ErrorCode
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


def test_it_is_unfenced_by_what_it_has_executed(form: str) -> None:
    """The reported offset waits for the handler: a broker that is busy starting stays fenced."""

    async def scenario(world: World, handler: Recorder) -> None:
        handler.may_go_on.clear()
        running = Running(world, handler)
        await running.until(lambda: handler.commands)
        seen = len(world.beats)
        await running.until(lambda: len(world.beats) > seen + 3)
        assert {each.metadata_offset for each in world.beats} == {-1}
        assert states(handler) == []
        assert world.controller.image.cluster.broker(BROKER).fenced  # type: ignore[union-attr]
        handler.may_go_on.set()
        await running.until(is_active(handler))
        at = world.controller.log_end_offset - 1
        await running.until(lambda: world.beats[-1].metadata_offset >= at)
        running.agent.shut_down()
        assert (await running.ended()).is_clean

    play(scenario, form)


def test_a_change_is_not_reported_before_it_is_executed(form: str) -> None:
    async def scenario(world: World, handler: Recorder) -> None:
        running = Running(world, handler)
        await running.until(is_active(handler))
        handler.may_go_on.clear()
        before = running.agent.applied_offset
        world.topic("orders", [BROKER])
        await running.until(lambda: handler.of(LeaderAndIsr)[1:])
        seen = len(world.beats)
        await running.until(lambda: len(world.beats) > seen + 3)
        assert world.beats[-1].metadata_offset == before < world.controller.log_end_offset - 1
        handler.may_go_on.set()
        await running.until(lambda: running.agent.applied_offset > before)
        running.agent.shut_down()
        await running.ended()

    play(scenario, form)


def test_commands_of_a_former_registration_are_refused(form: str) -> None:
    """380.3: the node that it watches lags, and shows the past life of this broker first."""

    async def scenario(world: World, handler: Recorder) -> None:
        former = world.other(BROKER)
        world.topic("orders", [BROKER])
        orders = world.controller.image.topics.ids["orders"]
        handler.replicas[orders, 0] = HostedReplica(orders, 0, "orders", handler.directory)
        stale = world.controller.image
        world.drop("orders")
        world.controller.advance(10_000)
        world.first_state, world.is_held = stale, True
        running = Running(world, handler, incarnation=2)
        await running.until(lambda: len(handler.of(Refused)) == 2)
        assert {each.command.tag.broker_epoch for each in handler.of(Refused)} == {former}
        assert handler.commands == []
        seen = len(world.beats)
        await running.until(lambda: len(world.beats) > seen + 3)
        assert world.controller.image.cluster.broker(BROKER).fenced  # type: ignore[union-attr]
        world.is_held = False
        world.moved()
        await running.until(is_active(handler))
        # The StopReplica of the past life is refused too; the first command of this one decides.
        refused = {type(each.command).__name__ for each in handler.of(Refused)}
        assert refused == {"LeaderAndIsr", "UpdateMetadata", "StopReplica"}
        (stop,) = handler.of(StopReplica)
        assert stop.tag.broker_epoch == running.agent.broker_epoch > former
        assert not handler.replicas
        running.agent.shut_down()
        await running.ended()

    play(scenario, form)


def test_it_waits_for_the_session_of_a_former_process(form: str) -> None:
    async def scenario(world: World, handler: Recorder) -> None:
        former = world.other(BROKER)
        running = Running(world, handler, incarnation=2)
        await running.until(lambda: len(handler.of(Waiting)) > 1)
        assert "DUPLICATE_BROKER_REGISTRATION" in handler.of(Waiting)[0].cause
        world.controller.advance(10_000)
        await running.until(is_active(handler))
        assert running.agent.broker_epoch > former
        running.agent.shut_down()
        await running.ended()

    play(scenario, form)


def test_it_gives_up_on_an_id_that_another_process_keeps(form: str) -> None:
    async def scenario(world: World, handler: Recorder) -> None:
        world.other(BROKER)
        running = Running(world, handler, incarnation=2, registration_seconds_max=0.1)
        with pytest.raises(DuplicateBrokerError, match="use another id"):
            await running.ended()
        assert not handler.of(Registered)

    play(scenario, form)


def test_a_refusal_for_good_ends_it_at_once(form: str) -> None:
    async def scenario(world: World, handler: Recorder) -> None:
        running = Running(world, handler, log_dirs=())
        with pytest.raises(RegistrationError, match="no log directories are given"):
            await running.ended()

    play(scenario, form)


def test_it_is_replaced_while_it_was_paused(form: str) -> None:
    """The image names another process: everything after that is refused, and the agent ends."""

    async def scenario(world: World, handler: Recorder) -> None:
        running = Running(world, handler)
        await running.until(is_active(handler))
        # A paused process: it gets no answers and sees nothing of the log.
        world.is_held = True
        world.fails = [UnavailableError("paused")] * 10_000
        world.controller.advance(10_000)
        heir = world.other(BROKER, incarnation=2)
        world.topic("orders", [BROKER])
        done = len(handler.commands)
        world.is_held = False
        world.moved()
        with pytest.raises(DuplicateBrokerError, match="has taken broker 7 over"):
            await running.ended()
        executed = handler.commands[done:]
        assert all(each.tag.broker_epoch < heir for each in executed)
        assert not handler.replicas
        assert {each.command.tag.broker_epoch for each in handler.of(Refused)} == {heir}
        assert states(handler)[-1] is AgentState.SUPERSEDED

    play(scenario, form)


def test_a_heartbeat_tells_it_too_that_it_was_replaced(form: str) -> None:
    async def scenario(world: World, handler: Recorder) -> None:
        running = Running(world, handler)
        await running.until(is_active(handler))
        world.is_held = True
        world.fails = [UnavailableError("paused")] * 10_000
        world.controller.advance(10_000)
        world.other(BROKER, incarnation=2)
        world.fails.clear()
        with pytest.raises(DuplicateBrokerError, match="DUPLICATE_BROKER_REGISTRATION"):
            await running.ended()

    play(scenario, form)


def test_a_removed_registration_is_made_again_under_a_new_epoch(form: str) -> None:
    async def scenario(world: World, handler: Recorder) -> None:
        world.other(1)
        running = Running(world, handler)
        await running.until(is_active(handler))
        former = running.agent.broker_epoch
        world.topic("orders", [BROKER, 1])
        world.submit(wire.Command(unregister_broker=wire.UnregisterBroker(broker_id=BROKER)))
        await running.until(lambda: running.agent.broker_epoch > former)
        await running.until(is_active(handler))
        assert AgentState.UNREGISTERED in states(handler)
        full = [each for each in handler.of(LeaderAndIsr) if each.is_full]
        assert [each.tag.broker_epoch for each in full] == [former, running.agent.broker_epoch]
        world.topic("bills", [BROKER])
        await running.until(lambda: len(handler.replicas) == 2)
        assert handler.commands[-1].tag.broker_epoch == running.agent.broker_epoch
        await running.kill()

    play(scenario, form)


def test_lost_answers_change_nothing(form: str) -> None:
    async def scenario(world: World, handler: Recorder) -> None:
        world.fails = [UnavailableError("nobody"), OutcomeUnknownError("lost")]
        running = Running(world, handler)
        await running.until(is_active(handler))
        epoch = running.agent.broker_epoch
        world.fails = [OutcomeUnknownError("lost"), UnavailableError("fail-over")]
        await running.until(lambda: len(handler.of(Waiting)) == 4)
        seen = len(world.beats)
        await running.until(lambda: len(world.beats) > seen + 2)
        assert [type(each) for each in handler.of(Registered)] == [Registered]
        assert running.agent.broker_epoch == epoch
        running.agent.shut_down()
        assert (await running.ended()).broker_epoch == epoch

    play(scenario, form)


def test_a_registration_whose_answer_was_lost_is_found_again(form: str) -> None:
    """The same incarnation is registered twice, and has one epoch."""

    async def scenario(world: World, handler: Recorder) -> None:
        world.submit(wire.Command(register_broker=settings_of(BROKER, 1).registration()))
        known = world.controller.image.cluster.broker(BROKER).epoch  # type: ignore[union-attr]
        world.fails = [OutcomeUnknownError("lost")]
        running = Running(world, handler)
        await running.until(is_active(handler))
        assert running.agent.broker_epoch == known
        running.agent.shut_down()
        await running.ended()

    play(scenario, form)


def test_a_refused_heartbeat_that_no_retry_changes_ends_it(form: str) -> None:
    async def scenario(world: World, handler: Recorder) -> None:
        running = Running(world, handler)
        await running.until(is_active(handler))
        world.fails = [RefusedError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "not allowed")]
        with pytest.raises(AgentError, match="not allowed"):
            await running.ended()

    play(scenario, form)


def test_a_history_that_was_lost_is_compared_anew() -> None:
    """The registration is not in the log that a recovery has left: it is made again."""

    async def scenario(world: World, handler: Recorder) -> None:
        world.other(1)
        before = world.controller
        running = Running(world, handler)
        await running.until(is_active(handler))
        world.topic("lost", [BROKER, 1])
        await running.until(lambda: handler.replicas)
        world.controller = type(before)()
        assert world.controller.image.cluster.broker(BROKER) is None
        world.truncates = LogTruncationError("gone", divergent_offset=3, divergent_epoch=1)
        world.moved()
        await running.until(lambda: handler.of(HistoryLost))
        await running.until(lambda: len(handler.of(Registered)) == 2)
        await running.until(is_active(handler))
        await running.until(lambda: not handler.replicas)
        found = world.controller.image.cluster.broker(BROKER)
        assert found is not None
        assert running.agent.broker_epoch == found.epoch
        running.agent.shut_down()
        assert (await running.ended()).is_clean

    play(scenario, "watch")


def test_a_former_registration_in_a_restored_log_is_waited_for() -> None:
    """The log was restored to a time before this process: it has not been replaced, but precedes.

    Its own registration is gone, and that of the process before it is there and has a session.
    """

    async def scenario(world: World, handler: Recorder) -> None:
        running = Running(world, handler, incarnation=2)
        await running.until(is_active(handler))
        world.controller = type(world.controller)()
        former = world.other(BROKER, incarnation=1)
        world.topic("orders", [BROKER])
        world.truncates = LogTruncationError("restored", divergent_offset=3, divergent_epoch=1)
        world.moved()
        await running.until(lambda: len(handler.of(Refused)) == 2)
        assert {each.command.tag.broker_epoch for each in handler.of(Refused)} == {former}
        await running.until(lambda: handler.of(Waiting))
        assert "DUPLICATE_BROKER_REGISTRATION" in handler.of(Waiting)[-1].cause
        assert not handler.replicas
        world.controller.advance(10_000)
        await running.until(is_active(handler))
        assert running.agent.broker_epoch > former
        assert len(handler.replicas) == 1
        running.agent.shut_down()
        assert (await running.ended()).is_clean

    play(scenario, "watch")


def test_a_lost_directory_moves_leaderships(form: str) -> None:
    async def scenario(world: World, handler: Recorder) -> None:
        world.other(1)
        two = (handler.directory, bytes([BROKER, 9]) + bytes(14))
        running = Running(world, handler, log_dirs=two)
        await running.until(is_active(handler))
        world.topic("orders", [BROKER, 1])
        orders = world.controller.image.topics.ids["orders"]

        def state() -> object:
            return world.controller.image.topics.partition(orders, 0)

        # The choice among two directories is reported first.
        await running.until(lambda: state().directory(BROKER) == handler.directory)  # type: ignore[attr-defined]
        running.agent.lose_directory(handler.directory)
        await running.until(lambda: state().leader == 1)  # type: ignore[attr-defined]
        await running.kill()

    play(scenario, form)


def test_what_a_handler_raises_ends_the_agent(form: str) -> None:
    class Failing(Recorder):
        async def leader_and_isr(self, command: LeaderAndIsr) -> None:
            raise AgentError("the disk is full")

    async def run() -> None:
        running = Running(World(form), Failing())
        with pytest.raises(AgentError, match="the disk is full"):
            await running.ended()

    asyncio.run(run())
