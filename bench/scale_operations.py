"""What one operation costs by the size of the image it is done on.

A leader's controller takes commands in groups, over a log that commits at once: evaluated, encoded,
replayed, published. Queries answer from its newest image. Times are processor time of one core,
without cycle collection, as between two turns of a node.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from bench.controller_path import InstantLog, no_checkpoint
from quorate.controller.config import ControllerConfig
from quorate.controller.controller import Controller
from quorate.controller.requests import Answer, RequestContext
from quorate.services.describe import TopicNames, listed_topics, topic_by_name
from quorum.core.contract.output import LeadershipChanged
from quorum.errors import ErrorCode
from quorum.v1 import metadata_pb2
from statemachine.commands import (
    AlterPartition,
    Command,
    ConfigChange,
    CreateTopic,
    DeleteTopic,
    IncrementalAlterConfigs,
    IsrMember,
    PartitionAlteration,
    TopicAlteration,
)
from statemachine.commands_brokers import BrokerHeartbeat
from statemachine.image import MetadataImage
from statemachine.machine import StateMachine

OPERATIONS: Final = {
    "describe": "describe a topic",
    "list": "create one and list a page of 100",
    "create": "create a topic",
    "delete": "delete a topic",
    "alter_configs": "change a configuration",
    "alter_partition": "change an ISR",
    "heartbeat": "heartbeat of a broker",
}
"""What is measured, in words."""
GROUP: Final = 64
"""Commands in one group, as many as the cluster's creators."""
ASKED: Final = 1000
"""How often each operation is done: twice, and the second time counts."""
LISTED: Final = 100
_CONTEXT = RequestContext("User:bench", "client-1", reason="scale")


def measure_operations(
    machine: StateMachine, topics: int, *, partitions: int, replicas: int
) -> Mapping[str, float]:
    """Return microseconds by operation, on the topics ``scale-0`` and so on of ``machine``."""
    leader = _Leader(machine)
    rng = random.Random(1)
    names = [f"scale-{rng.randrange(topics)}" for _ in range(2 * ASKED)]
    gc.collect()
    gc.disable()
    try:
        return dict(_operations(leader, names, partitions, replicas))
    finally:
        gc.enable()


def _operations(
    leader: _Leader, names: list[str], partitions: int, replicas: int
) -> Iterator[tuple[str, float]]:
    numbers = range(len(names))
    yield "describe", _second_half(names, lambda name: _describe(leader.image, name))
    yield (
        "create",
        leader.microseconds(
            [CreateTopic(f"new-{number}", partitions, replicas) for number in numbers]
        ),
    )
    listing = TopicNames()
    _list(leader.image, listing, "")
    yield "list", _second_half(names[: 2 * LISTED], leader.after_a_change(listing))
    yield (
        "alter_configs",
        leader.microseconds(
            [
                IncrementalAlterConfigs(
                    2, name, (ConfigChange("retention.ms", 0, str(number + 1)),)
                )
                for number, name in enumerate(names)
            ]
        ),
    )
    yield "alter_partition", leader.microseconds(_shrunk(leader.image, dict.fromkeys(names)))
    brokers = list(leader.image.cluster.brokers.values())
    yield (
        "heartbeat",
        leader.microseconds(
            [
                BrokerHeartbeat(broker.id, broker.epoch, (1 << 62) - 1)
                for broker in (brokers[number % len(brokers)] for number in numbers)
            ]
        ),
    )
    yield "delete", leader.microseconds([DeleteTopic(f"new-{number}") for number in numbers])


def _second_half(asked: list[str], do: Callable[[str], None]) -> float:
    middle = len(asked) // 2
    for each in asked[:middle]:
        do(each)
    started = time.process_time()
    for each in asked[middle:]:
        do(each)
    return (time.process_time() - started) / middle * 1e6


def _describe(image: MetadataImage, name: str) -> None:
    topic_by_name(image, name).SerializeToString()


def _list(image: MetadataImage, listing: TopicNames, after: str) -> None:
    names, _ = listing.after(image, after, LISTED)
    metadata_pb2.ListTopicsResponse(topics=listed_topics(image, names)).SerializeToString()


def _shrunk(image: MetadataImage, names: Iterable[str]) -> list[Command]:
    """The last replica of the first partition of each topic leaves its ISR."""
    found: list[Command] = []
    for name in names:
        topic_id = image.topics.ids[name]
        state = image.topics.partitions_of(topic_id)[0]
        leader = image.cluster.brokers[state.leader]
        stay = tuple(IsrMember(each, image.cluster.brokers[each].epoch) for each in state.isr[:-1])
        change = PartitionAlteration(0, state.leader_epoch, state.partition_epoch, stay)
        found.append(
            AlterPartition(leader.id, leader.epoch, (TopicAlteration(topic_id, (change,)),))
        )
    return found


class _Leader:
    """A controller that leads, on an image that was loaded."""

    def __init__(self, machine: StateMachine) -> None:
        self._machine = machine
        self._controller = Controller(
            ControllerConfig(cluster_id="bench", idle_interval_ms=0),
            machine,
            rng=random.Random(1),
            open_checkpoint=no_checkpoint,
            bootstrap=(),
        )
        self._log = InstantLog(self._controller)
        self._log.log_end_offset = self._log.high_watermark = machine.end_offset
        self._log.flushed_end_offset = machine.end_offset
        self._log.epoch = machine.image.provenance.epoch + 1
        self._controller.on_leadership(
            LeadershipChanged(self._log.epoch, 1, is_leader=True, can_write=True)
        )
        self._commit()
        self._added = 0

    @property
    def image(self) -> MetadataImage:
        return self._machine.image

    def microseconds(self, commands: list[Command]) -> float:
        """Processor time of a command; the first half of them is not counted."""
        middle = len(commands) // 2
        self._run(commands[:middle])
        started = time.process_time()
        self._run(commands[middle:])
        return (time.process_time() - started) / (len(commands) - middle) * 1e6

    def after_a_change(self, listing: TopicNames) -> Callable[[str], None]:
        """A page of topics, of which one is new since the last page. Its creation is included."""

        def add_and_list(after: str) -> None:
            self._added += 1
            self._run([CreateTopic(f"added-{self._added}", 1, 1)])
            _list(self.image, listing, after)

        return add_and_list

    def _run(self, commands: list[Command]) -> None:
        for first in range(0, len(commands), GROUP):
            for command in commands[first : first + GROUP]:
                self._controller.submit(command, _CONTEXT, _require_success)
            self._commit()

    def _commit(self) -> None:
        self._controller.turn(self._log)
        self._log.commit()


def _require_success(answer: Answer) -> None:
    if answer.code is not ErrorCode.NONE:
        raise RuntimeError(f"{answer.code.name}: {answer.message}")
