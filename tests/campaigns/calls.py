"""Mutated calls over every RPC of a live cluster, while an ordinary client writes.

A round calls a few methods. After each round the ordinary ("honest") client restores the old value
of its key. Then the state of the quorum is compared with the state before: epoch, leader, vote on
disk, voter set, endpoints, processes, tracebacks and readiness. The images of all nodes must be
equal. After a round without mutated writes the image must also equal the old one. At the end every
batch of the log is compared with the answer to its client.

Calls that an operator is allowed to make are not sent: admin calls with the exact key of a voter,
and streams with the whole key of a voter, which mode ``insecure`` accepts.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from grpc import aio

from quorate.client.client import Client
from quorate.client.queries import LINEARIZABLE
from quorate.demo.local_cluster import ClusterError
from quorum.transport.hello import Hello, encode_hello
from quorum.types import ReplicaKey
from quorum.v1 import commands_pb2 as wire
from quorum.v1 import metadata_pb2
from tests.campaigns.frames import Script, StreamScripts
from tests.campaigns.honest import Batch, HonestWriter, batches, unexplained
from tests.campaigns.mutations import Current, some, sweep
from tests.campaigns.observation import Observation, differences, observe
from tests.campaigns.report import Report, Say
from tests.campaigns.sending import OPTIONS, WRITE_SECONDS, config_digest, play, send, wrong_endings
from tests.campaigns.valid_calls import (
    EXCHANGE,
    METHODS,
    TOPIC,
    WRITES,
    ClusterState,
    is_authorised,
    offer_features,
    valid_calls,
)
from tests.integration.processes import Processes

SETTINGS: dict[str, object] = {
    "quorum.fetch_timeout_ms": 8_000,
    "controller.session_timeout_ms": 3_600_000,
}
"""Long timeouts: a slow machine must neither cause an election nor fence a broker, because both
would look like the effect of a call."""
ROUND_CALLS = 1_000
WORKERS = 16
EXCHANGE_SHARE = 0.25
SWEPT_SHARE = 0.8
RANDOM_EVERY = 30
"""Every so many-th call is random while the sweep lasts, so that each round has random calls."""
LEVEL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Call:
    """A call to send: the bytes of a request, or the script of a stream."""

    method: str
    what: str
    data: bytes = b""
    script: Script | None = None


@dataclass
class Tally:
    """What was sent, and how it ended."""

    sent: Counter[str] = field(default_factory=Counter)
    endings: dict[str, Counter[str]] = field(default_factory=dict)
    offsets: set[int] = field(default_factory=set)
    unknown: int = 0
    rounds: int = 0

    @property
    def calls(self) -> int:
        """Mutated requests: a stream between peers counts once for its hello and each frame."""
        return self.sent.total()


def shares(methods: Sequence[str], calls: int, swept: Mapping[str, int]) -> dict[str, int]:
    """How many calls each method gets; together at least ``calls``.

    Args:
        methods: Full names.
        calls: For all of them.
        swept: Number of calls in the sweep of each method. They come first: 12,000 calls
            hold all of them.
    """
    others = [each for each in methods if each != EXCHANGE]
    streams = round(calls * (EXCHANGE_SHARE if others else 1.0)) if EXCHANGE in methods else 0
    left = calls - streams
    share = min(1.0, SWEPT_SHARE * left / max(1, sum(swept[each] for each in others)))
    found = {each: round(share * swept[each]) for each in others}
    rest = -(-(left - sum(found.values())) // max(1, len(others)))
    found = {each: count + rest for each, count in found.items()}
    return found | ({EXCHANGE: streams} if streams else {})


def sweep_of(method: str, cluster_state: ClusterState) -> list[tuple[str, bytes]]:
    """Return every mutated field value of every valid call of a method."""
    return [
        pair
        for each in valid_calls(cluster_state)[method]
        for pair in sweep(each, cluster_state.current)
    ]


class Mutants:
    """An endless supply of calls of one method: its sweep in random order, then random calls."""

    def __init__(self, method: str, rng: random.Random) -> None:
        self._method = method
        self._rng = rng
        self._swept: list[int] | None = None
        self.authorised = 0
        """Number of calls that were left out because an operator is allowed to make them."""

    def take(self, cluster_state: ClusterState, count: int) -> Iterator[Call]:
        """Yield the next ``count`` calls, built for the cluster's present state."""
        valid, swept = (
            valid_calls(cluster_state)[self._method],
            sweep_of(self._method, cluster_state),
        )
        if self._swept is None:
            self._swept = list(range(len(swept)))
            self._rng.shuffle(self._swept)
        number = 0
        while number < count:
            if self._swept and number % RANDOM_EVERY:
                what, data = swept[self._swept.pop() % len(swept)]
            else:
                what, data = some(self._rng.choice(valid), cluster_state.current, self._rng)
            if is_authorised(self._method, data, cluster_state):
                self.authorised += 1
                continue
            number += 1
            yield Call(self._method, what, data)


