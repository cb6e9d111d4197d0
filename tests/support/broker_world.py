"""Brokers on the production controller, and what a broker has that executes every command."""

from __future__ import annotations

import random
from collections.abc import Iterable

from quorate.broker_agent.commands import (
    BrokerCommand,
    LeaderAndIsr,
    StopReplica,
    UpdateMetadata,
)
from quorate.broker_agent.derivation import CommandDerivation
from quorate.broker_agent.generation import stray_replicas
from quorum.errors import ErrorCode
from simulation.laboratory.controller import CLUSTER_ID, METADATA_VERSION, ModelController
from statemachine.commands import (
    BrokerHeartbeat,
    Command,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    ElectionType,
    ElectLeaders,
    FeatureRange,
    RegisterBroker,
    UnregisterBroker,
)
from statemachine.image import MetadataImage
from statemachine.sections.partition_index import PartitionKey
from statemachine.sections.partitions import PartitionState

BROKERS = (1, 2, 3)
OWN = 2
FEATURES = (
    FeatureRange("metadata.version", 7, METADATA_VERSION),
    FeatureRange("kraft.version", 0, 1),
)


class Executed:
    """What a broker has that executes every command."""

    def __init__(self) -> None:
        self.replicas: dict[PartitionKey, PartitionState] = {}
        self.stopped: set[PartitionKey] = set()
        self.metadata: dict[PartitionKey, PartitionState] = {}
        self.brokers: object = None

    def take(self, commands: Iterable[BrokerCommand]) -> None:
        for command in commands:
            if isinstance(command, LeaderAndIsr):
                strays = stray_replicas(command, [(key, "") for key in self.replicas])
                if strays is not None:
                    self.take([strays])
                for topic_id, topic in command.topics.items():
                    for number, hosted in topic.partitions.items():
                        assert command.is_full or hosted.is_new == (
                            (topic_id, number) not in self.replicas
                        )
                        self.replicas[topic_id, number] = hosted.state
                        self.stopped.discard((topic_id, number))
            elif isinstance(command, StopReplica):
                for key in command.partition_keys():
                    assert key in self.replicas
                    if command.delete_partitions:
                        del self.replicas[key]
                        self.stopped.discard(key)
                    else:
                        self.stopped.add(key)
            else:
                self._note(command)

    def check(self, image: MetadataImage) -> None:
        """Compare with an image in which the broker is registered."""
        wanted = assigned(image, OWN)
        assert self.replicas.keys() == wanted.keys()
        for key, state in wanted.items():
            if key in self.stopped:
                assert state.leader != OWN
            else:
                assert self.replicas[key] == state
        assert self.metadata == assigned(image, None)
        assert self.brokers == image.cluster.brokers

    def _note(self, command: UpdateMetadata) -> None:
        if command.is_full:
            self.metadata.clear()
        for topic_id, topic in command.topics.items():
            for number, state in topic.partitions.items():
                self.metadata[topic_id, number] = state
        for key in [each for each in self.metadata if each[0] in command.deleted_topics]:
            del self.metadata[key]
        if command.brokers is not None:
            self.brokers = command.brokers


def assigned(image: MetadataImage, broker_id: int | None) -> dict[PartitionKey, PartitionState]:
    return {
        (topic_id, number): state
        for topic_id, partitions in image.topics.partitions.items()
        for number, state in partitions.items()
        if broker_id is None or broker_id in state.replicas
    }


class Cluster:
    """The controller, and what one broker derives from its log."""

    def __init__(self, controller: ModelController | None = None) -> None:
        self.controller = ModelController() if controller is None else controller
        self.derivation = CommandDerivation(OWN)
        self.incarnations = dict.fromkeys(BROKERS, 0)
        self.epochs: dict[int, int] = {}

    def submit(self, command: Command) -> ErrorCode:
        answer = self.controller.submit(command)
        if isinstance(command, RegisterBroker) and answer.code is ErrorCode.NONE:
            self.epochs[command.broker_id] = int(str(answer.result["broker_epoch"]))
        return answer.code

    def register(self, broker_id: int, *, is_new: bool = True) -> ErrorCode:
        self.incarnations[broker_id] += is_new
        incarnation = bytes([9, broker_id]) + self.incarnations[broker_id].to_bytes(14, "big")
        directory = bytes([8, broker_id]) + bytes(14)
        return self.submit(
            RegisterBroker(broker_id, CLUSTER_ID, incarnation, (), FEATURES, None, (directory,))
        )

    def beat(self, broker_id: int, *, want_shutdown: bool = False) -> ErrorCode:
        at = self.controller.log_end_offset - 1
        epoch = self.epochs[broker_id]
        return self.submit(BrokerHeartbeat(broker_id, epoch, at, want_shutdown=want_shutdown))

    def start(self) -> None:
        for each in BROKERS:
            assert self.register(each) is ErrorCode.NONE
            assert self.beat(each) is ErrorCode.NONE

    def commands(self) -> list[BrokerCommand]:
        return [
            command
            for change in self.controller.take_changes()
            for command in self.derivation.follow(change)
        ]


def act(rng: random.Random, cluster: Cluster) -> None:
    broker_id, topics = rng.choice(BROKERS), sorted(cluster.controller.image.topics.ids)
    topic = rng.choice(topics) if topics else "none"
    kind = rng.randrange(10)
    if kind < 2:
        cluster.register(broker_id, is_new=rng.random() < 0.7)
    elif kind == 2:
        cluster.submit(CreateTopic(f"t{rng.randrange(6)}", rng.randint(1, 3), rng.randint(1, 3)))
    elif kind == 3:
        cluster.submit(DeleteTopic(topic))
    elif kind == 4:
        cluster.submit(CreatePartitions(topic, rng.randint(1, 5)))
    elif kind == 5 and rng.random() < 0.2:
        cluster.submit(UnregisterBroker(broker_id))
    elif kind == 6:
        cluster.controller.advance(10_000)
    elif kind == 7:
        cluster.submit(ElectLeaders(topic, election_type=ElectionType.PREFERRED))
    elif broker_id in cluster.epochs:
        cluster.beat(broker_id, want_shutdown=rng.random() < 0.2)
