"""Commands derived from changes: complete, tagged, nested, and no more than needed."""

from __future__ import annotations

import random

import pytest

from quorate.broker_agent.commands import (
    LeaderAndIsr,
    StopReplica,
    UpdateMetadata,
    offline_replicas,
)
from quorate.broker_agent.derivation import CommandDerivation
from quorate.broker_agent.generation import Generation, stray_replicas
from quorum.errors import ErrorCode
from statemachine.commands import (
    AlterPartition,
    CreateTopic,
    DeleteTopic,
    IsrMember,
    PartitionAlteration,
    ReplicaAssignment,
    TopicAlteration,
    UnregisterBroker,
)
from tests.support.broker_world import OWN, Cluster, Executed, act, assigned


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
        if broker is not None:
            executed.check(image)


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
