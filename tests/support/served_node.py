"""A quorum in memory behind the client services: one shared log, any number of nodes.

Everything committed is applied at once on every node, unless the test holds it back. The shared
state stores producers, as a log does, so that tests can count applied commands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

import grpc

from quorate.client.limits import SERVER_OPTIONS
from quorate.controller.requests import Answer, OnAnswer, PendingCommand, RequestContext
from quorate.services.access_gate import AccessGate
from quorate.services.ports import (
    Cancel,
    Leadership,
    Outcome,
    QuorumStatus,
    SnapshotMade,
    VoterChange,
)
from quorate.services.registration import ClientServices
from quorum.batch import read_header, scan_batches
from quorum.control_records import Origin
from quorum.core.state.replica_progress import ReplicaView
from quorum.core.state.replica_table import TreeView
from quorum.errors import CommandError, ErrorCode
from quorum.incarnation import FIRST_INCARNATION, LogIncarnation
from quorum.transport.served_methods import ServedMethods
from quorum.types import Endpoint, OffsetAndEpoch, ReplicaKey, SnapshotId, Voter
from statemachine import commands
from statemachine.codec import encode_record
from statemachine.commands import Command, FeatureRange
from statemachine.image import MetadataImage
from statemachine.machine import StateMachine
from statemachine.records import ConfigRecord, NoOpRecord
from tests.support.shared_log import TIMESTAMP, SharedLog, answer_one


class FakeNode:
    """A ``ServedNode`` over a ``SharedLog``. Tests set its attributes to change its behaviour."""

    def __init__(self, log: SharedLog, node_id: int = 1) -> None:
        self.log = log
        self.node_id = node_id
        self.cluster_id = "cluster"
        self.address = ""
        self.peers: dict[int, FakeNode] = {node_id: self}
        self.machine = StateMachine()
        self.supported_features = (FeatureRange("metadata.version", 1, 30),)
        self.applied_limit: int | None = None
        self.knows_high_watermark = True
        self.is_ready = True
        self.hears_leader = True
        self.refuse: ErrorCode | None = None
        self.after_submit: Callable[[Command], ErrorCode | None] | None = None
        self.contexts: list[RequestContext] = []
        self.held: list[Callable[[], None]] | None = None
        self._touched = asyncio.Event()
        self.reads: list[Callable[[int | None], None]] = []
        self.auto_confirm = True
        self.waits_max = 1000
        self.incarnation = FIRST_INCARNATION
        self.snapshot: SnapshotId | None = None
        self.checkpoint: MetadataImage | None = None
        """The state of ``snapshot``."""
        self.voters = (Voter(ReplicaKey(node_id), (Endpoint("CONTROLLER", "localhost", 9093),)),)
        self.log_reads = 0
        self.asked_to_lead: list[int] = []
        self.transfer_origins: list[Origin] = []
        self.transfer_outcome = Outcome(ErrorCode.NONE, "")
        self.elected: int | None = None
        self.voter_changes: list[VoterChange] = []
        self.change_outcome = Outcome(ErrorCode.NONE, "", 77)
        self._listeners: list[Callable[[], None]] = []
        self._waits: list[tuple[int, Callable[[], None]]] = []

    # what it is

    @property
    def image(self) -> MetadataImage:
        return self.machine.image

    @property
    def is_leader(self) -> bool:
        return self.log.leader == self.node_id

    @property
    def can_write(self) -> bool:
        return self.is_leader and self.is_ready

    @property
    def leadership(self) -> Leadership:
        leader = self.log.leader
        if leader is None:
            return Leadership(-1, self.log.epoch)
        peer = self.peers.get(leader)
        return Leadership(leader, self.log.epoch, peer.address if peer else "")

    @property
    def answering_leader(self) -> int:
        return self.leadership.leader_id if self.hears_leader else -1

    @property
    def log_start(self) -> OffsetAndEpoch:
        return self.log.start

    @property
    def log_end(self) -> OffsetAndEpoch:
        epoch = read_header(self.log.batches[-1]).epoch if self.log.batches else 0
        return OffsetAndEpoch(self.log.end, epoch)

    @property
    def high_watermark(self) -> int:
        if not self.knows_high_watermark:
            return -1
        return self.log.end if self.applied_limit is None else min(self.applied_limit, self.log.end)

    @property
    def log_incarnation(self) -> LogIncarnation:
        return self.incarnation

    @property
    def leader_epoch_start(self) -> int:
        return self.log.epoch_start

    # what it does

    def submit(self, commands: Sequence[PendingCommand]) -> None:
        for pending in commands:
            self.take(pending.command, pending.context, partial(answer_one, pending))

    def take(self, command: Command, context: RequestContext, on_answer: OnAnswer) -> None:
        """Evaluate one command, or keep it; tests replace this."""
        self.contexts.append(context)
        self._touched.set()
        if self.held is not None:
            self.held.append(lambda: self._evaluate(command, context, on_answer))
            return
        self._evaluate(command, context, on_answer)

    async def until(self, is_so: Callable[[], object]) -> None:
        """Wait until a condition holds; it is checked after each call."""
        while not is_so():
            self._touched.clear()
            await self._touched.wait()

    async def holds(self, count: int) -> None:
        """Wait until so many commands are held back."""
        await self.until(lambda: len(self.held or ()) >= count)

    async def has_listeners(self, count: int) -> None:
        """Wait until so many calls listen for published changes."""
        await self.until(lambda: len(self._listeners) >= count)

    async def has_waits(self, count: int) -> None:
        """Wait until exactly so many reads wait for an offset."""
        await self.until(lambda: len(self._waits) == count)

    async def has_reads(self, count: int) -> None:
        """Wait until so many reads wait for their confirmation."""
        await self.until(lambda: len(self.reads) >= count)

    def release(self) -> None:
        held, self.held = self.held or [], None
        for call in held:
            call()

    def _evaluate(self, command: Command, context: RequestContext, on_answer: OnAnswer) -> None:
        log = self.log
        if not self.can_write:
            on_answer(Answer(ErrorCode.NOT_LEADER_OR_FOLLOWER, "not the leader"))
            return
        if self.refuse is not None:
            on_answer(Answer(self.refuse, "told to refuse", self.log.end, self.log.epoch))
            return
        key = (context.producer_id, context.sequence)
        if context.producer_id >= 0 and context.producer_id not in log.known_producers:
            on_answer(Answer(ErrorCode.UNKNOWN_PRODUCER_ID, f"producer {context.producer_id}"))
            return
        if context.producer_id >= 0 and context.sequence >= context.oldest_open + 32:
            on_answer(Answer(ErrorCode.PRODUCER_WINDOW_EXCEEDED, "too far ahead"))
            return
        answer = log.answers.get(key) if context.producer_id >= 0 else None
        if answer is None:
            answer = self._apply(command, context)
            if context.producer_id >= 0:
                log.answers[key] = answer
        code = self.after_submit(command) if self.after_submit is not None else None
        on_answer(answer if code is None else Answer(code, "set by the test"))

    def _apply(self, command: Command, context: RequestContext) -> Answer:
        result: dict[str, object] = {}
        values = [encode_record(NoOpRecord())]
        if isinstance(command, commands.InitProducerId):
            result = {"producer_id": self.log.next_producer_id, "producer_epoch": 0}
            self.log.known_producers.add(self.log.next_producer_id)
            self.log.next_producer_id += 1
        elif isinstance(command, commands.IncrementalAlterConfigs):
            values = [
                encode_record(
                    ConfigRecord(command.resource_type, command.resource_name, c.name, c.value)
                )
                for c in command.changes
            ]
            self.log.applied.append(command)
        else:
            self.log.applied.append(command)
        headers = tuple(
            (name, text.encode())
            for name, text in (
                ("principal", context.principal),
                ("client-id", context.client_id),
                ("reason", context.reason),
                ("request-id", context.request_id),
            )
            if text
        )
        end, _ = self.log.append(values, headers)
        self.publish()
        return Answer(ErrorCode.NONE, "", end, self.log.epoch, result)

    def commit(self, *values: bytes) -> int:
        """Write records without the controller."""
        end, _ = self.log.append(list(values) or [encode_record(NoOpRecord())])
        self.publish()
        return end

    def publish(self) -> None:
        for node in self.peers.values():
            node.apply()

    def apply(self) -> None:
        limit = self.high_watermark
        for batch in self.log.batches:
            header = read_header(batch)
            if self.machine.end_offset <= header.base_offset and header.end_offset <= limit:
                self.machine.apply(batch)
        for listener in list(self._listeners):
            listener()
        due = [call for offset, call in self._waits if self.image.provenance.end_offset >= offset]
        self._waits = [w for w in self._waits if self.image.provenance.end_offset < w[0]]
        for call in due:
            call()

    def evaluate_submitted(self) -> None:
        """Do nothing: commands are evaluated when they are submitted."""

    def confirm_read(self, on_outcome: Callable[[int | None], None], reads: int = 1) -> None:
        if self.auto_confirm:
            on_outcome(self.high_watermark)
        else:
            self.reads.append(on_outcome)
            self._touched.set()

    def wait_applied(self, offset: int, on_applied: Callable[[], None]) -> Cancel:
        if len(self._waits) >= self.waits_max:
            raise CommandError(ErrorCode.RESOURCE_EXHAUSTED, "too many calls wait for an offset")
        entry = (offset, on_applied)
        self._waits.append(entry)
        self._touched.set()

        def cancel() -> None:
            if entry in self._waits:
                self._waits.remove(entry)
            self._touched.set()

        return cancel

    def subscribe(self, on_published: Callable[[], None]) -> Cancel:
        self._listeners.append(on_published)
        self._touched.set()

        def cancel() -> None:
            if on_published in self._listeners:
                self._listeners.remove(on_published)

        return cancel

    async def read_log(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        self.log_reads += 1
        out = b""
        for batch in self.log.batches:
            header = read_header(batch)
            if header.end_offset <= offset or header.end_offset > end_offset:
                continue
            if out and len(out) + len(batch) > max_bytes:
                break
            out += batch
        return out

    async def checkpoint_image(self, at_least_offset: int) -> MetadataImage | None:
        return self.checkpoint

    async def log_digest(self, offset: int) -> bytes:
        return self.log.digest_at(offset)

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch | None:
        found = None
        for header in scan_batches(b"".join(self.log.batches)):
            if header.epoch <= epoch:
                found = OffsetAndEpoch(header.end_offset, header.epoch)
        return found

    def latest_snapshot(self) -> SnapshotId | None:
        return self.snapshot

    def describe_quorum(self) -> QuorumStatus:
        keys = [ReplicaKey(i, bytes([i]) * 16) for i in sorted(self.peers)]
        views = [ReplicaView(key, True, self.log.end, TIMESTAMP, TIMESTAMP) for key in keys]
        return QuorumStatus(
            self.voters, (*views, ReplicaView(ReplicaKey(99), False, -1, -1, -1)), TreeView((), ())
        )

    async def create_snapshot(self, *, dry_run: bool) -> SnapshotMade:
        made = SnapshotId(self.log.end, self.log.epoch)
        return SnapshotMade(made, 0 if dry_run else 10, is_new=True)

    async def transfer_leadership(self, target: int, origin: Origin) -> Outcome:
        self.asked_to_lead.append(target)
        self.transfer_origins.append(origin)
        if self.transfer_outcome.code is ErrorCode.NONE and target != self.node_id:
            self.log.epoch += 1
            self.log.leader = self.elected if self.elected is not None else target
        return self.transfer_outcome

    def age_ms(self) -> int:
        return 5

    async def change_voters(self, change: VoterChange) -> Outcome:
        self.voter_changes.append(change)
        return self.change_outcome

    def wall_ms(self) -> int:
        return self.log.clock + 5


@asynccontextmanager
async def serving(*nodes: FakeNode, on_failure=None, credentials=None, **options):
    """Run a server per node on a free port; yields the servers, keyed by node id."""
    servers, services = {}, []
    for node in nodes:
        node.peers = {each.node_id: each for each in nodes}
        servers[node.node_id] = await start(node, services, on_failure, credentials, **options)
    try:
        yield servers
    finally:
        for each in services:
            each.closing.begin()
        for server in servers.values():
            await stop(server)
        for each in services:
            each.close()


async def start(
    node, services, on_failure=None, credentials=None, address="127.0.0.1:0", **options
):
    """One more server for a node; its address is stored in the node."""
    policy = options.get("policy")
    methods = ServedMethods(*([] if policy is None else [AccessGate(node, policy)]))
    server = grpc.aio.server(options=SERVER_OPTIONS)
    server.add_generic_rpc_handlers((methods,))
    kept = ClientServices(node, **options, **({"on_failure": on_failure} if on_failure else {}))
    services.append(kept)
    kept.register(methods)
    if credentials is None:
        port = server.add_insecure_port(address)
    else:
        port = server.add_secure_port(address, credentials)
    await server.start()
    await kept.start()
    node.address = f"localhost:{port}" if credentials else f"127.0.0.1:{port}"
    server.services = kept  # type: ignore[attr-defined]
    server.methods = methods  # type: ignore[attr-defined]
    return server


async def stop(server) -> None:
    """Stop the server as a node does: every call ends with a reason."""
    await server.services.stop()
    await server.methods.stop(server, None)


def cluster(count: int = 3, leader: int | None = 1) -> tuple[SharedLog, list[FakeNode]]:
    """A log with ``count`` nodes, opened by a leader's first record."""
    log = SharedLog(leader=leader)
    nodes = [FakeNode(log, node_id) for node_id in range(1, count + 1)]
    for node in nodes:
        node.peers = {each.node_id: each for each in nodes}
    nodes[0].commit()
    return log, nodes


__all__ = ["FakeNode", "SharedLog", "cluster", "serving", "start", "stop"]
