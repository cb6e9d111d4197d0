"""A follower whose listener takes its time: what its core decides meanwhile comes in order.

Real is the whole replica, which gathers committed records as a server does. The messages of its
leaders, the disk's completions and the time that each step takes are drawn.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from quorum.batch import VerifiedBatches, encode_batch
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.errors import ErrorCode
from quorum.runtime.delivery import DeferredDelivery
from quorum.runtime.ports import WriteGroup
from simulation.invariants.violation import Violation
from statemachine.codec import encode_record
from statemachine.records import FeatureLevelRecord, MetadataRecord, NoOpRecord
from tests.simulation.experiments.experiment import Experiment
from tests.support.lone_replica import LoneReplica

NAME = "tickets-in-order"
STEPS = 60
OTHERS = (2, 3)


class Follower(LoneReplica):
    """Node 1 of three voters. ``rng`` draws what the others say and how long a delivery takes."""

    def __init__(self, seed: int) -> None:
        super().__init__(voters=3)
        self.boot()
        self.draws = random.Random(seed)
        self.ticket = 0
        self.end = 0
        """Of the log that its leaders have; each of them continues it."""
        controller = self.replica.controller
        apply = controller.on_committed

        def slowly(data: bytes, end_offset: int, verified: Sequence[VerifiedBatches]) -> None:
            if self.draws.random() < 0.3:
                self.clock.time_ms += self.draws.randint(0, 2_000)
            apply(data, end_offset, verified)

        controller.on_committed = slowly  # type: ignore[method-assign]
        self.replica.driver._deferred = DeferredDelivery(lambda _is_urgent: None)

    def submit(self, group: WriteGroup) -> None:
        if group.ticket <= self.ticket:
            text = "the writer got a ticket after a later one"
            raise Violation(NAME, text, ticket=group.ticket, later=self.ticket)
        self.ticket = group.ticket
        super().submit(group)

    def answer(self) -> None:
        """Let the node that was asked last answer as the leader of the epoch, or name another."""
        asked = [(to, each) for to, each in self.sent if isinstance(each, FetchRequest)]
        if not asked:
            return
        to, fetch = asked[-1]
        self.sent.clear()
        epoch = self.replica.node.epoch
        draws = self.draws
        if to not in OTHERS or draws.random() < 0.2:
            leader, error = draws.choice(OTHERS), ErrorCode.FENCED_LEADER_EPOCH
            self.replica.receive(to, FetchResponse(fetch.request_id, error, leader, epoch + 1))
            return
        offset = fetch.fetch_offset
        records = b""
        for _ in range(draws.randint(0, 2)):
            record: MetadataRecord = NoOpRecord()
            if draws.random() < 0.5:
                record = FeatureLevelRecord("kraft.version", 1)
            value = [encode_record(record)]
            records += encode_batch(value, base_offset=offset, epoch=max(epoch, 1), timestamp=1)
            offset += 1
        # At most what the follower has when it stored them, as a true leader says.
        mark = draws.randint(max(self.replica.node.high_watermark, 0), max(offset, 0))
        self.replica.receive(
            to, FetchResponse(fetch.request_id, ErrorCode.NONE, to, epoch, mark, records=records)
        )

    def step(self) -> None:
        """Take one step, drawn."""
        act = self.draws.random()
        if act < 0.5:
            self.answer()
        elif act < 0.75:
            self.persist()
        elif act < 0.85:
            self.replica.deliver()
        else:
            self.clock.time_ms += self.draws.randint(0, 300)
            self.replica.tick()


def run(seed: int) -> Violation | None:
    """Answers, new epochs, completions and deliveries in any order."""
    follower = Follower(seed)
    try:
        for _ in range(STEPS):
            follower.step()
    except Violation as found:
        return found
    return None


LONE_FOLLOWER = Experiment("a follower that takes its time", run)
