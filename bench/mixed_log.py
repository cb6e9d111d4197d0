"""A data directory as a leader of a busy quorum leaves it, for measurements of its verification.

The real controller evaluates the commands, so every batch has what a running quorum writes: record
headers of the sender and of the producer, the answer, and derived changes. Twelve brokers, 600
topics of eight partitions, 64 producers. Of a thousand commands about 470 change a configuration,
330 change ISRs of one to six partitions, 80 commit a consumer's position, 40 elect leaders, 40
create or delete a topic or an ACL, two request a producer, and 20 are heartbeats. Now and then a
broker restarts: it leaves by a controlled shutdown, registers again and is unfenced. Checkpoints
are written by the rule of 630.4, with both digests.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.controller_path import InstantLog
from quorate.controller.config import ControllerConfig
from quorate.controller.controller import Controller
from quorate.controller.requests import Answer, RequestContext
from quorum.control import encode_control_batch
from quorum.control_records import LeaderChange
from quorum.core.contract.output import LeadershipChanged
from quorum.errors import ErrorCode
from quorum.log.filesystem import OsFileSystem
from quorum.log.identity import MetaProperties, write_identity
from quorum.log.layout import partition_directory
from quorum.log.recovery import open_log
from quorum.types import SnapshotId
from snapshot.generator import CheckpointTrigger
from snapshot.writer import write_checkpoint
from statemachine import commands
from statemachine.dump import DigestedValues, state_digest
from statemachine.machine import StateMachine
from statemachine.records import FeatureLevelRecord
from statemachine.sections.partitions import PartitionState

BROKERS = 12
TOPICS = 600
PARTITIONS = 8
PRODUCERS = 64
GROUP = 16
"""Commands of a group: what arrives while the group before it is synced."""
GROUP_MS = 4
CLUSTER_ID = "bench-mixed"
_SEED = 14
_TIME_0 = 1_700_000_000_000
_CAUGHT_UP = (1 << 62) - 1
_RESTART_EVERY = 4_000
"""Groups between two restarts of a broker."""


@dataclass(slots=True)
class _Producer:
    """One client of the cluster: its identity, and the next sequence."""

    principal: str
    client_id: str
    id: int
    sequence: int = 0

    def context(self, reason: str, request: int) -> RequestContext:
        sequence, self.sequence = self.sequence, self.sequence + 1
        return RequestContext(
            self.principal,
            self.client_id,
            f"{self.client_id}-{request}" if request % 4 == 0 else "",
            reason,
            "",
            self.id,
            0,
            sequence,
            max(0, sequence - 2),
        )


class DiskLog(InstantLog):
    """The log of ``InstantLog``, also written to a data directory, with checkpoints."""

    def __init__(self, controller: Controller, machine: StateMachine, home: Path) -> None:
        self._fs = OsFileSystem()
        self._machine = machine
        self._trigger = CheckpointTrigger()
        self.directory = partition_directory(home)
        self.size_bytes = self._checkpoint_bytes = self.checkpoints = 0
        home.mkdir(parents=True)
        write_identity(self._fs, home, MetaProperties(CLUSTER_ID, 1, bytes(range(1, 17))))
        self.disk, _ = open_log(self._fs, self.directory)
        super().__init__(controller)
        self.time_ms = _TIME_0
        change = encode_control_batch(
            [LeaderChange(1, (1, 2, 3), (1, 2, 3))], base_offset=0, epoch=1, timestamp=_TIME_0
        )
        self._pending, self.log_end_offset = change, 1
        self.commit()

    def commit(self) -> None:
        data, begin = self._pending, self.high_watermark
        super().commit()
        if not data:
            return
        self.disk.append(data, base_offset=begin, end_offset=self.high_watermark)
        self.size_bytes += len(data)
        changes = self._machine.changes
        if self._trigger.is_due(
            changed_records=changes.changed_records,
            snapshot_records=changes.snapshot_records,
            bytes_since=self.size_bytes - self._checkpoint_bytes,
        ):
            self._write_checkpoint()

    def close(self) -> None:
        """Make the end of the log durable and known."""
        self.disk.flush()
        self.disk.store_high_watermark(self.high_watermark)
        self.disk.close()

    def _write_checkpoint(self) -> None:
        self.disk.flush()
        image = self._machine.image
        place = image.provenance
        values = DigestedValues(image)
        info = write_checkpoint(
            self._fs,
            self.directory,
            SnapshotId(place.end_offset, place.epoch),
            values=values,
            last_contained_log_timestamp=place.timestamp_ms,
            log_digest=self.disk.digest_at(place.end_offset),
            state_digest=values.digest,
        )
        self._machine.changes.start_over(info.records)
        self._checkpoint_bytes = self.size_bytes
        self.checkpoints += 1


@dataclass(slots=True)
class _Cluster:
    """The clients of the cluster, and what they remember."""

    controller: Controller
    log: DiskLog
    topic_count: int
    rng: random.Random = field(default_factory=lambda: random.Random(_SEED))
    epochs: dict[int, int] = field(default_factory=dict)
    """Broker epoch by broker."""
    topics: list[str] = field(default_factory=list)
    producers: list[_Producer] = field(default_factory=list)
    refused: int = 0
    submitted: int = 0

    def send(self, command: commands.Command, context: RequestContext | None = None) -> None:
        self.submitted += 1
        self.controller.submit(command, context or RequestContext(), self._on_answer)

    def _on_answer(self, answer: Answer) -> None:
        self.refused += answer.code is not ErrorCode.NONE

    def turn(self) -> None:
        """Let a group be formed and committed."""
        self.log.time_ms += GROUP_MS
        self.controller.note_time(self.log.time_ms)
        self.controller.turn(self.log)
        self.log.commit()

    def ask(self, command: commands.Command, principal: str = "User:bench") -> Mapping[str, object]:
        """Execute one command alone, and return its result."""
        found: list[Answer] = []
        self.controller.submit(command, RequestContext(principal, "bench"), found.append)
        while not found:
            self.turn()
        if found[0].code is not ErrorCode.NONE:
            raise SystemExit(f"{command}: {found[0].message}")
        return found[0].result

    def start(self) -> None:
        """Register the brokers, create the topics, and let the producers have their ids."""
        for broker in range(1, BROKERS + 1):
            self._start_broker(broker)
        for number in range(self.topic_count):
            self.create_topic(f"topic-{number:04d}")
            if number % GROUP == 0:
                self.turn()
        self.turn()
        for number in range(PRODUCERS):
            principal = f"User:team-{number % 12}"
            result = self.ask(commands.InitProducerId(), principal)
            producer_id = int(str(result["producer_id"]))
            self.producers.append(_Producer(principal, f"client-{number}", producer_id))

    def create_topic(self, name: str, context: RequestContext | None = None) -> None:
        configs = (("retention.ms", str(self.rng.randrange(1, 168) * 3_600_000)),)
        self.topics.append(name)
        self.send(commands.CreateTopic(name, PARTITIONS, 3, (), configs), context)

    def _start_broker(self, broker: int) -> None:
        result = self.ask(
            commands.RegisterBroker(
                broker,
                CLUSTER_ID,
                self.rng.randbytes(16),
                (commands.Listener("PLAINTEXT", f"broker-{broker}.example", 9092),),
                (commands.FeatureRange("metadata.version", 7, 33),),
                f"rack-{broker % 3}",
                (b"\x80" + self.rng.randbytes(15),),
            )
        )
        self.epochs[broker] = int(str(result["broker_epoch"]))
        self.ask(commands.BrokerHeartbeat(broker, self.epochs[broker], _CAUGHT_UP))

    def restart(self, broker: int) -> None:
        """Let a broker leave by a controlled shutdown, and register again."""
        for _ in range(2):
            self.ask(
                commands.BrokerHeartbeat(
                    broker, self.epochs[broker], _CAUGHT_UP, want_shutdown=True
                )
            )
        self._start_broker(broker)

    def group(self, number: int) -> None:
        """Send the commands of one group, and let it be committed."""
        for place in range(GROUP):
            self._send_one(number * GROUP + place)
        self.turn()
        if number % _RESTART_EVERY == _RESTART_EVERY - 1:
            self.restart(self.rng.randrange(1, BROKERS + 1))

    def _send_one(self, number: int) -> None:
        rng = self.rng
        kind = rng.random()
        client = rng.choice(self.producers)
        topic = rng.choice(self.topics)
        if kind < 0.47:
            name = rng.choice(("retention.ms", "max.message.bytes", "quorate.note"))
            value = f"{number:0{rng.randrange(8, 60)}d}" if name == "quorate.note" else str(number)
            change = commands.ConfigChange(name, commands.ConfigOperation.SET, value)
            self.send(
                commands.IncrementalAlterConfigs(2, topic, (change,)),
                client.context("retention policy", number),
            )
        elif kind < 0.80:
            self._change_isr(client, number)
        elif kind < 0.88:
            position = commands.CommitPosition(f"group-{rng.randrange(40)}", number, 1)
            self.send(position, client.context("", number))
        elif kind < 0.92:
            self.send(commands.ElectLeaders(topic), client.context("rebalance", number))
        elif kind < 0.94:
            self._change_topic(client, number)
        elif kind < 0.96:
            entry = commands.AclEntry(2, topic, 3, f"User:{number % 500}", "*", 3, 3)
            self.send(commands.CreateAcls((entry,)), client.context("access", number))
        elif kind < 0.978:
            name = rng.choice(self.topics)
            change = commands.ConfigChange("quorate.note", commands.ConfigOperation.DELETE)
            self.send(
                commands.IncrementalAlterConfigs(2, name, (change,)), client.context("", number)
            )
        elif kind < 0.98:
            self.send(commands.InitProducerId(f"writer-{rng.randrange(300)}"))
        else:
            broker = rng.randrange(1, BROKERS + 1)
            self.send(commands.BrokerHeartbeat(broker, self.epochs[broker], _CAUGHT_UP))

    def _change_topic(self, client: _Producer, number: int) -> None:
        if len(self.topics) > self.topic_count:
            name = self.topics.pop(self.rng.randrange(len(self.topics)))
            self.send(commands.DeleteTopic(name), client.context("cleanup", number))
        else:
            self.create_topic(f"topic-n{number}", client.context("new service", number))

    def _change_isr(self, client: _Producer, number: int) -> None:
        """Let a leader report that one to six of its partitions lost or regained a follower."""
        topics_now = self.controller.image.topics
        broker, wanted = -1, self.rng.choice((1, 1, 1, 2, 3, 6))
        changes: dict[bytes, dict[int, commands.PartitionAlteration]] = {}
        for name in self.rng.sample(
            self.topics, min(len(self.topics), 1 if wanted == 1 else 12 * wanted)
        ):
            topic_id = topics_now.id_of(name)
            index = self.rng.randrange(PARTITIONS)
            state = None if topic_id is None else topics_now.partition(topic_id, index)
            if topic_id is None or state is None or broker not in (-1, state.leader):
                continue
            broker = state.leader
            changes.setdefault(topic_id, {})[index] = self._alteration(index, state)
            wanted -= 1
            if not wanted:
                break
        topics = tuple(
            commands.TopicAlteration(topic_id, tuple(found.values()))
            for topic_id, found in changes.items()
        )
        if topics and broker in self.epochs:
            self.send(
                commands.AlterPartition(broker, self.epochs[broker], topics),
                client.context("", number),
            )

    def _alteration(self, index: int, state: PartitionState) -> commands.PartitionAlteration:
        others = [each for each in state.replicas if each != state.leader]
        gone = self.rng.choice(others) if len(state.isr) == len(state.replicas) else -1
        members = [each for each in state.replicas if each != gone]
        isr = tuple(commands.IsrMember(each, self.epochs[each]) for each in members)
        return commands.PartitionAlteration(index, state.leader_epoch, state.partition_epoch, isr)


@dataclass(frozen=True, slots=True)
class MixedLog:
    """What was written."""

    size_bytes: int
    end_offset: int
    checkpoints: int
    commands: int
    refused: int
    """Those of the commands that were refused: they leave no batch."""
    state_digest: bytes
    """Digest of the leader's state at the end."""


def write_mixed_log(home: Path, size_bytes: int, *, topics: int = TOPICS) -> MixedLog:
    """Write a data directory with a log of about ``size_bytes``; it must not exist yet."""
    machine = StateMachine()
    controller = Controller(
        ControllerConfig(cluster_id=CLUSTER_ID, idle_interval_ms=0, session_timeout_ms=1 << 40),
        machine,
        rng=random.Random(_SEED),
        open_checkpoint=_no_checkpoint,
        bootstrap=(FeatureLevelRecord("metadata.version", 33),),
    )
    log = DiskLog(controller, machine, home)
    controller.on_leadership(LeadershipChanged(1, 1, is_leader=True, can_write=True))
    cluster = _Cluster(controller, log, topics)
    cluster.turn()
    cluster.start()
    number = 0
    while log.size_bytes < size_bytes:
        cluster.group(number)
        number += 1
    log.close()
    return MixedLog(
        log.size_bytes,
        log.high_watermark,
        log.checkpoints,
        cluster.submitted,
        cluster.refused,
        state_digest(machine.image),
    )


def _no_checkpoint(snapshot_id: SnapshotId) -> Sequence[bytes]:
    raise SystemExit(f"unexpected read of checkpoint {snapshot_id}")
