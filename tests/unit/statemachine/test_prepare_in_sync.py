"""AlterPartition: the checks in their order, and what an accepted change comes to."""

from __future__ import annotations

import pytest

from quorum.errors import CommandError, ErrorCode
from statemachine.commands import AlterPartition, IsrMember, PartitionAlteration, TopicAlteration
from statemachine.prepare import prepare
from statemachine.records import PartitionChangeRecord
from tests.support.image_builder import (
    after,
    evaluation,
    fenced,
    shutting_down,
    small_cluster,
    topic_id,
)


def alteration(*isr, leader_epoch=5, partition_epoch=7, partition=0, recovery=0):
    members = tuple(m if isinstance(m, IsrMember) else IsrMember(m) for m in isr)
    return PartitionAlteration(partition, leader_epoch, partition_epoch, members, recovery)


def alter(image, *changes, broker=1, epoch=None, topic=None):
    command = AlterPartition(
        broker,
        10 + broker if epoch is None else epoch,
        (TopicAlteration(topic_id(1) if topic is None else topic, changes),),
    )
    return prepare(image, command, evaluation())


def code_of(image, change, **options):
    prepared = alter(image, change, **options)
    assert prepared.records == []
    return ErrorCode(prepared.result["topics"][0]["partitions"][0]["error_code"])


def test_a_smaller_isr_is_one_change_and_its_state_the_answer():
    prepared = alter(small_cluster(), alteration(1, 3))
    assert prepared.records == [PartitionChangeRecord(0, topic_id(1), isr=(1, 3))]
    assert prepared.result["topics"][0]["partitions"][0] == {
        "partition": 0,
        "error_code": 0,
        "leader_id": 1,
        "leader_epoch": 5,
        "isr": [1, 3],
        "leader_recovery_state": 0,
        "partition_epoch": 8,
    }


def test_the_same_members_in_another_order_are_no_change():
    assert code_of(small_cluster(), alteration(3, 1, 2)) is ErrorCode.NONE


@pytest.mark.parametrize("options", [{"epoch": 10}, {"epoch": 12}, {"broker": 9}])
def test_another_incarnation_of_the_broker_fails_the_whole_request(options):
    with pytest.raises(CommandError) as caught:
        alter(small_cluster(), alteration(1), **options)
    assert caught.value.code is ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.parametrize(
    ("change", "options", "code"),
    [
        (alteration(1), {"topic": topic_id(8)}, ErrorCode.UNKNOWN_TOPIC_ID),
        (alteration(1), {"topic": bytes(16)}, ErrorCode.UNKNOWN_TOPIC_ID),
        (alteration(1, partition=9), {}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (alteration(leader_epoch=6, partition_epoch=1), {}, ErrorCode.NOT_CONTROLLER),
        (alteration(leader_epoch=4, partition_epoch=8), {}, ErrorCode.NOT_CONTROLLER),
        (
            alteration(leader_epoch=4, partition_epoch=1),
            {"broker": 2},
            ErrorCode.FENCED_LEADER_EPOCH,
        ),
        (alteration(partition_epoch=1), {"broker": 2}, ErrorCode.INVALID_REQUEST),
        (alteration(partition_epoch=6), {}, ErrorCode.INVALID_UPDATE_VERSION),
        (alteration(1, 1), {}, ErrorCode.INVALID_REQUEST),
        (alteration(1, -1), {}, ErrorCode.INVALID_REQUEST),
        (alteration(1, 9), {}, ErrorCode.INVALID_REQUEST),
        (alteration(), {}, ErrorCode.INVALID_REQUEST),
        (alteration(2, 3), {}, ErrorCode.INVALID_REQUEST),
        (alteration(1, 2, recovery=1), {}, ErrorCode.INVALID_REQUEST),
        (alteration(1, recovery=1), {}, ErrorCode.INVALID_REQUEST),
        (alteration(1, recovery=7), {}, ErrorCode.INVALID_REQUEST),
        (alteration(1, IsrMember(2, 99)), {}, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_the_first_objection_counts(change, options, code):
    assert code_of(small_cluster(), change, **options) is code


@pytest.mark.parametrize("trouble", [fenced(2), shutting_down(2)])
def test_an_offline_replica_is_not_let_into_an_isr(trouble):
    image = small_cluster(trouble)
    assert code_of(image, alteration(1, 2)) is ErrorCode.INELIGIBLE_REPLICA
    assert alter(image, alteration(1, IsrMember(3, 13))).records


def test_recovery_ends_with_an_accepted_change():
    image = small_cluster(PartitionChangeRecord(0, topic_id(1), isr=(1,), leader_recovery_state=1))
    prepared = alter(image, alteration(1, partition_epoch=8))
    assert prepared.records == [PartitionChangeRecord(0, topic_id(1), leader_recovery_state=0)]


def test_completing_a_reassignment_may_elect_another_leader():
    image = small_cluster(
        PartitionChangeRecord(
            0,
            topic_id(1),
            replicas=(2, 3, 1),
            isr=(1,),
            removing_replicas=(1,),
            adding_replicas=(2, 3),
        )
    )
    prepared = alter(image, alteration(1, 2, 3, partition_epoch=8))
    answer = prepared.result["topics"][0]["partitions"][0]
    assert answer["error_code"] == ErrorCode.NEW_LEADER_ELECTED
    state = after(image, prepared.records).topics.partition(topic_id(1), 0)
    assert (state.replicas, state.isr, state.leader) == ((2, 3), (2, 3), 2)
    assert (state.removing, state.adding, state.leader_epoch) == ((), (), 6)
    assert answer["partition_epoch"] == state.partition_epoch


def test_a_partition_is_named_once_and_requests_are_bounded():
    image = small_cluster()
    for changes, code in (
        ([alteration(1), alteration(1, 2)], ErrorCode.INVALID_REQUEST),
        ([alteration(1, partition=i) for i in range(10_001)], ErrorCode.POLICY_VIOLATION),
    ):
        with pytest.raises(CommandError) as caught:
            alter(image, *changes)
        assert caught.value.code is code
