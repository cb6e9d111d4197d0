"""Creating, growing and deleting topics, and electing leaders on request."""

from __future__ import annotations

import pytest

from quorum.errors import CommandError, ErrorCode
from quorum.types import METADATA_TOPIC_ID
from statemachine.commands import (
    CreatePartitions,
    CreateTopic,
    DeleteRecords,
    DeleteTopic,
    ElectionType,
    ElectLeaders,
    ReplicaAssignment,
)
from statemachine.prepare import prepare
from statemachine.records import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.support.image_builder import (
    after,
    directory,
    evaluation,
    fenced,
    registration,
    replayed,
    shutting_down,
    small_cluster,
    topic_id,
)


def refusal(image, command, **context):
    with pytest.raises(CommandError) as caught:
        prepare(image, command, evaluation(**context))
    return caught.value.code


def test_a_topic_is_written_as_topic_then_configs_then_partitions():
    image = small_cluster()
    prepared = prepare(
        image, CreateTopic("new", 4, 2, configs=(("retention.ms", "9"),)), evaluation()
    )
    kinds = [type(record) for record in prepared.records]
    assert kinds == [TopicRecord, ConfigRecord] + [PartitionRecord] * 4
    first = prepared.records[2]
    assert (first.leader, first.leader_epoch, first.partition_epoch) == (first.replicas[0], 0, 0)
    assert first.isr == first.replicas
    assert first.directories == tuple(directory(broker) for broker in first.replicas)
    assert prepared.result == {
        "topic_id": prepared.records[0].topic_id,
        "partition_count": 4,
        "replication_factor": 2,
    }
    assert after(image, prepared.records).topics.id_of("new") is not None


def test_the_same_seed_places_and_names_alike():
    image = small_cluster()
    command = CreateTopic("new", 50, 3)
    assert prepare(image, command, evaluation(seed=3)) == prepare(
        image, command, evaluation(seed=3)
    )
    assert prepare(image, command, evaluation(seed=3)) != prepare(
        image, command, evaluation(seed=4)
    )


