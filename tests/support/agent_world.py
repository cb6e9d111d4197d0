"""An agent on the production controller, without network: its calls are evaluated at once.

It reads the metadata by a watch of a node, or from an observer in its process. Either may lag
behind: it shows only what was released to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, cast

from quorate.broker_agent.agent import BrokerAgent
from quorate.broker_agent.commands import BrokerCommand, LeaderAndIsr, StopReplica, UpdateMetadata
from quorate.broker_agent.handler import AgentEvent, HostedReplica
from quorate.broker_agent.metadata_source import MetadataSource
from quorate.broker_agent.observed_log import ObservedLog
from quorate.broker_agent.settings import AgentSettings
from quorate.broker_agent.watched_log import WatchedLog
from quorate.client.errors import ClientError, LogTruncationError, RefusedError
from quorate.client.pending import Applied
from quorate.client.results.commands import CommandResult, RegisterBrokerResult
from quorate.client.results.metadata import ChangeBatch, StateChunk
from quorate.client.watch import Watch, WatchEvent
from quorate.services.change_message import change_batch
from quorate.services.commands import to_command
from quorate.services.results import to_result
from quorum.batch import BatchHeader, scan_batches
from quorum.errors import ErrorCode
from quorum.types import Uuid
from quorum.v1 import commands_pb2 as wire
from simulation.laboratory.controller import CLUSTER_ID, ModelController
from statemachine.dump import dump_values
from statemachine.image import MetadataImage
from tests.support.observer_world import FollowingController

BROKER = 7
DIRECTORIES = (bytes([7]) * 16, bytes([8]) * 16)
PATIENCE_SECONDS = 20.0


class RecordingController(ModelController):
    """Keeps every batch that it commits, as a watcher and as a replica sees it."""

    def __init__(self) -> None:
        self.batches: list[ChangeBatch] = []
        self.data: list[bytes] = []
        super().__init__()

    def propose(self, batches: Sequence[bytes], headers: Sequence[BatchHeader]) -> int:
        for batch in batches:
            (header,) = scan_batches(batch)
            self.batches.append(change_batch(batch, header))
            self.data.append(batch)
        return super().propose(batches, headers)


class World:
    """The controller, and the calls of agents. Implements ``AgentCalls``."""

    def __init__(self, form: str = "watch") -> None:
        """``form``: how agents read the metadata, ``watch`` or ``observer``."""
        self.form = form
        self.observer: FollowingController | None = None
        """In the agent's process, in the form ``observer``; made when the agent starts."""
        self.controller = RecordingController()
        self.beats: list[wire.BrokerHeartbeat] = []
        self.fails: list[ClientError] = []
        """Raised by the next calls, in place of an answer."""
        self.truncates: LogTruncationError | None = None
        """What the watch ends with next."""
        self.is_held = False
        """The node that is watched gets nothing new."""
        self.first_state: MetadataImage | None = None
        """What the next watch begins with, or what the next observer has on its disk; None: the
        newest image."""
        self._moved = asyncio.Event()

    # ------------------------------------------------------------------ calls

    async def register_broker(
        self, registration: wire.RegisterBroker, *, timeout: float | None = None
    ) -> Applied:
        return self._write(wire.Command(register_broker=registration))

    async def heartbeat(
        self, beat: wire.BrokerHeartbeat, *, timeout: float | None = None
    ) -> Applied:
        self.beats.append(beat)
        return self._write(wire.Command(broker_heartbeat=beat))

    async def assign_replicas_to_dirs(
        self, assignment: wire.AssignReplicasToDirs, *, timeout: float | None = None
    ) -> Applied:
        return self._write(wire.Command(assign_replicas_to_dirs=assignment))

    def _write(self, command: wire.Command) -> Applied:
        if self.fails:
            raise self.fails.pop(0)
        return self.submit(command)

    def submit(self, command: wire.Command) -> Applied:
        """Evaluate any command."""
        answer = self.controller.submit(to_command(command))
        self.moved()
        if answer.code is not ErrorCode.NONE:
            raise RefusedError(answer.code, answer.message)
        result = to_result(command.WhichOneof("kind"), answer.result)
        return Applied(
            self.controller.log_end_offset, 1, CommandResult.of(result or wire.CommandResult())
        )

    # ------------------------------------------------------------------ the log

    def source(self) -> MetadataSource:
        """Return what an agent that starts now reads."""
        if self.form == "watch":
            return WatchedLog(lambda: cast("Watch", self._events()))
        self.observer = FollowingController()
        state, self.first_state = self.first_state or self.controller.image, None
        self.observer.apply(self.controller.data, state.provenance.end_offset)
        self.moved()
        return ObservedLog(self.observer.controller)

    def moved(self) -> None:
        """Wake the watches, and let the observer apply what is new."""
        self._moved.set()
        if self.observer is not None and not self.is_held:
            self.observer.apply(self.controller.data)

    async def _events(self) -> AsyncIterator[WatchEvent]:
        image = self.first_state or self.controller.image
        self.first_state = None
        at = image.provenance.end_offset
        values = list(dump_values(image))
        yield StateChunk(offset=at, epoch=1, chunk=0, records=values[:2])
        yield StateChunk(offset=at, epoch=1, chunk=1, records=values[2:], is_last=True)
        while True:
            self._moved.clear()
            if self.truncates is not None:
                error, self.truncates = self.truncates, None
                raise error
            for batch in [] if self.is_held else self.controller.batches:
                if batch.base_offset >= at:
                    at = batch.end_offset
                    yield batch
            await self._moved.wait()

    # ------------------------------------------------------------------ other brokers

    def topic(self, name: str, *replicas: Iterable[int]) -> None:
        placed = [wire.ReplicaAssignment(partition=n, broker_ids=r) for n, r in enumerate(replicas)]
        self.submit(wire.Command(create_topic=wire.CreateTopic(name=name, assignments=placed)))

    def drop(self, name: str) -> None:
        self.submit(wire.Command(delete_topic=wire.DeleteTopic(name=name)))

    def other(self, broker_id: int, incarnation: int = 1) -> int:
        """Register and unfence another broker; return its epoch."""
        settings = settings_of(broker_id, incarnation)
        applied = self.submit(wire.Command(register_broker=settings.registration()))
        epoch: int = applied.yielded(RegisterBrokerResult).broker_epoch
        at = self.controller.log_end_offset - 1
        beat = wire.BrokerHeartbeat(broker_id=broker_id, broker_epoch=epoch, metadata_offset=at)
        self.submit(wire.Command(broker_heartbeat=beat))
        return epoch


