"""Three nodes in memory behind the production services and controller, and writers of one name.

Commands are appended at once and committed later. In between the leader may change: what is not
committed is then lost, or another leader commits it. A message, a command and an answer may be
lost, and a node may hang. All of it follows from one seed.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

from quorate.client.pending import Applied
from quorate.client.single_producer import SingleProducer
from quorate.client.writer import Writer
from quorate.controller.requests import Answer, OnAnswer, RequestContext
from quorate.services.admission import ServiceLimits
from quorate.services.closing import Closing
from quorate.services.write_stream import WriteSession
from quorum.errors import ErrorCode
from quorum.v1 import commands_pb2 as wire
from quorum.v1.metadata_pb2 import WriterIdentity
from statemachine.commands import Command
from statemachine.records import ConfigRecord
from tests.support.controller_bench import Bench, records_of
from tests.support.evaluated_node import IN_USE
from tests.support.memory_streams import CLUSTER, MemoryCall, MemoryNodes
from tests.support.served_node import FakeNode
from tests.support.shared_log import SharedLog

NAME = "deploy"
STALL_SECONDS = 0.15
NODES = (1, 2, 3)


class _Node(FakeNode):
    """One node; its commands go to the history that all share."""

    def __init__(self, log: SharedLog, node_id: int, world: WriterWorld) -> None:
        super().__init__(log, node_id)
        self.address = f"n{node_id}"
        self.cluster_id = CLUSTER
        self._world = world

    def take(self, command: Command, context: RequestContext, on_answer: OnAnswer) -> None:
        self._world.submit(self, command, context, on_answer)


class WriterWorld:
    """The cluster. While ``has_faults``, every seed has its own."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.bench = Bench(bootstrap=IN_USE)
        self.has_faults = True
        self._loop = asyncio.get_running_loop()
        self._log = SharedLog(leader=1)
        self.nodes = {each: _Node(self._log, each, self) for each in NODES}
        for node in self.nodes.values():
            node.peers = dict(self.nodes)
        self.hanging: set[int] = set()
        self._calls: list[tuple[int, MemoryCall]] = []
        self._closings = {each: Closing(each) for each in NODES}
        self.faults = dict.fromkeys(
            ("full", "lost", "unanswered", "unknown", "moved", "elections", "broken", "hung"), 0
        )

    # ------------------------------------------------------------------ the network

    def writer(self, *, is_ordered: bool = True, name: str = NAME) -> Writer:
        """Return a process's writer."""
        return Writer(
            MemoryNodes([f"n{each}" for each in NODES], self._open),
            WriterIdentity(client_id="fuzz"),
            stall_seconds=STALL_SECONDS,
            rng=random.Random(self.rng.getrandbits(32)),
            producers=SingleProducer(name, is_ordered=is_ordered),
        )

    def _open(self, address: str) -> MemoryCall:
        node = self.nodes[int(address[1:])]

        async def serve(context: object) -> None:
            session = WriteSession(
                node,
                context,  # type: ignore[arg-type]
                ServiceLimits(stream_idle_seconds_max=0),
                self._closings[node.node_id],
            )
            await session.run()

        call = MemoryCall(serve, lambda: self.rng.random() * 0.004)
        self._calls = [each for each in self._calls if not each[1].is_over]
        self._calls.append((node.node_id, call))
        return call

    def break_streams(self) -> None:
        """Lose every connection."""
        for _, call in self._calls:
            call.break_off()

    # ------------------------------------------------------------------ the leader

    def submit(
        self, node: _Node, command: Command, context: RequestContext, on_answer: OnAnswer
    ) -> None:
        """Evaluate a command, unless a fault comes first."""
        if node.node_id in self.hanging:
            return
        if not node.is_leader:
            on_answer(Answer(ErrorCode.NOT_LEADER_OR_FOLLOWER, "not the leader"))
            return
        on_answer = self._faulty(on_answer)
        if on_answer is None:
            return
        self.bench.controller.submit(command, context, on_answer)
        self.bench.flush()
        self._loop.call_later(self.rng.random() * 0.01, self._commit)
        self._loop.call_later(self.rng.random() * 0.02, self._confirm)

    def _faulty(self, on_answer: OnAnswer) -> OnAnswer | None:
        rng, faults = self.rng, self.faults
        share = rng.random() if self.has_faults else 1.0
        if share < 0.06:
            faults["full"] += 1
            on_answer(Answer(ErrorCode.QUEUE_FULL, "full"))
            return None
        if share < 0.08:
            faults["moved"] += 1
            on_answer(Answer(ErrorCode.NOT_LEADER_OR_FOLLOWER, "moved"))
            return None
        if share < 0.09:
            faults["lost"] += 1
            return None
        if share < 0.11:
            faults["unanswered"] += 1
            return lambda _answer: None
        if share < 0.13:
            faults["unknown"] += 1
            return lambda _answer: on_answer(Answer(ErrorCode.OUTCOME_UNKNOWN, "lost"))
        return on_answer

    def _commit(self) -> None:
        self.bench.log.settle()

    def _confirm(self) -> None:
        self.bench.log.settle()
        self.bench.log.confirm_reads()

    def elect(self) -> None:
        """Another node leads; what was not committed is cut, or that node commits it."""
        self.faults["elections"] += 1
        self.bench.log.depose(truncates=self.rng.random() < 0.5)
        self.bench.log.fail_reads()
        self._log.leader = self.rng.choice(NODES)
        self._log.epoch += 1
        self.bench.activate()

    async def trouble(self) -> None:
        """Change leaders, break streams and let nodes hang, until cancelled."""
        rng = self.rng
        while True:
            await asyncio.sleep(rng.expovariate(4.0))
            if not self.has_faults:
                continue
            kind = rng.random()
            if kind < 0.4:
                self.elect()
            elif kind < 0.8:
                self.faults["broken"] += 1
                self.break_streams()
            else:
                self.faults["hung"] += 1
                node = rng.choice(NODES)
                self.hanging.add(node)
                self._loop.call_later(0.2 + rng.random(), self.hanging.discard, node)

    def heal(self) -> None:
        """No more faults."""
        self.has_faults = False
        self.hanging.clear()

    # ------------------------------------------------------------------ what became of it

    def written(self) -> list[str]:
        """Return the values of the topic's setting, in the order of the log."""
        return [
            record.value or ""
            for _, _, data in self.bench.log.batches
            for record in records_of(data)
            if type(record) is ConfigRecord
        ]


def setting(value: str, *, dry_run: bool = False) -> wire.Command:
    """Return a command that writes a value; values without digits are refused."""
    change = wire.ConfigAlteration(name="retention.ms", operation=1, value=value)
    return wire.Command(
        incremental_alter_configs=wire.IncrementalAlterConfigs(
            resource_type=2, resource_name="t", alterations=[change], dry_run=dry_run
        )
    )


@dataclass
class Write:
    """One write of a process, and how it ended."""

    value: str
    epoch: int
    """Number of the ``begin_epoch`` before it."""
    done: asyncio.Future[Applied]

    @property
    def error(self) -> BaseException | None:
        """What it ended with; None if it was applied or cancelled."""
        return None if self.done.cancelled() else self.done.exception()