class CallsCampaign:
    """Use it once, on a cluster that was just started with ``SETTINGS``."""

    def __init__(self, cluster: Processes, *, seed: int, calls: int, announce: Say,
                 methods: Sequence[str] = ()) -> None:  # fmt: skip
        """``methods``: only these, by full name; empty for every one there is."""
        self._cluster = cluster
        self._seed = seed
        self._wanted = calls
        self._announce = announce
        self._methods = tuple(methods) or (*METHODS, EXCHANGE)
        self._rng = random.Random(seed)
        self._mutants = {each: Mutants(each, self._rng) for each in self._methods}
        self._tally = Tally()
        self._problems: list[str] = []
        self._channels: dict[int, aio.Channel] = {}

    async def run(self) -> Report:
        """Send all calls, compare after each round, and return the report."""
        began = time.monotonic()
        async with AsyncExitStack() as stack:
            for node in self._cluster.voters:
                channel = aio.insecure_channel(node.address, options=OPTIONS)
                self._channels[node.id] = await stack.enter_async_context(channel)
            leader = await asyncio.to_thread(self._cluster.leader)
            honest = HonestWriter(self._channels[leader.id])
            await honest.write("1")
            await self._set_up(leader.id)
            before = await self._level()
            first = before.digests[leader.id][0]
            log: Mapping[int, Batch] = {}
            try:
                for group in self._rounds(await self._cluster_state(leader.id)):
                    before = await self._round(group, honest, before, leader.id)
                end = before.digests[leader.id][0]
                log = await batches(self._channels[leader.id], first, end)
                self._problems += self._explained(honest, log, first)
            except ClusterError as error:
                # The comparison itself failed. That is a finding, and the run ends here.
                self._problems.append(str(error))
        self._problems += [f"an honest write failed: {each}" for each in honest.failures]
        return self._report(time.monotonic() - began, len(honest.written), len(log))

    def _explained(self, honest: HonestWriter, log: Mapping[int, Batch], first: int) -> list[str]:
        """Return the batches of the log that no answer to a client explains."""
        honest.written = {at: value for at, value in honest.written.items() if at > first}
        offsets = frozenset(self._tally.offsets)
        return unexplained(log, honest.written, offsets, unknown=self._tally.unknown)

    # ------------------------------------------------------------------ rounds

    def _rounds(self, cluster_state: ClusterState) -> list[dict[str, int]]:
        """Return the methods of each round and their numbers of calls; writing ones come last."""
        found: list[dict[str, int]] = []
        sizes = {
            each: len(sweep_of(each, cluster_state)) for each in self._methods if each != EXCHANGE
        }
        wanted = shares(self._methods, self._wanted, sizes)
        for may_write in (False, True):
            group: dict[str, int] = {}
            for method, count in wanted.items():
                if (method in WRITES) is not may_write:
                    continue
                left = count
                while left:
                    part = min(left, ROUND_CALLS - sum(group.values()))
                    group[method] = part
                    left -= part
                    if sum(group.values()) == ROUND_CALLS:
                        found.append(group)
                        group = {}
            if group:
                found.append(group)
        return found

    async def _round(
        self, group: dict[str, int], honest: HonestWriter, before: Observation, leader_id: int
    ) -> Observation:
        cluster_state = await self._cluster_state(leader_id)
        calls: list[Call] = []
        for method, count in group.items():
            if method == EXCHANGE:
                calls += await self._scripts(cluster_state, count)
            else:
                calls += self._mutants[method].take(cluster_state, count)
        self._rng.shuffle(calls)
        stop = asyncio.Event()
        writing = asyncio.ensure_future(honest.go_on(stop))
        queue = iter(calls)
        await asyncio.gather(*(self._work(queue, leader_id) for _ in range(WORKERS)))
        stop.set()
        await writing
        self._tally.rounds += 1
        after = await self._level()
        names = ", ".join(each.rsplit("/")[-1] for each in group)
        same_image = not WRITES & group.keys()
        if found := differences(before, after, same_image=same_image):
            self._problems += [f"after {names}: {each}" for each in found]
        self._announce(f"{self._tally.calls:6} calls, {len(self._problems)} problems: {names}")
        # Mutated writes may change the image: later rounds are compared with the new one.
        return after

    async def _work(self, queue: Iterator[Call], leader_id: int) -> None:
        for call in queue:
            node = self._rng.choice(list(self._channels))
            if call.method in WRITES and self._rng.random() < 0.5:
                node = leader_id
            await self._send(call, self._channels[node])

    async def _send(self, call: Call, channel: aio.Channel) -> None:
        tally, method = self._tally, call.method
        if call.script is not None:
            ended = await play(channel, call.script)
            tally.sent[method] += ended.frames
        else:
            try:
                async with asyncio.timeout(2 * WRITE_SECONDS):
                    ended = await send(channel, method, call.data)
            except TimeoutError:
                self._problems.append(f"{method} did not end: {call.what}")
                return
            tally.sent[method] += 1
        tally.endings.setdefault(method, Counter())[ended.how] += 1
        tally.offsets.update(ended.offsets)
        tally.unknown += ended.unknown
        for problem in wrong_endings({ended.how: 1}):
            self._problems.append(f"{method}: {problem}: {call.what}")

    async def _scripts(self, cluster_state: ClusterState, count: int) -> list[Call]:
        stranger = Hello(cluster_state.cluster_id, ReplicaKey(-1), b"")
        channel = next(iter(self._channels.values()))
        digest = await config_digest(channel, encode_hello(stranger))
        found = []
        for script in StreamScripts(cluster_state, digest, self._rng):
            found.append(Call(EXCHANGE, "a stream", script=script))
            # The node ends a stream at the first frame that is malformed.
            count -= 1 + bool(script.frames)
            if count <= 0:
                return found
        return found

    # ------------------------------------------------------------------ the cluster

    async def _set_up(self, leader_id: int) -> None:
        """Register three brokers and create a topic, which the commands refer to."""
        for broker in (1, 2, 3):
            register = wire.RegisterBroker(
                broker_id=broker, cluster_id=self._cluster.cluster_id,
                incarnation_id=bytes([broker]) * 16, log_dirs=[bytes([broker + 8]) * 16],
            )  # fmt: skip
            register.listeners.add(name="PLAINTEXT", host="broker", port=9092)
            offer_features(register)
            epoch = await self._command(leader_id, register_broker=register)
            await self._command(
                leader_id,
                broker_heartbeat=wire.BrokerHeartbeat(
                    broker_id=broker, broker_epoch=epoch, metadata_offset=1 << 40
                ),
            )
        await self._command(
            leader_id,
            create_topic=wire.CreateTopic(name=TOPIC, partition_count=3, replication_factor=3),
        )

    async def _command(self, leader_id: int, **kind: Any) -> int:
        """Write one command; return the epoch of the broker that it registered, or 0."""
        request = metadata_pb2.WriteRequest(command=wire.Command(tag=1, **kind))
        call = self._channels[leader_id].unary_unary("/quorum.v1.MetadataService/Write")
        answer = metadata_pb2.WriteResponse.FromString(
            await call(request.SerializeToString(), timeout=WRITE_SECONDS)
        ).answer
        assert answer.error_code == 0, answer.message
        return answer.result.register_broker.broker_epoch

    async def _cluster_state(self, leader_id: int) -> ClusterState:
        async with Client(self._cluster.addresses, timeout_seconds=60.0) as client:
            quorum = await client.describe_quorum()
            brokers = (await client.describe_cluster(read=LINEARIZABLE)).brokers
            topics = (await client.describe_topics([TOPIC], read=LINEARIZABLE)).topics
        epochs = {each.broker_id: each.broker_epoch for each in brokers}
        ids = (quorum.leader_id, *(each.replica_id for each in quorum.voters))
        return ClusterState(
            cluster_id=self._cluster.cluster_id,
            leader_id=leader_id,
            voters=tuple((each.replica_id, each.directory_id) for each in quorum.voters),
            current=Current(quorum.leader_epoch, quorum.high_watermark, ids),
            topic_id=topics[0].topic_id if topics else bytes(16),
            broker_epochs=tuple(epochs.get(each, 0) for each in (1, 2, 3)),
        )

    async def _level(self) -> Observation:
        """Return the state to compare, once every node has applied the same log.

        Raises:
            ClusterError: A process has ended by itself.
        """
        deadline = time.monotonic() + LEVEL_SECONDS
        while True:
            if ended := self._cluster.ended_by_itself():
                raise ClusterError("\n".join(ended))
            seen = await observe(self._cluster)
            is_level = len({offset for offset, _ in seen.digests.values()}) == 1
            is_ready = all(each.is_ready for each in seen.nodes.values())
            if (is_level and is_ready) or time.monotonic() > deadline:
                if not is_level:
                    self._problems.append(f"the nodes do not reach one image: {seen.digests}")
                return seen
            await asyncio.sleep(0.05)

    # ------------------------------------------------------------------ the report

    def _report(self, seconds: float, honest_writes: int, log_batches: int) -> Report:
        tally = self._tally
        rows = [
            {
                "method": method.lstrip("/"),
                "calls": tally.sent[method],
                "ended": ", ".join(f"{how} {n}" for how, n in tally.endings[method].most_common()),
            }
            for method in sorted(tally.endings)
        ]
        shortfalls = [f"no call of {each}" for each in self._methods if not tally.sent[each]]
        if tally.calls < self._wanted:
            shortfalls.append(f"{tally.calls} mutated calls, {self._wanted} were asked for")
        figures = {
            "mutated calls": tally.calls,
            "methods": len(tally.sent),
            "comparisons of the whole state": tally.rounds,
            "honest writes, acknowledged and present": honest_writes,
            "batches of the log explained": log_batches,
            "mutated writes acknowledged": len(tally.offsets),
            "mutated writes without an answer": tally.unknown,
            "not sent, being what an operator may ask for": sum(
                each.authorised for each in self._mutants.values()
            ),
        }
        return Report("calls", self._seed, seconds, figures, rows, self._problems, shortfalls)
