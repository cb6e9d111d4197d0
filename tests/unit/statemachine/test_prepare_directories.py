"""Log directories: cordons and what they keep out, assignments and what they change."""

from __future__ import annotations

import pytest

from quorum.errors import CommandError, ErrorCode
from statemachine.commands import (
    AssignReplicasToDirs,
    BrokerHeartbeat,
    CordonLogDirs,
    CreatePartitions,
    CreateTopic,
    DirectoryAssignment,
    FeatureRange,
    PartitionNumbers,
    RegisterBroker,
    ReplicaAssignment,
)
from statemachine.prepare import prepare
from statemachine.prepare.replicas import CORDONS_LEVEL, DIRECTORIES_LEVEL
from statemachine.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    record_version,
)
from statemachine.sections.cluster import DIRECTORY_LOST, DIRECTORY_UNASSIGNED
from tests.support.image_builder import (
    CLUSTER_ID,
    after,
    directory,
    evaluation,
    fenced,
    incarnation,
    registration,
    small_cluster,
    topic_id,
)

TWO = (directory(1, 0), directory(1, 1))


def cluster(*more, level=33, **options):
    """Three brokers; broker 1 has two directories."""
    return small_cluster(registration(1, log_dirs=TWO), *more, level=level, **options)


def run(image, command):
    return prepare(image, command, evaluation())


def placed(image, *, partitions=20, factor=1):
    prepared = run(image, CreateTopic("new", partitions, factor))
    return [each for each in prepared.records if isinstance(each, PartitionRecord)]


def code_of(image, command):
    with pytest.raises(CommandError) as caught:
        run(image, command)
    return caught.value.code


# ------------------------------------------------------------------ cordons


def test_a_cordon_is_a_change_of_the_registration_in_kafkas_format():
    image = cluster()
    prepared = run(image, CordonLogDirs(1, (TWO[1],)))
    assert prepared.records == [BrokerRegistrationChangeRecord(1, 11, cordoned_log_dirs=(TWO[1],))]
    assert prepared.result == {"cordoned_log_dirs": [TWO[1]]}
    assert record_version(prepared.records[0], 33) == 3
    image = after(image, prepared.records)
    assert run(image, CordonLogDirs(1, (TWO[1],))).records == []
    both = run(image, CordonLogDirs(1))
    assert both.result == {"cordoned_log_dirs": sorted(TWO)}
    image = after(image, both.records)
    open_again = run(image, CordonLogDirs(1, (TWO[0],), uncordon=True))
    assert open_again.result == {"cordoned_log_dirs": [TWO[1]]}
    none = run(after(image, open_again.records), CordonLogDirs(1, uncordon=True))
    assert none.result == {"cordoned_log_dirs": []}
    assert after(image, none.records).cluster.broker(1).open_log_dirs == TWO


def test_what_cannot_be_cordoned():
    assert code_of(cluster(), CordonLogDirs(9)) is ErrorCode.BROKER_ID_NOT_REGISTERED
    unknown = CordonLogDirs(1, (directory(2),))
    assert code_of(cluster(), unknown) is ErrorCode.INVALID_REQUEST
    low = cluster(level=CORDONS_LEVEL - 1)
    assert code_of(low, CordonLogDirs(1)) is ErrorCode.UNSUPPORTED_VERSION
    assert run(cluster(level=CORDONS_LEVEL), CordonLogDirs(1)).records


def test_a_cordoned_broker_gets_no_new_replicas():
    image = cluster()
    image = after(image, run(image, CordonLogDirs(1)).records)
    assert {broker for each in placed(image, factor=2) for broker in each.replicas} == {2, 3}
    with pytest.raises(CommandError, match="exceeds the 2 usable brokers"):
        placed(image, factor=3)
    image = after(image, run(image, CordonLogDirs(1, uncordon=True)).records)
    assert {broker for each in placed(image) for broker in each.replicas} == {1, 2, 3}


def test_new_partitions_of_an_old_topic_avoid_it_too():
    image = cluster()
    created = run(image, CreateTopic("new", 1, 2))
    image = after(after(image, created.records), run(image, CordonLogDirs(1)).records)
    grown = run(image, CreatePartitions("new", 9)).records
    assert {broker for each in grown for broker in each.replicas} == {2, 3}


