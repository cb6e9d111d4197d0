"""A broker's agent: it registers, sends heartbeats, follows the log and hands out commands.

Two tasks. One follows the log through a ``MetadataSource``, and executes what follows from each
change before it takes the next one. The other one sends heartbeats with the offset that was really
executed.

See: KIP-380, KIP-631; requirements 380.1 to 380.7; ADR 69 and 78.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from quorate.broker_agent.commands import BrokerCommand, LeaderAndIsr, StopReplica
from quorate.broker_agent.directory_reports import DirectoryReports
from quorate.broker_agent.errors import AgentError, DuplicateBrokerError, RegistrationError
from quorate.broker_agent.follower import LogFollower
from quorate.broker_agent.generation import Generation, stray_replicas
from quorate.broker_agent.handler import (
    AgentState,
    CommandHandler,
    Refused,
    Registered,
    StateChanged,
    Waiting,
)
from quorate.broker_agent.metadata_source import MetadataSource
from quorate.broker_agent.settings import AgentSettings
from quorate.client.errors import ClientError, RefusedError
from quorate.client.pending import Applied
from quorate.client.results.commands import (
    AssignReplicasToDirsResult,
    BrokerHeartbeatResult,
    RegisterBrokerResult,
)
from quorum.errors import ErrorCode
from quorum.types import Uuid
from quorum.v1.commands_pb2 import AssignReplicasToDirs, BrokerHeartbeat, RegisterBroker
from statemachine.image import MetadataImage
from statemachine.sections.cluster import NO_EPOCH


class AgentCalls(Protocol):
    """The calls of an agent; ``Client`` makes them."""

    async def register_broker(
        self,
        registration: RegisterBroker,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """Register a broker."""

    async def heartbeat(
        self,
        beat: BrokerHeartbeat,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """Send a heartbeat."""

    async def assign_replicas_to_dirs(
        self,
        assignment: AssignReplicasToDirs,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Applied:
        """Report in which log directories replicas are."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How an agent has ended after it was asked to."""

    broker_epoch: int
    is_clean: bool
    """The controller has granted the shutdown: the broker leads nothing, and others know it. Only
    then the epoch may be named at the next start."""