def settings_of(broker_id: int, incarnation: int, **changes: Any) -> AgentSettings:
    directories = tuple(bytes([broker_id, n]) + bytes(14) for n in range(1))
    times = {"heartbeat_seconds": 0.02, "retry_seconds": 0.02, "shutdown_beat_seconds": 0.01}
    return AgentSettings(
        broker_id,
        CLUSTER_ID,
        bytes([broker_id, incarnation]) + bytes(14),
        (wire.BrokerListener(name="PLAINTEXT", host="b", port=9092),),
        changes.pop("log_dirs", directories),
        **{**times, **changes},
    )


class Recorder:
    """A handler that executes commands on a dictionary. Implements ``CommandHandler``."""

    def __init__(self, hosted: Iterable[HostedReplica] = ()) -> None:
        self.replicas = {(each.topic_id, each.partition): each for each in hosted}
        self.commands: list[BrokerCommand] = []
        self.events: list[AgentEvent] = []
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.directory = settings_of(BROKER, 1).log_dirs[0]
        self._changed = asyncio.Event()

    def hosted(self) -> Iterable[HostedReplica]:
        return list(self.replicas.values())

    def directory_of(self, topic_id: Uuid, partition: int) -> Uuid | None:
        found = self.replicas.get((topic_id, partition))
        return None if found is None else found.directory_id

    async def stop_replica(self, command: StopReplica) -> None:
        await self._take(command)
        if command.delete_partitions:
            for key in command.partition_keys():
                self.replicas.pop(key)

    async def leader_and_isr(self, command: LeaderAndIsr) -> None:
        await self._take(command)
        for topic_id, topic in command.topics.items():
            for number in topic.partitions:
                replica = HostedReplica(topic_id, number, topic.name, self.directory)
                self.replicas.setdefault((topic_id, number), replica)

    async def update_metadata(self, command: UpdateMetadata) -> None:
        await self._take(command)

    async def _take(self, command: BrokerCommand) -> None:
        self.commands.append(command)
        self._changed.set()
        await self.may_go_on.wait()

    def report(self, event: AgentEvent) -> None:
        self.events.append(event)
        self._changed.set()

    def of(self, kind: type) -> list[Any]:
        """Return the events and commands of one type."""
        return [each for each in [*self.events, *self.commands] if isinstance(each, kind)]

    async def until(self, is_so: Callable[[], object]) -> None:
        """Wait for something that a command, an event or a heartbeat makes true."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not is_so():
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.02):
                        await self._changed.wait()


class Running:
    """An agent that runs in a task."""

    def __init__(self, world: World, handler: Recorder, **changes: Any) -> None:
        incarnation = changes.pop("incarnation", 1)
        calls = changes.pop("calls", world)
        settings = settings_of(BROKER, incarnation, **changes)
        self.agent = BrokerAgent(calls, settings, handler, world.source())
        self.task = asyncio.get_running_loop().create_task(self.agent.run())
        self.handler = handler

    async def until(self, is_so: Callable[[], object]) -> None:
        """Wait; an agent that has ended meanwhile fails the test."""

        def find() -> object:
            if is_so():
                return True
            if self.task.done():
                self.task.result()
                raise AssertionError("the agent has ended")
            return False

        await self.handler.until(find)

    async def kill(self) -> None:
        """End the process without a shutdown."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def ended(self) -> Any:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.task