def test_counts_left_open_take_the_defaults():
    prepared = prepare(small_cluster(), CreateTopic("new"), evaluation())
    assert prepared.result["partition_count"] == 1
    assert prepared.result["replication_factor"] == 3


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (CreateTopic("t", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS),
        (CreateTopic("", 1, 1), ErrorCode.INVALID_TOPIC),
        (CreateTopic("..", 1, 1), ErrorCode.INVALID_TOPIC),
        (CreateTopic("a b", 1, 1), ErrorCode.INVALID_TOPIC),
        (CreateTopic("a" * 250, 1, 1), ErrorCode.INVALID_TOPIC),
        (CreateTopic("a\n", 1, 1), ErrorCode.INVALID_TOPIC),
        (CreateTopic("__cluster_metadata", 1, 1), ErrorCode.POLICY_VIOLATION),
        (CreateTopic("n", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (CreateTopic("n", 10_001, 1), ErrorCode.POLICY_VIOLATION),
        (CreateTopic("n", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (CreateTopic("n", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (CreateTopic("n", 1, 1, configs=(("nope", "1"),)), ErrorCode.INVALID_CONFIG),
        (
            CreateTopic("n", 1, -1, assignments=(ReplicaAssignment(0, (1,)),)),
            ErrorCode.INVALID_REQUEST,
        ),
    ],
)
def test_create_topic_refusals(command, code):
    assert refusal(small_cluster(), command) is code


@pytest.mark.parametrize(
    ("known", "wanted", "collides"),
    [
        ("a.b", "a_b", True),
        ("a_b", "a.b", True),
        ("a.b_c", "a_b.c", True),
        ("a.b", "a-b", False),
        ("a.b", "ab", False),
        ("a.b", "a.b.c", False),
        ("_." * 20, "._" * 20, True),
        ("_." * 20, "._" * 19 + "..", True),
        ("_." * 20, "._" * 19 + ".x", False),
    ],
)
def test_names_that_are_equal_in_metrics_collide(known, wanted, collides):
    """KAFKA-1481: '.' and '_' are one character in the name of a metric."""
    image = small_cluster(TopicRecord(known, topic_id(9)))
    command = CreateTopic(wanted, 1, 1)
    if collides:
        with pytest.raises(CommandError, match="collides") as caught:
            prepare(image, command, evaluation())
        assert caught.value.code is ErrorCode.INVALID_TOPIC
    else:
        assert prepare(image, command, evaluation()).records


@pytest.mark.parametrize(
    "assignments",
    [
        ((0, (1, 1)),),
        ((0, ()),),
        ((1, (1,)),),
        ((0, (1,)), (0, (2,))),
        ((0, (1,)), (1, (1, 2))),
        ((0, (9,)),),
        ((0, (3,)),),
    ],
)
def test_assignments_by_hand_are_checked(assignments):
    image = small_cluster(fenced(3))
    command = CreateTopic("n", assignments=tuple(ReplicaAssignment(*pair) for pair in assignments))
    assert refusal(image, command) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_only_active_replicas_start_in_sync():
    image = small_cluster(fenced(1), shutting_down(2))
    command = CreateTopic("n", assignments=(ReplicaAssignment(0, (1, 2, 3)),))
    partition = prepare(image, command, evaluation()).records[1]
    assert (partition.replicas, partition.isr, partition.leader) == ((1, 2, 3), (3,), 3)


def test_no_unfenced_broker_no_topic():
    image = replayed(*(registration(broker, fenced=True) for broker in (1, 2)))
    assert refusal(image, CreateTopic("n", 1, 1)) is ErrorCode.INVALID_REPLICATION_FACTOR


def test_delete_by_name_and_by_id():
    image = small_cluster()
    for command in (
        DeleteTopic("t"),
        DeleteTopic(topic_id=topic_id(1)),
        DeleteTopic("t", topic_id(1)),
    ):
        prepared = prepare(image, command, evaluation())
        assert prepared.records == [RemoveTopicRecord(topic_id(1))]
        assert prepared.result == {"topic_id": topic_id(1), "name": "t"}


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (DeleteTopic(), ErrorCode.INVALID_REQUEST),
        (DeleteTopic("x"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (DeleteTopic(topic_id=topic_id(2)), ErrorCode.UNKNOWN_TOPIC_ID),
        (DeleteTopic("t", topic_id(2)), ErrorCode.INCONSISTENT_TOPIC_ID),
        (DeleteTopic("__cluster_metadata"), ErrorCode.POLICY_VIOLATION),
        (DeleteTopic(topic_id=METADATA_TOPIC_ID), ErrorCode.POLICY_VIOLATION),
        (DeleteRecords("__cluster_metadata"), ErrorCode.POLICY_VIOLATION),
        (DeleteRecords("x"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (CreatePartitions("__cluster_metadata", 2), ErrorCode.POLICY_VIOLATION),
        (CreatePartitions("x", 2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (CreatePartitions("t", 3), ErrorCode.INVALID_PARTITIONS),
        (CreatePartitions("t", 10_004), ErrorCode.POLICY_VIOLATION),
        (CreatePartitions("t", 4, ((1, 2, 3), (1, 2, 3))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (CreatePartitions("t", 4, ((1, 2),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_other_refusals(command, code):
    assert refusal(small_cluster(), command) is code


def test_new_partitions_follow_the_present_ones():
    prepared = prepare(small_cluster(), CreatePartitions("t", 5), evaluation())
    assert [record.partition_id for record in prepared.records] == [3, 4]
    assert all(len(record.replicas) == 3 for record in prepared.records)
    assert prepared.result == {"topic_id": topic_id(1), "partition_count": 5}


def test_preferred_leaders_come_back():
    image = small_cluster(PartitionChangeRecord(0, topic_id(1), leader=2))
    prepared = prepare(image, ElectLeaders("t"), evaluation())
    assert prepared.records == [PartitionChangeRecord(0, topic_id(1), leader=1)]
    assert [entry["error_code"] for entry in prepared.result["partitions"]] == [0, 0, 0]


def test_an_absent_preferred_leader_is_reported_per_partition():
    image = small_cluster(fenced(1), PartitionChangeRecord(0, topic_id(1), leader=2))
    prepared = prepare(image, ElectLeaders("t", (0, 1, 9)), evaluation())
    assert prepared.records == []
    assert [entry["error_code"] for entry in prepared.result["partitions"]] == [
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        0,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_an_unclean_election_takes_any_live_replica():
    image = small_cluster(fenced(1), PartitionChangeRecord(0, topic_id(1), isr=(1,), leader=-1))
    prepared = prepare(image, ElectLeaders("t", (0,), ElectionType.UNCLEAN), evaluation())
    change = prepared.records[0]
    assert (change.leader, change.isr, change.leader_recovery_state) == (2, (2,), 1)


def test_what_is_remembered_of_the_brokers_is_forgotten_when_they_change():
    """One leader evaluates all the time: a fence, another directory, a level, and back again."""
    context = evaluation()
    before = small_cluster()
    images = (
        before,
        replayed(fenced(1), base=before),
        replayed(registration(1, broker_epoch=90, log_dirs=(directory(1, 7),)), base=before),
        before,
        replayed(FeatureLevelRecord("metadata.version", 16), base=before),
        before,
    )
    for image in images:
        command = CreatePartitions("t", 5, ((1, 2, 3), (2, 1, 3)))
        remembering = prepare(image, command, context).records
        assert remembering == prepare(image, command, evaluation()).records