class BrokerAgent:
    """One process run of a broker. Construct and run it on one event loop; run it once."""

    def __init__(
        self,
        calls: AgentCalls,
        settings: AgentSettings,
        handler: CommandHandler,
        source: MetadataSource,
    ) -> None:
        """``source`` is ``WatchedLog(client.watch)``, or ``ObservedLog`` of an observer here."""
        self._calls = calls
        self._source = source
        self._settings = settings
        self._handler = handler
        self._generation = Generation()
        self._state: AgentState | None = None
        self._must_stop = asyncio.Event()
        self._beat_now = asyncio.Event()
        self._applied_offset = -1
        self._reports = DirectoryReports(settings.broker_id)
        self._offline: set[Uuid] = set()
        self._waits_until = float("-inf")
        """Until when a former process's session may keep this one from registering again."""

    @property
    def broker_epoch(self) -> int:
        """The epoch of the registration that this process holds; -1 before the first."""
        return self._generation.broker_epoch

    @property
    def applied_offset(self) -> int:
        """The last offset whose commands were executed, inclusive; -1 before the first."""
        return self._applied_offset

    def shut_down(self) -> None:
        """Request a controlled shutdown; ``run`` returns when it is done or takes too long."""
        self._must_stop.set()
        self._beat_now.set()

    def lose_directory(self, directory_id: Uuid) -> None:
        """Report that a log directory is offline; leaderships of replicas in it move (KIP-858)."""
        self._offline.add(directory_id)
        self._beat_now.set()

    async def run(self) -> Ended:
        """Run until a shutdown was requested and has ended.

        Raises:
            DuplicateBrokerError: Another live process has the broker id.
            RegistrationError: The cluster refuses the broker, or was not reached in time.
            AgentError, QuorateError: A record of the log is newer than this release or
                contradicts the others; or the handler has raised it.
        """
        if not await self._register_first():
            return Ended(NO_EPOCH, is_clean=False)
        follower = LogFollower(
            self._settings.broker_id, self._source, self._execute, self._forget, self._handler
        )
        loop = asyncio.get_running_loop()
        following = loop.create_task(follower.run())
        beating = loop.create_task(self._beat())
        try:
            await asyncio.wait((following, beating), return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                following.result()
            return await beating
        finally:
            following.cancel()
            beating.cancel()
            await asyncio.gather(following, beating, return_exceptions=True)

    # ------------------------------------------------------------------ registration

    async def _register_first(self) -> bool:
        """Register; return false if a shutdown was requested before it succeeded."""
        loop = asyncio.get_running_loop()
        registering = loop.create_task(self._register_in_time())
        stopping = loop.create_task(self._must_stop.wait())
        try:
            await asyncio.wait((registering, stopping), return_when=asyncio.FIRST_COMPLETED)
            if registering.done():
                registering.result()
            return registering.done()
        finally:
            # A registration that was sent and is not waited for stays fenced, and expires.
            registering.cancel()
            stopping.cancel()
            await asyncio.gather(registering, stopping, return_exceptions=True)

    async def _register_in_time(self) -> None:
        settings, loop = self._settings, asyncio.get_running_loop()
        deadline = loop.time() + settings.registration_seconds_max
        while True:
            left = max(settings.retry_seconds, deadline - loop.time())
            try:
                await self._register(left)
                return
            except ClientError as error:
                # What was sent may have been applied: the same process asks for the same again.
                if isinstance(error, RefusedError) and not _may_change(error):
                    raise RegistrationError(
                        f"broker {settings.broker_id} is not registered: {error}"
                    ) from error
                if loop.time() >= deadline:
                    raise self._out_of_time(error) from error
                self._handler.report(Waiting(f"not registered yet: {error}"))
            await asyncio.sleep(settings.retry_seconds)

    def _out_of_time(self, error: ClientError) -> AgentError:
        settings = self._settings
        text = f"broker {settings.broker_id}: {error}"
        if isinstance(error, RefusedError):
            return DuplicateBrokerError(f"{text}; stop the other process, or use another id")
        return RegistrationError(f"{text}; not within {settings.registration_seconds_max:g} s")

    async def _register(self, seconds: float) -> None:
        applied = await self._calls.register_broker(self._settings.registration(), timeout=seconds)
        self._hold(applied.yielded(RegisterBrokerResult).broker_epoch)

    def _hold(self, broker_epoch: int) -> None:
        if broker_epoch > self._generation.broker_epoch:
            self._generation.hold(broker_epoch)
            self._handler.report(Registered(broker_epoch))
            self._beat_now.set()

    # ------------------------------------------------------------------ heartbeats

    async def _beat(self) -> Ended:
        while not self._must_stop.is_set():
            self._beat_now.clear()
            if await self._beat_once() is not None:
                await self._report_directories()
            # Unlike ``wait_for``, this cannot lose a cancellation that comes with the event.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.heartbeat_seconds):
                    await self._beat_now.wait()
        return await self._end()

    async def _beat_once(self, *, want_shut_down: bool = False) -> BrokerHeartbeatResult | None:
        """Send a heartbeat; return its answer, or None if there is none."""
        broker_epoch = self._generation.broker_epoch
        beat = BrokerHeartbeat(
            broker_id=self._settings.broker_id,
            broker_epoch=broker_epoch,
            metadata_offset=self._applied_offset,
            want_shut_down=want_shut_down,
            offline_log_dirs=sorted(self._offline),
        )
        try:
            applied = await self._calls.heartbeat(beat, timeout=self._settings.heartbeat_seconds)
        except RefusedError as error:
            if error.code != ErrorCode.STALE_BROKER_EPOCH:
                if not _may_change(error):
                    raise AgentError(f"broker {self._settings.broker_id}: {error}") from error
                self._handler.report(Waiting(f"heartbeat refused: {error}"))
            elif self._generation.broker_epoch == broker_epoch and not want_shut_down:
                await self._register_again(error)
            return None
        except ClientError as error:
            self._handler.report(Waiting(f"heartbeat lost: {error}"))
            return None
        return applied.yielded(BrokerHeartbeatResult)

    async def _report_directories(self) -> None:
        request = self._reports.request(self._generation.broker_epoch)
        if request is None:
            return
        try:
            seconds = self._settings.heartbeat_seconds
            applied = await self._calls.assign_replicas_to_dirs(request, timeout=seconds)
        except ClientError as error:
            # The next heartbeat finds out about the registration, and this is sent again.
            self._handler.report(Waiting(f"directories not reported: {error}"))
            return
        self._reports.take(applied.yielded(AssignReplicasToDirsResult))

    async def _register_again(self, stale: RefusedError) -> None:
        """Register after the registration was removed; give up if another process has it.

        Raises:
            DuplicateBrokerError: Another process holds the broker id.
        """
        try:
            await self._register(self._settings.heartbeat_seconds)
        except RefusedError as error:
            if error.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION:
                if asyncio.get_running_loop().time() < self._waits_until:
                    self._handler.report(Waiting(f"not registered again yet: {error}"))
                    return
                raise self._superseded(str(error)) from error
            raise RegistrationError(f"broker {self._settings.broker_id}: {error}") from error
        except ClientError as error:
            self._handler.report(Waiting(f"{stale}; not registered again yet: {error}"))

    def _superseded(self, cause: str) -> DuplicateBrokerError:
        return DuplicateBrokerError(
            f"another process has taken broker {self._settings.broker_id} over: {cause}"
        )

    async def _end(self) -> Ended:
        """Hand leaderships over; retried under a newer epoch, if there is one (380.2)."""
        loop, settings = asyncio.get_running_loop(), self._settings
        deadline = loop.time() + settings.shutdown_seconds_max
        while True:
            broker_epoch = self._generation.broker_epoch
            answer = await self._beat_once(want_shut_down=True)
            if answer is not None and answer.should_shut_down:
                return Ended(broker_epoch, is_clean=True)
            is_gone = self._state in (AgentState.UNREGISTERED, AgentState.SUPERSEDED)
            if loop.time() >= deadline or (answer is None and is_gone):
                return Ended(broker_epoch, is_clean=False)
            await asyncio.sleep(settings.shutdown_beat_seconds)

    # ------------------------------------------------------------------ metadata

    def _forget(self) -> None:
        """Forget a registration that was made in a log which is no longer the cluster's.

        That log may have the registration of a former process, with a session.
        """
        seconds = self._settings.registration_seconds_max
        self._waits_until = asyncio.get_running_loop().time() + seconds
        self._generation = Generation()
        self._state = None
        self._applied_offset = -1
        self._beat_now.set()

    async def _execute(self, image: MetadataImage, commands: list[BrokerCommand]) -> None:
        """Execute what follows from the metadata up to ``image``."""
        state = self._state_in(image)
        for command in commands:
            code = self._generation.check(command)
            if code is ErrorCode.NONE:
                await self._carry_out(command)
            else:
                self._handler.report(Refused(command, code))
        self._applied_offset = image.provenance.end_offset - 1
        if state is not self._state:
            self._state = state
            self._handler.report(StateChanged(state, self._applied_offset))
            # The controller unfences at a heartbeat, and an unregistered broker learns it by one.
            self._beat_now.set()
        if state is AgentState.SUPERSEDED and not self._must_stop.is_set():
            raise self._superseded("the metadata names its incarnation")

    def _state_in(self, image: MetadataImage) -> AgentState:
        """Return what an image says of this process; hold the registration that it has there."""
        broker = image.cluster.broker(self._settings.broker_id)
        if broker is not None and broker.incarnation_id == self._settings.incarnation_id:
            self._hold(broker.epoch)
            if broker.in_controlled_shutdown:
                return AgentState.SHUTTING_DOWN
            return AgentState.FENCED if broker.fenced else AgentState.ACTIVE
        if self._state in (None, AgentState.CATCHING_UP):
            return AgentState.CATCHING_UP
        if broker is None:
            return AgentState.UNREGISTERED
        return AgentState.SUPERSEDED

    async def _carry_out(self, command: BrokerCommand) -> None:
        if isinstance(command, StopReplica):
            await self._handler.stop_replica(command)
        elif isinstance(command, LeaderAndIsr):
            hosted = (
                ((each.topic_id, each.partition), each.topic_name)
                for each in self._handler.hosted()
            )
            strays = stray_replicas(command, hosted)
            if strays is not None:
                await self._handler.stop_replica(strays)
            await self._handler.leader_and_isr(command)
            self._reports.compare(command, self._handler.directory_of)
        else:
            await self._handler.update_metadata(command)


def _may_change(error: RefusedError) -> bool:
    """Whether the same request may succeed later."""
    if error.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION:
        return True
    try:
        return ErrorCode(error.code).is_retriable
    except ValueError:
        return False