def test_the_only_open_directory_is_named_and_a_cordoned_one_never():
    """With two open ones the broker chooses; with one there is nothing to choose."""

    def directories(image):
        return {each.directories[each.replicas.index(1)] for each in placed(image, factor=3)}

    image = cluster()
    assert directories(image) == {DIRECTORY_UNASSIGNED}
    image = after(image, run(image, CordonLogDirs(1, (TWO[0],))).records)
    assert directories(image) == {TWO[1]}


def test_an_assignment_by_hand_may_name_a_cordoned_broker():
    """As in Kafka: a cordon is about placement, not about what an operator names."""
    image = after(cluster(), run(cluster(), CordonLogDirs(1)).records)
    by_hand = CreateTopic("new", assignments=(ReplicaAssignment(0, (1, 2)),))
    (partition,) = [each for each in run(image, by_hand).records if type(each) is PartitionRecord]
    assert partition.directories == (DIRECTORY_UNASSIGNED, directory(2))


def register(image, *, number, cordoned=None, log_dirs=TWO):
    command = RegisterBroker(
        1,
        CLUSTER_ID,
        incarnation(number),
        features=(FeatureRange("metadata.version", 7, 33), FeatureRange("kraft.version", 0, 1)),
        log_dirs=log_dirs,
        cordoned_log_dirs=cordoned,
    )
    return run(image, command)


@pytest.mark.parametrize("number", [1, 77], ids=["amended", "bounced"])
def test_a_cordon_outlives_a_restart_of_the_broker(number):
    image = after(cluster(), run(cluster(), CordonLogDirs(1, (TWO[0],))).records)
    again = register(image, number=number)
    assert after(image, again.records).cluster.broker(1).cordoned_log_dirs == (TWO[0],)
    fewer = register(image, number=number, log_dirs=(TWO[1],))
    assert not after(image, fewer.records).cluster.broker(1).cordoned_log_dirs
    own = register(image, number=number, cordoned=(TWO[1],))
    assert after(image, own.records).cluster.broker(1).cordoned_log_dirs == (TWO[1],)
    none = register(image, number=number, cordoned=())
    assert not after(image, none.records).cluster.broker(1).cordoned_log_dirs


def test_the_same_registration_again_changes_only_what_it_says() -> None:
    image = after(cluster(), register(cluster(), number=1).records)
    image = after(image, run(image, CordonLogDirs(1, (TWO[0],))).records)
    assert register(image, number=1).records == []
    assert register(image, number=1, cordoned=(TWO[0],)).records == []
    (record,) = register(image, number=1, cordoned=()).records
    assert record.cordoned_log_dirs == ()


def test_a_registration_cordons_only_its_own_directories():
    with pytest.raises(CommandError, match="cordoned directory is none") as caught:
        register(cluster(), number=77, cordoned=(directory(2),))
    assert caught.value.code is ErrorCode.INVALID_REGISTRATION


def test_below_the_level_a_registration_names_no_cordon():
    image = cluster(level=CORDONS_LEVEL - 1)
    (record,) = register(image, number=77, cordoned=(TWO[0],)).records[-1:]
    assert record.cordoned_log_dirs is None


def heartbeat(image, *cordoned):
    return run(image, BrokerHeartbeat(1, 11, 2_000, cordoned_log_dirs=cordoned)).records


def test_a_heartbeat_reports_what_the_broker_itself_has_cordoned():
    image = cluster()
    records = heartbeat(image, TWO[1], directory(3))
    assert records == [BrokerRegistrationChangeRecord(1, 11, cordoned_log_dirs=(TWO[1],))]
    image = after(image, records)
    assert heartbeat(image, TWO[1]) == []
    assert run(image, BrokerHeartbeat(1, 11, 2_000)).records == []
    assert heartbeat(image) == [BrokerRegistrationChangeRecord(1, 11, cordoned_log_dirs=())]
    assert heartbeat(cluster(level=CORDONS_LEVEL - 1), TWO[1]) == []


# ------------------------------------------------------------------ assignments


