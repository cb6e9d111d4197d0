"""A watch of a log that loses history, compared with the history that survived.

It is the client library's watch and the production server of watch streams, on an event loop of
its own whose time passes only while nothing else is to be done. A poll delivers one message, or the
end of a stream, so the watch's own retries are polls as well. It connects to any node: deposed
leaders, replicas that lag, former voters with their old directories.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Mapping
from types import SimpleNamespace
from typing import Any, cast

import grpc
from google.protobuf.message import Message

from quorate.client.caller import Caller
from quorate.client.channels import Nodes
from quorate.client.errors import DETAILS_KEY, LogTruncationError, UnavailableError
from quorate.client.results.metadata import ChangeBatch
from quorate.client.watch import Watch, WatchEvent
from quorate.services.admission import Gate
from quorate.services.calls import Context
from quorate.services.closing import Closing
from quorate.services.errors import RequestRefusedError, rich_status
from quorate.services.log_reads import LogReads
from quorate.services.ports import ServedNode
from quorate.services.watch import Watches
from quorum.batch import record_values, scan_batches
from quorum.errors import QuorateError, QuorumUsageError, StorageError
from quorum.log_position import Lineage, LogPosition
from quorum.types import Uuid
from quorum.v1.metadata_pb2 import OffsetForLeaderEpochRequest, WatchRequest, WatchResponse
from simulation.harness.virtual_loop import VirtualLoop
from simulation.invariants.violation import Violation
from simulation.recoveries.counts import RecoveryCounts
from simulation.recoveries.read_history import SKIPPED, Batch, ReadHistory, batches_in
from simulation.recoveries.reader import raise_as_client
from simulation.recoveries.world import Node, World
from simulation.served import Served

RESTART_SHARE = 0.1
"""Share of the polls before which the process ends; the next one has its stored position."""
BREAK_SHARE = 0.1
"""Share of the polls at which the stream breaks."""
_PLACES = 60
"""A multiple of every number of nodes that a run has."""
_READ_BYTES_MAX = 1 << 30


class _Subscribed(Served):
    """A replica whose changes wake streams on the watcher's loop."""

    def __init__(self, node: Node, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(node.running)
        self._subscribe = node.running.controller.subscribe
        self._loop = loop

    def subscribe(self, on_published: Callable[[], None]) -> Callable[[], None]:
        """Call back on the loop, in its next poll."""

        def notify(_: object) -> None:
            self._loop.call_soon(on_published)

        return self._subscribe(notify)


class _Stream:
    """One watch stream, as ``grpc.aio`` gives it to the client and to the service."""

    def __init__(self, watcher: Watcher, node: Node | None, request: WatchRequest) -> None:
        self._watcher = watcher
        self._node = node
        self._messages: asyncio.Queue[tuple[bytes, Uuid]] = asyncio.Queue()
        self._serving: asyncio.Task[None] | None = None
        self._watches: Watches | None = None
        if node is not None:
            served = cast("ServedNode", _Subscribed(node, watcher.loop))
            self._served = served
            self._watches = Watches(served, watches_max=1, closing=Closing(node.node_id))
            call = self._watches.serve(request, cast("Context", self))
            self._serving = watcher.loop.create_task(call)

    # The service's side.

    def auth_context(self) -> Mapping[str, list[bytes]]:
        return {}

    def peer(self) -> str:
        return "watcher:1"

    async def write(self, message: Message | bytes) -> None:
        data = message if isinstance(message, bytes) else message.SerializeToString()
        self._messages.put_nowait((data, self._served.log_incarnation.id))

    # The client's side.

    async def initial_metadata(self) -> grpc.aio.Metadata:
        return grpc.aio.Metadata()

    async def trailing_metadata(self) -> grpc.aio.Metadata:
        return grpc.aio.Metadata()

    async def read(self) -> WatchResponse:
        """Return the next message once the watcher is polled."""
        await self._watcher.polled()
        if self._serving is None or not self._watcher.reaches(self._node):
            raise _status(grpc.StatusCode.UNAVAILABLE, "the stream is broken")
        message = asyncio.ensure_future(self._messages.get())
        await asyncio.wait({message, self._serving}, return_when=asyncio.FIRST_COMPLETED)
        if message.done():
            data, incarnation = message.result()
            response = WatchResponse.FromString(data)
            self._watcher.receive(response, incarnation, self._node)
            return response
        message.cancel()
        error = self._serving.exception()
        if isinstance(error, QuorateError):
            rich = rich_status(error)
            raise _status(grpc.StatusCode.UNKNOWN, str(error), rich.SerializeToString())
        raise error or AssertionError("the service ended a stream without a status")

    def cancel(self) -> None:
        if self._serving is not None:
            self._serving.cancel()
        if self._watches is not None:
            self._watches.close()


def _status(code: grpc.StatusCode, text: str, details: bytes = b"") -> grpc.RpcError:
    trailing = grpc.aio.Metadata(*([(DETAILS_KEY, details)] if details else []))
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailing, text)


