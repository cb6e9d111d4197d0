"""A random run of the laboratory, and what must hold in it.

Every action that a story has is taken at random: zombies lead and write, brokers restart, answers
get lost, records are deleted, leaders are elected that lack records. At the end all faults are
healed, and every consumer must have the leader's log.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from quorate.client.log_consumer import ResetPolicy
from quorum.batch import scan_batches
from quorum.errors import CommandError, ErrorCode
from quorum.types import NO_NODE, OffsetAndEpoch
from simulation.laboratory.laboratory import SESSION_MS, Laboratory
from simulation.laboratory.producer import PartitionProducer
from simulation.laboratory.reader import Counts, Reader, by_offset, violate
from simulation.laboratory.replica import Replica
from statemachine.commands import ElectionType

TOPIC = "orders"
BROKERS = (1, 2, 3)
STEPS = 120
POLLS_AT_END = 400
NAMES = ("billing", None, None)
"""Transactional ids of the producers; None: without one."""


class RandomRun:
    """One run. ``is_unclean``: leaders that lack records may be elected."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self.counts = Counts()
        self.is_unclean = self._rng.random() < 0.5
        self.laboratory = Laboratory(BROKERS)
        configs = {"unclean.leader.election.enable": "true"} if self.is_unclean else {}
        self.laboratory.create(TOPIC, BROKERS, configs)
        self._producers = [PartitionProducer(self.laboratory, TOPIC, name) for name in NAMES]
        self._readers = [
            Reader(self.laboratory, TOPIC, policy, self.counts)
            for policy in (ResetPolicy.NONE, ResetPolicy.EARLIEST)
        ]
        self._values = 0
        self._committed: dict[int, tuple[int, str]] = {}
        """Epoch and value of every record below a high watermark, in a run without losses."""
        self._actions: list[tuple[int, Callable[[], None]]] = [
            (30, self._send), (6, self._repeat), (18, self._fetch), (20, self._poll),
            (4, self._hold), (6, self._deliver), (3, self._cut), (4, self._heal),
            (4, self._stop), (7, self._start), (6, self._fence), (2, self._shut_down),
            (2, self._elect), (2, self._shrink), (1, self._delete), (2, self._new_process),
            (2, self._restart_reader),
        ]  # fmt: skip

    def run(self) -> Counts:
        """Run, heal, and compare.

        Raises:
            Violation: A guarantee does not hold.
        """
        weights = [weight for weight, _ in self._actions]
        for _ in range(STEPS):
            action = self._rng.choices(self._actions, weights)[0][1]
            try:
                action()
            except CommandError as error:
                if error.code is ErrorCode.INVALID_PRODUCER_EPOCH:
                    self.counts.fenced_producers += 1
            self._check()
        self._end()
        return self.counts

    # ------------------------------------------------------------------ actions

    def _send(self) -> None:
        self._values += 1
        producer = self._rng.choice(self._producers)
        if producer.session.has_room:
            producer.send(f"v{self._values}", to=self._target(), is_lost=self._rng.random() < 0.2)

    def _repeat(self) -> None:
        producer = self._rng.choice(self._producers)
        if producer.session.open:
            before = self._ends()
            producer.repeat(to=self._target())
            self.counts.duplicates += self._ends() == before

    def _target(self) -> int | None:
        """Return a broker that leads as far as it knows, rarely one that was deposed."""
        zombies = [each for each in BROKERS if self.laboratory.replica(TOPIC, each).is_leader]
        return self._rng.choice(zombies) if zombies and self._rng.random() < 0.3 else None

    def _ends(self) -> list[int]:
        return [self.laboratory.replica(TOPIC, each).log_end.offset for each in BROKERS]

    def _fetch(self) -> None:
        self.laboratory.fetch(TOPIC, self._rng.choice(BROKERS))

    def _hold(self) -> None:
        self.laboratory.held.add(self._rng.choice(BROKERS))

    def _deliver(self) -> None:
        for broker_id in sorted(self.laboratory.held):
            self.laboratory.held.discard(broker_id)
            if self.laboratory.brokers[broker_id].is_running:
                refused = self.laboratory.deliver(broker_id)
                self.counts.stale_commands += len(refused)

    def _cut(self) -> None:
        self.laboratory.cuts.add(frozenset(self._rng.sample(BROKERS, 2)))

    def _heal(self) -> None:
        self.laboratory.cuts.clear()

    def _stop(self) -> None:
        running = [each for each in self.laboratory.brokers.values() if each.is_running]
        if len(running) > 1:
            self._rng.choice(running).stop()

    def _start(self) -> None:
        for broker in self.laboratory.brokers.values():
            if not broker.is_running and broker.id not in self.laboratory.held:
                broker.start()
                self.counts.stale_commands += len(self.laboratory.spread())
                broker.heartbeat()
                self.laboratory.spread()
                return

    def _fence(self) -> None:
        self.laboratory.advance(SESSION_MS + 1000)

    def _shut_down(self) -> None:
        broker = self.laboratory.brokers[self._rng.choice(BROKERS)]
        others = [
            each
            for each in self.laboratory.brokers.values()
            if each is not broker and each.is_running and each.id not in self.laboratory.held
        ]
        # With a silent broker a controlled shutdown would have to wait for its session.
        found = self.laboratory.controller.image.cluster.broker(broker.id)
        is_current = found is not None and not found.fenced and found.epoch == broker.epoch
        is_up = broker.is_running and broker.id not in self.laboratory.held
        if len(others) == 2 and is_up and is_current:
            self.laboratory.shut_down(broker)

    def _elect(self) -> None:
        self.laboratory.elect(TOPIC, ElectionType.PREFERRED)

    def _shrink(self) -> None:
        leader = self.laboratory.leader(TOPIC)
        if leader is not None and leader.is_leader and len(leader.isr) > 1:
            self.laboratory.change_isr(TOPIC, leader, (leader.node_id,))

    def _delete(self) -> None:
        leader = self.laboratory.leader(TOPIC)
        if leader is None or leader.high_watermark <= leader.log_start.offset:
            return
        before = self._rng.randint(leader.log_start.offset + 1, leader.high_watermark)
        epoch = next(e for at, e, _ in leader.log.records() if at == before - 1)
        # Only where the records are the same ones: a deposed replica deletes after it has followed.
        for broker_id in BROKERS:
            log = self.laboratory.replica(TOPIC, broker_id).log
            if any(at == before - 1 and e == epoch for at, e, _ in log.records()):
                log.delete_records(OffsetAndEpoch(before, epoch))

    def _new_process(self) -> None:
        place = self._rng.randrange(len(NAMES))
        made = PartitionProducer(self.laboratory, TOPIC, NAMES[place])
        # A zombie of the name goes on beside it now and then.
        if self._rng.random() < 0.5:
            self._producers[place] = made
        else:
            self._producers.append(made)

    def _restart_reader(self) -> None:
        self._rng.choice(self._readers).consumer.restart()

    def _poll(self) -> None:
        reader = self._rng.choice(self._readers)
        reader.consumer.asks = self._rng.choice(BROKERS) if self._rng.random() < 0.2 else None
        reader.read()

    # ------------------------------------------------------------------ what must hold

    def _check(self) -> None:
        replicas = [self.laboratory.replica(TOPIC, each) for each in BROKERS]
        for replica in replicas:
            self._check_producers(replica)
        for one in replicas:
            for other in replicas:
                if one.node_id < other.node_id:
                    self._check_same(one, other)
        if not self.is_unclean:
            self._check_committed(replicas)

    def _check_producers(self, replica: Replica) -> None:
        seen: set[tuple[int, int, int]] = set()
        newest: dict[int, int] = {}
        start, end = replica.log_start.offset, replica.log_end.offset
        for header in scan_batches(replica.log.read(start, end) if start < end else b""):
            key = (header.producer_id, header.producer_epoch, header.base_sequence)
            if key in seen:
                violate("a record is in the log twice", broker=replica.node_id, key=key)
            seen.add(key)
            if header.producer_epoch < newest.get(header.producer_id, -1):
                violate("a zombie wrote", broker=replica.node_id, key=key)
            newest[header.producer_id] = header.producer_epoch

    def _check_same(self, one: Replica, other: Replica) -> None:
        """Check that equal epochs at an offset mean equal logs up to there."""
        ours, theirs = by_offset(one), by_offset(other)
        common = sorted(ours.keys() & theirs.keys(), reverse=True)
        is_same = False
        for at in common:
            is_same = is_same or ours[at][0] == theirs[at][0]
            if is_same and ours[at] != theirs[at]:
                violate(
                    "logs differ below an equal epoch", offset=at, one=ours[at], other=theirs[at]
                )

    def _check_committed(self, replicas: list[Replica]) -> None:
        state = self.laboratory.state(TOPIC)
        for replica in replicas:
            is_current = replica.is_leader and replica.leader_epoch == state.leader_epoch
            if not is_current or not self.laboratory.brokers[replica.node_id].is_running:
                continue
            log = by_offset(replica)
            for at, record in self._committed.items():
                if at >= replica.log_start.offset and log.get(at) != record:
                    violate("a committed record is gone", offset=at, was=record)
            for at, record in log.items():
                if at < replica.high_watermark:
                    self._committed[at] = record

    def _check_commands(self) -> None:
        """Check that brokers which have executed all commands have what the metadata says."""
        state, topic_id = self.laboratory.state(TOPIC), self.laboratory.topic_id(TOPIC)
        for broker in self.laboratory.brokers.values():
            replica = self.laboratory.replica(TOPIC, broker.id)
            metadata = broker.metadata.get(topic_id, {})
            if (
                (replica.leader_id, replica.leader_epoch) != (state.leader, state.leader_epoch)
                or replica.partition_epoch != state.partition_epoch
                or metadata != {0: (state.leader, state.leader_epoch)}
            ):
                violate("a broker was given something else", broker=broker.id, metadata=metadata)

    def _end(self) -> None:
        """Heal everything; then no reader lacks a record, and none finds a loss twice."""
        laboratory = self.laboratory
        laboratory.cuts.clear()
        self._deliver()
        laboratory.advance(SESSION_MS + 1000)
        for _ in BROKERS:
            self._start()
        laboratory.advance(SESSION_MS + 1000)
        if laboratory.state(TOPIC).leader == NO_NODE:
            violate("no leader after all brokers are back")
        laboratory.replicate(TOPIC)
        self._check()
        self._check_commands()
        leader = laboratory.leader(TOPIC)
        if leader is None:
            violate("the leader does not run")
        for reader in self._readers:
            reader.consumer.asks = None
            for _ in range(POLLS_AT_END):
                if reader.consumer.position.offset == leader.log_end.offset and not (
                    reader.differences(leader)
                ):
                    break
                reader.read()
            else:
                violate(
                    "a reader does not get the leader's log",
                    position=reader.consumer.position.offset,
                    end=leader.log_end.offset,
                    differences=reader.differences(leader),
                )
