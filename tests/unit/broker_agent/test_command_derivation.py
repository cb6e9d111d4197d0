"""Commands derived from changes: complete, tagged, nested, and no more than needed."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from quorate.broker_agent.commands import (
    BrokerCommand,
    LeaderAndIsr,
    StopReplica,
    UpdateMetadata,
    offline_replicas,
)
from quorate.broker_agent.derivation import CommandDerivation
from quorate.broker_agent.generation import Generation, stray_replicas
from quorum.errors import ErrorCode
from simulation.laboratory.controller import CLUSTER_ID, METADATA_VERSION, ModelController
from statemachine.commands import (
    AlterPartition,
    BrokerHeartbeat,
    Command,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    ElectionType,
    ElectLeaders,
    FeatureRange,
    IsrMember,
    PartitionAlteration,
    RegisterBroker,
    ReplicaAssignment,
    TopicAlteration,
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

    def __init__(self) -> None:
        self.controller = ModelController()
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


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.start()
    cluster.commands()
    return cluster


def create(name: str, *replicas: tuple[int, ...]) -> CreateTopic:
    placed = tuple(ReplicaAssignment(n, each) for n, each in enumerate(replicas))
    return CreateTopic(name, assignments=placed)


@pytest.mark.parametrize("seed", range(40))
def test_who_executes_all_commands_has_what_the_image_says(seed: int) -> None:
    rng, cluster, executed = random.Random(seed), Cluster(), Executed()
    for _ in range(60):
        act(rng, cluster)
        commands = cluster.commands()
        executed.take(commands)
        image = cluster.controller.image
        broker = image.cluster.broker(OWN)
        assert {each.tag.broker_epoch for each in commands} <= set(cluster.epochs.values())
        if broker is None:
            continue
        wanted = assigned(image, OWN)
        assert executed.replicas.keys() == wanted.keys()
        for key, state in wanted.items():
            if key in executed.stopped:
                assert state.leader != OWN
            else:
                assert executed.replicas[key] == state
        assert executed.metadata == assigned(image, None)
        assert executed.brokers == image.cluster.brokers


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


def test_a_whole_state_gives_the_commands_that_a_registration_gives(cluster: Cluster) -> None:
    cluster.submit(create("a", (1, 2), (1, 3)))
    cluster.submit(create("b", (2, 3)))
    cluster.commands()
    executed, image = Executed(), cluster.controller.image
    executed.take(CommandDerivation(OWN).begin(image))
    assert executed.replicas == assigned(image, OWN)
    assert executed.metadata == assigned(image, None)
    assert CommandDerivation(77).begin(image) == []


def test_a_topic_is_named_once_with_its_partitions_nested(cluster: Cluster) -> None:
    """380.6: the size of a command grows with partitions by numbers and states, not by names."""
    cluster.submit(create("a", *[(1, 2)] * 50))
    leader_and_isr, update = cluster.commands()
    assert isinstance(leader_and_isr, LeaderAndIsr)
    assert isinstance(update, UpdateMetadata)
    (topic,) = leader_and_isr.topics.values()
    assert (topic.name, len(topic.partitions)) == ("a", 50)
    assert all(each.is_new for each in topic.partitions.values())
    assert [len(each.partitions) for each in update.topics.values()] == [50]
    assert list(leader_and_isr.live_leaders) == [1]


def test_a_change_costs_what_it_touches(cluster: Cluster) -> None:
    """Nothing but the touched partitions is looked at, whatever the image holds."""
    cluster.submit(create("big", *[(1, 2, 3)] * 400))
    cluster.submit(create("small", (1, 3), (1, 2)))
    cluster.commands()
    image = cluster.controller.image
    small = image.topics.ids["small"]
    state = image.topics.partitions_of(small)[1]
    alteration = PartitionAlteration(
        1, state.leader_epoch, state.partition_epoch, (IsrMember(1, cluster.epochs[1]),)
    )
    cluster.submit(AlterPartition(1, cluster.epochs[1], (TopicAlteration(small, (alteration,)),)))
    (change,) = cluster.controller.take_changes()
    assert change.partitions == {(small, 1)}
    commands = cluster.derivation.follow(change)
    assert [type(each) for each in commands] == [LeaderAndIsr, UpdateMetadata]
    for each in commands:
        assert not isinstance(each, StopReplica)
        assert [list(topic.partitions) for topic in each.topics.values()] == [[1]]


def test_a_change_elsewhere_updates_metadata_only(cluster: Cluster) -> None:
    cluster.submit(create("a", (1, 3)))
    (update,) = cluster.commands()
    assert isinstance(update, UpdateMetadata)
    assert update.brokers is None


def test_a_deleted_topic_is_stopped_and_named(cluster: Cluster) -> None:
    cluster.submit(create("a", (1, 2), (1, 2)))
    cluster.commands()
    cluster.submit(DeleteTopic("a"))
    stop, update = cluster.commands()
    assert isinstance(stop, StopReplica)
    assert isinstance(update, UpdateMetadata)
    ((topic_id, topic),) = stop.topics.items()
    assert (topic.name, topic.partitions, stop.delete_partitions) == ("a", (0, 1), True)
    assert update.deleted_topics == (topic_id,)


def test_a_new_registration_gets_everything_again(cluster: Cluster) -> None:
    """380.5, and 380.2: each command names the registration and the metadata behind it."""
    cluster.submit(create("a", (1, 2)))
    cluster.commands()
    cluster.controller.advance(10_000)
    cluster.commands()
    assert cluster.register(OWN) is ErrorCode.NONE
    leader_and_isr, update = cluster.commands()
    assert isinstance(leader_and_isr, LeaderAndIsr)
    assert leader_and_isr.is_full
    assert isinstance(update, UpdateMetadata)
    assert update.is_full
    tag = leader_and_isr.tag
    assert tag == update.tag
    assert tag.broker_epoch == cluster.epochs[OWN]
    assert tag.metadata_offset == cluster.controller.log_end_offset
    assert tag.controller_epoch == cluster.controller.epoch


def test_an_unregistered_broker_gets_nothing(cluster: Cluster) -> None:
    cluster.submit(create("a", (1, 2)))
    cluster.commands()
    cluster.submit(UnregisterBroker(OWN))
    assert cluster.commands() == []
    cluster.submit(DeleteTopic("a"))
    assert cluster.commands() == []


def test_commands_of_another_registration_are_refused(cluster: Cluster) -> None:
    cluster.submit(create("a", (1, 2)))
    command = cluster.commands()[0]
    generation = Generation()
    assert generation.check(command) is ErrorCode.STALE_BROKER_EPOCH
    generation.hold(command.tag.broker_epoch)
    assert generation.check(command) is ErrorCode.NONE
    generation.hold(command.tag.broker_epoch + 1)
    assert generation.check(command) is ErrorCode.STALE_BROKER_EPOCH
    generation.hold(command.tag.broker_epoch)
    assert generation.check(command) is ErrorCode.STALE_BROKER_EPOCH


def test_strays_are_told_by_topic_id(cluster: Cluster) -> None:
    cluster.submit(create("a", (1, 2)))
    old = cluster.controller.image.topics.ids["a"]
    cluster.submit(DeleteTopic("a"))
    cluster.submit(create("a", (1, 2)))
    new = cluster.controller.image.topics.ids["a"]
    full = CommandDerivation(OWN).begin(cluster.controller.image)[0]
    assert isinstance(full, LeaderAndIsr)
    stop = stray_replicas(full, [((old, 0), "a"), ((new, 0), "a"), ((new, 7), "a")])
    assert stop is not None
    assert stop.delete_partitions
    assert stop.tag == full.tag
    assert sorted(stop.partition_keys()) == sorted([(old, 0), (new, 7)])
    assert stray_replicas(full, [((new, 0), "a")]) is None


def test_offline_replicas(cluster: Cluster) -> None:
    cluster.submit(create("a", (1, 2, 3)))
    cluster.submit(UnregisterBroker(3))
    cluster.beat(1, want_shutdown=True)
    image = cluster.controller.image
    ((_, state),) = assigned(image, None).items()
    assert offline_replicas(state, image.cluster.brokers) == (1, 3)