def assign(image, *numbers, where=TWO[1], broker=1, epoch=None, topic=1):
    numbered = PartitionNumbers(topic_id(topic), numbers)
    command = AssignReplicasToDirs(
        broker, 10 + broker if epoch is None else epoch, (DirectoryAssignment(where, (numbered,)),)
    )
    return run(image, command)


def codes(prepared):
    (assignment,) = prepared.result["directories"]
    (topic,) = assignment["topics"]
    return [ErrorCode(each["error_code"]) for each in topic["partitions"]]


def test_an_assignment_changes_the_directory_and_nothing_else():
    image = cluster()
    prepared = assign(image, 0, 2)
    assert codes(prepared) == [ErrorCode.NONE] * 2
    changed = after(image, prepared.records)
    for number in (0, 2):
        old = image.topics.partition(topic_id(1), number)
        new = changed.topics.partition(topic_id(1), number)
        assert new.directory(1) == TWO[1]
        assert new == old._replace(
            directories=new.directories, partition_epoch=old.partition_epoch + 1
        )
    assert assign(changed, 0, 2).records == []


def test_other_replicas_keep_their_directories():
    image = after(cluster(), assign(cluster(), 0, where=directory(2), broker=2).records)
    image = after(image, assign(image, 0).records)
    state = image.topics.partition(topic_id(1), 0)
    assert (state.directory(1), state.directory(2)) == (TWO[1], directory(2))


def test_a_replica_in_a_lost_directory_leaves_the_isr_and_another_one_leads():
    image = cluster()
    prepared = assign(image, 0, where=DIRECTORY_LOST)
    (change,) = prepared.records
    assert isinstance(change, PartitionChangeRecord)
    state = after(image, prepared.records).topics.partition(topic_id(1), 0)
    assert (state.isr, state.leader, state.leader_epoch) == ((2, 3), 2, 6)
    assert state.directory(1) == DIRECTORY_LOST
    offline = assign(image, 0, where=directory(1, 9)).records
    assert after(image, offline).topics.partition(topic_id(1), 0).leader == 2


def test_the_last_in_sync_replica_stays_in_the_isr_and_does_not_lead():
    """Nobody else has its records; without its directory it cannot lead either."""
    alone = PartitionRecord(3, topic_id(1), (1, 2), (1,), leader=1, leader_epoch=0)
    image = cluster(alone)
    state = after(image, assign(image, 3, where=DIRECTORY_LOST).records).topics.partition(
        topic_id(1), 3
    )
    assert (state.isr, state.leader) == ((1,), -1)


def test_each_replica_has_its_own_answer():
    image = cluster(PartitionRecord(3, topic_id(1), (2, 3), (2, 3), leader=2, leader_epoch=0))
    prepared = assign(image, 0, 3, 9)
    assert codes(prepared) == [
        ErrorCode.NONE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert len(prepared.records) == 1
    assert codes(assign(image, 0, topic=8)) == [ErrorCode.UNKNOWN_TOPIC_ID]


@pytest.mark.parametrize("options", [{"epoch": 10}, {"epoch": 12}, {"broker": 9}])
def test_another_registration_fails_the_whole_request(options):
    with pytest.raises(CommandError) as caught:
        assign(cluster(), 0, **options)
    assert caught.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_what_is_no_assignment():
    image = cluster()
    for reserved in (bytes(16), DIRECTORY_UNASSIGNED):
        with pytest.raises(CommandError, match="reserved"):
            assign(image, 0, where=reserved)
    with pytest.raises(CommandError, match="more than once"):
        assign(image, 0, 0)
    with pytest.raises(CommandError, match="exceed 10000") as caught:
        assign(image, *range(10_001))
    assert caught.value.code is ErrorCode.POLICY_VIOLATION
    with pytest.raises(CommandError) as caught:
        assign(cluster(level=DIRECTORIES_LEVEL - 1), 0)
    assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_a_fenced_broker_may_report_too():
    """It reports while it starts, before it is unfenced."""
    image = cluster(fenced(1))
    assert codes(assign(image, 1)) == [ErrorCode.NONE]
    assert assign(image, 1).records
