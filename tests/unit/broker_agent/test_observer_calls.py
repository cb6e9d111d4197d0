"""Calls of an agent with an observer in its process: none for a log that was left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from quorate.broker_agent.errors import AgentError
from quorate.broker_agent.handler import Registered, Waiting
from quorate.broker_agent.observer_calls import ObserverCalls
from quorate.client import Client
from quorate.client.errors import LogIncarnationError, UnavailableError
from quorate.client.pending import Applied
from quorate.client.results.metadata import OffsetForLeaderEpochResponse
from quorum.incarnation import LogIncarnation
from quorum.types import ZERO_UUID, Uuid, uuid_to_text
from quorum.v1 import commands_pb2 as wire
from quorum.v1.metadata_pb2 import OffsetForLeaderEpochResponse as Message
from tests.support.agent_world import BROKER, Recorder, Running, World, settings_of
from tests.support.served_node import cluster as nodes_of
from tests.support.served_node import serving

OURS, OTHER = bytes([1]) * 16, bytes([2]) * 16


class Cluster(World):
    """A world whose leader names the incarnation of its log."""

    def __init__(self, incarnation_id: Uuid = ZERO_UUID, number: int = 0) -> None:
        super().__init__("observer")
        self.answer: Callable[[], OffsetForLeaderEpochResponse]
        self.is_of(incarnation_id, number)
        self.is_silent = False

    def is_of(self, incarnation_id: Uuid, number: int) -> None:
        named = b"" if incarnation_id == ZERO_UUID else incarnation_id
        message = Message(log_incarnation=named, log_incarnation_number=number)
        self.answer = lambda: OffsetForLeaderEpochResponse.of(message)

    async def offset_for_leader_epoch(
        self, epoch: int, *, log_incarnation_number: int = 0
    ) -> OffsetForLeaderEpochResponse:
        if self.is_silent:
            await asyncio.get_running_loop().create_future()
        return self.answer()


class Asking(World):
    """A world whose leader is asked by a client."""

    def __init__(self, client: Client) -> None:
        super().__init__("observer")
        self.offset_for_leader_epoch = client.offset_for_leader_epoch


class Slow(Cluster):
    """A cluster whose answer to the question takes three seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float | None] = []
        self._now = 100.0

    def stop_the_clock(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.time = lambda: self._now  # type: ignore[method-assign]

    async def offset_for_leader_epoch(
        self, epoch: int, *, log_incarnation_number: int = 0
    ) -> OffsetForLeaderEpochResponse:
        self._now += 3
        return self.answer()

    async def register_broker(
        self, registration: wire.RegisterBroker, *, timeout: float | None = None
    ) -> Applied:
        self.times.append(timeout)
        return await super().register_broker(registration, timeout=timeout)

    async def heartbeat(
        self, beat: wire.BrokerHeartbeat, *, timeout: float | None = None
    ) -> Applied:
        self.times.append(timeout)
        return await super().heartbeat(beat, timeout=timeout)


def beat(cluster: Cluster, calls: ObserverCalls) -> None:
    """One heartbeat of a registered broker."""
    epoch = cluster.other(BROKER)
    request = wire.BrokerHeartbeat(broker_id=BROKER, broker_epoch=epoch, metadata_offset=0)
    asyncio.run(calls.heartbeat(request, timeout=0.05))


@pytest.mark.parametrize(("own", "number"), [(ZERO_UUID, 0), (OURS, 2)])
def test_calls_are_made_for_the_log_of_the_observer(own: Uuid, number: int) -> None:
    cluster = Cluster(own, number)
    beat(cluster, ObserverCalls(cluster, own, lambda: number))
    assert len(cluster.beats) == 1


def test_a_new_observer_whose_log_has_not_got_that_far_is_no_stranger() -> None:
    """The directory is formatted for the incarnation; what it has copied is of an earlier one."""
    cluster = Cluster(OURS, 2)
    beat(cluster, ObserverCalls(cluster, OURS, lambda: 0))
    assert len(cluster.beats) == 1


@pytest.mark.parametrize(("own", "found", "number"), [(ZERO_UUID, OURS, 1), (OURS, OTHER, 1)])
def test_nothing_is_called_for_another_log(own: Uuid, found: Uuid, number: int) -> None:
    """Also that of a second recovery which knew nothing of ours: its number is the same."""
    cluster = Cluster(found, number)
    calls = ObserverCalls(cluster, own, lambda: 0 if own == ZERO_UUID else 1)
    with pytest.raises(LogIncarnationError, match=f"--log-incarnation {uuid_to_text(found)}"):
        beat(cluster, calls)
    registration = settings_of(BROKER, 3).registration()
    with pytest.raises(LogIncarnationError):
        asyncio.run(calls.register_broker(registration, timeout=1))
    assert cluster.beats == []


def test_a_former_voter_ends_no_agent() -> None:
    """A node with an old directory answers as a leader: another one is asked next."""
    cluster = Cluster(ZERO_UUID, 0)
    with pytest.raises(UnavailableError, match="former voter"):
        beat(cluster, ObserverCalls(cluster, OURS, lambda: 1))
    assert cluster.beats == []


def test_a_new_observer_does_not_take_a_former_voter_for_the_leader() -> None:
    """Its log has no incarnation yet, so it cannot tell which of the two is newer."""
    cluster = Cluster(ZERO_UUID, 0)
    with pytest.raises(UnavailableError, match=f"formatted for {uuid_to_text(OURS)}"):
        beat(cluster, ObserverCalls(cluster, OURS, lambda: 0))
    assert cluster.beats == []


def test_a_former_voter_that_leads_is_passed_over() -> None:
    """Method: its address comes first, and it answers as a leader whenever it is asked."""

    async def scenario() -> None:
        (_, (former,)), (_, (leader,)) = nodes_of(1), nodes_of(1)
        leader.incarnation = LogIncarnation(1, OURS)
        async with serving(former), serving(leader):
            async with Client([former.address, leader.address]) as client:
                answer = await client.offset_for_leader_epoch(0)
                assert answer.log_incarnation_number == 0
                world = Asking(client)
                calls = ObserverCalls(world, OURS, lambda: 1)
                beat_of = wire.BrokerHeartbeat(broker_id=BROKER, broker_epoch=world.other(BROKER))
                await calls.heartbeat(beat_of, timeout=60)
        assert len(world.beats) == 1

    asyncio.run(scenario())


def test_no_command_is_written_into_the_log_of_a_former_voter() -> None:
    """Method: the question is answered by the leader; the former voter accepts writes, too."""

    async def scenario() -> None:
        (_, (former,)), (_, (leader,)) = nodes_of(1), nodes_of(1)
        leader.incarnation, former.log.epoch = LogIncarnation(1, OURS), 1_000
        async with serving(former), serving(leader):
            servers = [former.address, leader.address]
            async with Client(servers, log_incarnation=OURS) as client:
                calls = ObserverCalls(client, OURS, lambda: 1)
                await calls.register_broker(settings_of(BROKER, 3).registration(), timeout=60)
                beat_of = wire.BrokerHeartbeat(broker_id=BROKER, broker_epoch=1)
                await calls.heartbeat(beat_of, timeout=60)
                await calls.assign_replicas_to_dirs(wire.AssignReplicasToDirs(), timeout=60)
        assert (len(former.log.applied), len(leader.log.applied)) == (0, 3)

    asyncio.run(scenario())


def test_the_question_has_the_time_of_the_call() -> None:
    cluster = Cluster()
    cluster.is_silent = True
    with pytest.raises(UnavailableError, match="did not name"):
        beat(cluster, ObserverCalls(cluster, ZERO_UUID, lambda: 0))


@pytest.mark.parametrize(("seconds", "left"), [(7.0, 4.0), (3.0, 0.0), (None, None)])
def test_the_question_and_the_call_have_one_deadline(
    seconds: float | None, left: float | None
) -> None:
    """Method: the loop's clock stands still, and the question takes three seconds of it."""
    cluster = Slow()
    calls = ObserverCalls(cluster, ZERO_UUID, lambda: 0)

    async def scenario() -> None:
        cluster.stop_the_clock(asyncio.get_running_loop())
        await calls.register_broker(settings_of(BROKER, 3).registration(), timeout=seconds)
        epoch = cluster.other(BROKER)
        request = wire.BrokerHeartbeat(broker_id=BROKER, broker_epoch=epoch, metadata_offset=0)
        await calls.heartbeat(request, timeout=seconds)

    asyncio.run(scenario())
    assert cluster.times == [left, left]


def test_an_agent_whose_observer_was_left_behind_ends() -> None:
    """Its heartbeats would keep it alive with an offset of a history that is gone."""

    async def run() -> None:
        cluster, handler = Cluster(), Recorder()
        running = Running(cluster, handler, calls=ObserverCalls(cluster, ZERO_UUID, lambda: 0))
        await running.until(lambda: handler.of(Registered))
        await running.until(lambda: len(cluster.beats) > 2)
        cluster.is_silent = True
        await running.until(lambda: handler.of(Waiting))
        seen = len(cluster.beats)
        cluster.is_of(OURS, 1)
        cluster.is_silent = False
        with pytest.raises(AgentError, match="LOG_INCARNATION_MISMATCH"):
            await running.ended()
        assert len(cluster.beats) == seen

    asyncio.run(run())