class _Nodes(Nodes):
    """The client's list of nodes: those that run now."""

    def __init__(self, watcher: Watcher, first: int) -> None:
        """``first``: place of the node that is asked first."""
        super().__init__(["n0"])
        self._watcher = watcher
        self._first = first

    @property
    def addresses(self) -> tuple[str, ...]:
        """Every running node."""
        found = [f"n{each}" for each in self._watcher.world.nodes]
        first = self._first % len(found)
        return (*found[first:], *found[:first])

    def node(self, address: str) -> Any:
        """Return the node's services, as far as a watch calls them."""
        node = self._watcher.world.nodes.get(int(address[1:]))
        watcher = self._watcher
        return SimpleNamespace(
            metadata=SimpleNamespace(Watch=lambda request: _Stream(watcher, node, request))
        )


class _Caller(Caller):
    """Asks a node that leads, as far as it knows, once."""

    def __init__(self, nodes: Nodes, watcher: Watcher, rng: random.Random) -> None:
        super().__init__(nodes, rng=rng)
        self._watcher = watcher

    async def call(self, service: str, method: str, request: Message, **_: object) -> Any:
        if not isinstance(request, OffsetForLeaderEpochRequest):
            raise AssertionError(f"a watch calls {service}.{method}")
        return await self._watcher.look_up(request)


class Watcher:
    """One watch, in one process after another, from offset 0 on.

    Its choices have a random generator of their own: what it does changes nothing else in a run.
    """

    def __init__(self, rng: random.Random, counts: RecoveryCounts) -> None:
        self._rng = rng
        self._counts = counts
        self.world: World
        self.loop = VirtualLoop()
        self.history = ReadHistory("watch")
        self._poll: asyncio.Future[None] = self.loop.create_future()
        """Done when the watch may go on."""
        self._held: asyncio.Future[None] = self.loop.create_future()
        """Done when the watch waits for its next poll."""
        self._sent: list[tuple[Batch, list[bytes]]] = []
        """Batches of the message that is being handed out, with the values of their records."""
        self._begin(LogPosition(0))

    def close(self) -> None:
        """End the process."""
        self._end()
        self.loop.close()

    def meet(
        self, world: World, incarnation: Uuid, kept: Mapping[int, bytes] | None = None
    ) -> None:
        """Go on in another world; ``kept``: the log of a recovery that began it."""
        self.world = world
        if kept is not None:
            self.history.begin(incarnation, kept)

    def poll(self) -> None:
        """Let the watch receive one message, or lose its stream, and check what comes of it.

        Raises:
            Violation: A record is skipped, or a truncation is not what was lost.
        """
        position = self._watch.position
        if position is not None and self._rng.random() < RESTART_SHARE:
            self._end()
            self._begin(LogPosition.from_json(position.to_json()))
        if not self._held.done():
            self._run_until_held()
        self._held = self.loop.create_future()
        self._poll.set_result(None)
        self._run_until_held()
        if not self._task.done():
            return
        error = self._task.exception()
        if isinstance(error, Violation):
            raise error
        if not isinstance(error, LogTruncationError):
            raise Violation(SKIPPED, "the watch ended", error=repr(error)) from error
        self._truncated(error)

    # ------------------------------------------------------------------ the process

    def _begin(self, position: LogPosition) -> None:
        nodes = _Nodes(self, self._rng.randrange(_PLACES))
        caller = _Caller(nodes, self, self._rng)
        self._watch = Watch(nodes, caller, client_id="watcher", position=position)
        self._held, self._sent = self.loop.create_future(), []
        self._task = self.loop.create_task(self._follow(self._watch))

    def _end(self) -> None:
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        while tasks := asyncio.all_tasks(self.loop):
            self._run(asyncio.wait(tasks))

    def _run(self, work: Coroutine[Any, Any, Any]) -> None:
        self.loop.run_until_complete(work)

    def _run_until_held(self) -> None:
        waited = {self._task, self._held}
        self._run(asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED))

    async def _follow(self, watch: Watch) -> None:
        async for event in watch:
            self._take(event, watch)

    async def polled(self) -> None:
        """Wait until the watch may go on."""
        self._poll = self.loop.create_future()
        self._held.set_result(None)
        await self._poll

    # ------------------------------------------------------------------ the nodes

    def reaches(self, node: Node | None) -> bool:
        """Whether a stream to this node still works."""
        runs = node is not None and self.world.nodes.get(node.node_id) is node
        return runs and self._rng.random() >= BREAK_SHARE

    async def look_up(self, request: OffsetForLeaderEpochRequest) -> Any:
        """Answer a lookup, by a node that leads as far as it knows.

        Raises:
            ClientError: None leads, or it refuses.
        """
        nodes = [each for each in self.world.nodes.values() if each.running.node.is_leader]
        if not nodes:
            raise UnavailableError("no leader")
        served = cast("ServedNode", Served(self._rng.choice(nodes).running))
        try:
            answer = await LogReads(served, Gate("fetches", 1)).offset_for_leader_epoch(request)
        except RequestRefusedError as error:
            raise_as_client(error)
        except (StorageError, QuorumUsageError) as error:
            raise UnavailableError(str(error)) from error
        self.history.meet(self.history.place(answer.log_incarnation))
        return answer

    # ------------------------------------------------------------------ what it gets

    def receive(self, response: WatchResponse, incarnation: Uuid, node: Node | None) -> None:
        """Note what a message holds, before the watch gets it."""
        if response.HasField("progress"):
            # The number of an incarnation is its place.
            self.history.meet(response.progress.log_incarnation_number)
        if node is None or node.stores is None or not response.HasField("changes"):
            return
        sent = response.changes.batches
        place = self.history.place(incarnation)
        data = node.stores.log.read(sent[0].base_offset, _READ_BYTES_MAX)
        data = data[: sum(each.size for each in scan_batches(data)[: len(sent)])]
        values = [
            [] if each.is_control else [bytes(value or b"") for value in record_values(data, each)]
            for each in scan_batches(data)
        ]
        self._sent = list(zip(batches_in(data, place), values, strict=True))

    def _take(self, event: WatchEvent, watch: Watch) -> None:
        if not isinstance(event, ChangeBatch):
            raise Violation(SKIPPED, "a state was sent, and nothing was trimmed")
        batch, values = self._sent.pop(0)
        if list(event.records) != values or event.base_offset != batch.base:
            raise Violation(SKIPPED, "other records were handed out", at=batch.base)
        self.history.take([batch], watch.offset, batch.recoveries)
        self._counts.batches_watched += 1

    def _truncated(self, error: LogTruncationError) -> None:
        lost = error.truncation_offsets()["__cluster_metadata", 0]
        self.history.truncate(lost.offset, self.history.end, is_exact=lost.is_exact)
        self._counts.watch_truncations += 1
        at = self._watch.position
        if at is None:
            raise AssertionError("a truncated watch has no position")
        lineage = Lineage(at.epochs)
        lineage.truncate_to(lost.offset)
        self._end()
        self._begin(
            LogPosition(
                lost.offset,
                error.divergent_epoch,
                lineage.epochs,
                newest_incarnation=at.newest_incarnation,
            )
        )
