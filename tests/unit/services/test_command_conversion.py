"""Protobuf commands become the state machine's, field by field."""

from __future__ import annotations

from typing import get_args

import pytest

from quorate.services.commands import COMMANDS, CONVERTERS, to_command
from quorate.services.results import RESULT_KINDS, to_result
from quorum.errors import CommandError
from quorum.types import ZERO_UUID
from quorum.v1 import commands_pb2 as wire
from statemachine import commands
from statemachine.import_state import SourcePosition

ID = bytes(range(16))


def converted(**kind):
    return to_command(wire.Command.FromString(wire.Command(**kind).SerializeToString()))


def test_every_kind_has_a_converter_and_every_command_a_kind():
    kinds = {field.name for field in wire.Command.DESCRIPTOR.oneofs_by_name["kind"].fields}
    assert set(CONVERTERS) == kinds
    made = {type(to_command(wire.Command(**{kind: {}}))) for kind in kinds}
    # Deleting records is refused by its own call, without the log.
    assert made == set(get_args(commands.SingleCommand)) - {commands.DeleteRecords}


def test_a_command_may_carry_the_position_it_was_computed_from():
    position = wire.CommitPosition(group="g", offset=3, epochs=[wire.ReadEpoch(epoch=1)])
    found = converted(unregister_broker=wire.UnregisterBroker(broker_id=4), with_position=position)
    assert found == commands.WithPosition(
        commands.UnregisterBroker(4),
        commands.CommitPosition("g", 3, epochs=(commands.ReadEpoch(1, 0),)),
    )


def test_result_kinds_are_command_kinds():
    assert set(CONVERTERS) >= RESULT_KINDS


def test_a_configuration_change():
    change = wire.IncrementalAlterConfigs(
        resource_type=wire.CONFIG_RESOURCE_TYPE_TOPIC,
        resource_name="t",
        alterations=[
            wire.ConfigAlteration(name="a", operation=wire.CONFIG_OPERATION_SET, value=""),
            wire.ConfigAlteration(name="b", operation=wire.CONFIG_OPERATION_DELETE),
            wire.ConfigAlteration(name="c", operation=wire.CONFIG_OPERATION_APPEND, value="x"),
            wire.ConfigAlteration(name="d", operation=wire.CONFIG_OPERATION_SUBTRACT, value="x"),
        ],
        dry_run=True,
    )
    assert converted(incremental_alter_configs=change) == commands.IncrementalAlterConfigs(
        commands.ResourceType.TOPIC,
        "t",
        (
            commands.ConfigChange("a", commands.ConfigOperation.SET, ""),
            commands.ConfigChange("b", commands.ConfigOperation.DELETE, None),
            commands.ConfigChange("c", commands.ConfigOperation.APPEND, "x"),
            commands.ConfigChange("d", commands.ConfigOperation.SUBTRACT, "x"),
        ),
        dry_run=True,
    )


@pytest.mark.parametrize(
    ("kind", "message", "expected"),
    [
        ("create_topic", wire.CreateTopic(name="t"), commands.CreateTopic("t")),
        (
            "create_topic",
            wire.CreateTopic(
                name="t",
                partition_count=2,
                replication_factor=3,
                assignments=[wire.ReplicaAssignment(partition=1, broker_ids=[4, 5])],
                configs=[wire.TopicConfig(name="k", value="v"), wire.TopicConfig(name="n")],
            ),
            commands.CreateTopic(
                "t", 2, 3, (commands.ReplicaAssignment(1, (4, 5)),), (("k", "v"), ("n", None))
            ),
        ),
        ("delete_topic", wire.DeleteTopic(topic_id=ID), commands.DeleteTopic("", ID)),
        ("delete_topic", wire.DeleteTopic(name="t"), commands.DeleteTopic("t", ZERO_UUID)),
        (
            "create_partitions",
            wire.CreatePartitions(
                topic_name="t",
                partition_count=4,
                assignments=[wire.ReplicaAssignment(broker_ids=[1])],
            ),
            commands.CreatePartitions("t", 4, ((1,),)),
        ),
        (
            "alter_partition",
            wire.AlterPartition(
                broker_id=1,
                broker_epoch=2,
                topics=[
                    wire.TopicAlteration(
                        topic_id=ID,
                        partitions=[
                            wire.PartitionAlteration(
                                partition=3,
                                leader_epoch=4,
                                partition_epoch=5,
                                isr=[
                                    wire.IsrMember(broker_id=1, broker_epoch=9),
                                    wire.IsrMember(broker_id=2),
                                ],
                                leader_recovery_state=1,
                            )
                        ],
                    )
                ],
            ),
            commands.AlterPartition(
                1,
                2,
                (
                    commands.TopicAlteration(
                        ID,
                        (
                            commands.PartitionAlteration(
                                3,
                                4,
                                5,
                                (commands.IsrMember(1, 9), commands.IsrMember(2, -1)),
                                1,
                            ),
                        ),
                    ),
                ),
            ),
        ),
        (
            "register_broker",
            wire.RegisterBroker(
                broker_id=1,
                cluster_id="c",
                incarnation_id=ID,
                listeners=[wire.BrokerListener(name="L", host="h", port=1, security_protocol=1)],
                features=[wire.SupportedFeature(name="f", min_version=1, max_version=2)],
                rack="r",
                log_dirs=[ID],
                previous_broker_epoch=7,
            ),
            commands.RegisterBroker(
                1,
                "c",
                ID,
                (commands.Listener("L", "h", 1, 1),),
                (commands.FeatureRange("f", 1, 2),),
                "r",
                (ID,),
                previous_broker_epoch=7,
            ),
        ),
        (
            "broker_heartbeat",
            wire.BrokerHeartbeat(
                broker_id=1,
                broker_epoch=2,
                metadata_offset=3,
                want_fence=True,
                want_shut_down=True,
                offline_log_dirs=[ID],
            ),
            commands.BrokerHeartbeat(
                1, 2, 3, want_fence=True, want_shutdown=True, offline_log_dirs=(ID,)
            ),
        ),
        (
            "unregister_broker",
            wire.UnregisterBroker(broker_id=3, dry_run=True),
            commands.UnregisterBroker(3, dry_run=True),
        ),
        (
            "update_features",
            wire.UpdateFeatures(updates=[wire.FeatureUpdate(name="f", level=3, upgrade_type=2)]),
            commands.UpdateFeatures((commands.FeatureUpdate("f", 3, 2),)),
        ),
        (
            "allocate_producer_ids",
            wire.AllocateProducerIds(broker_id=1, broker_epoch=2),
            commands.AllocateProducerIds(1, 2),
        ),
        ("init_producer_id", wire.InitProducerId(), commands.InitProducerId()),
        (
            "init_producer_id",
            wire.InitProducerId(
                transactional_id="x", producer_id=0, producer_epoch=1, timeout_ms=5
            ),
            commands.InitProducerId("x", 0, 1, 5),
        ),
        (
            "elect_leaders",
            wire.ElectLeaders(
                topic_name="t", partitions=[1], election_type=wire.ELECTION_TYPE_UNCLEAN
            ),
            commands.ElectLeaders("t", (1,), commands.ElectionType.UNCLEAN),
        ),
        (
            "import_batch",
            wire.ImportBatch(
                source_cluster_id="c",
                checkpoint_offset=9,
                begin=wire.SourcePosition(is_in_checkpoint=True, offset=3),
                end=wire.SourcePosition(offset=9),
                records=[b"r"],
                is_last=True,
                dry_run=True,
            ),
            commands.ImportBatch(
                "c",
                SourcePosition(is_in_log=False, offset=3),
                SourcePosition(is_in_log=True, offset=9),
                (b"r",),
                9,
                is_last=True,
                dry_run=True,
            ),
        ),
        (
            "import_batch",
            wire.ImportBatch(source_cluster_id="c"),
            commands.ImportBatch("c", SourcePosition(True, 0), SourcePosition(True, 0)),
        ),
    ],
)
def test_each_kind(kind, message, expected):
    assert converted(**{kind: message}) == expected
    assert converted(**{kind: COMMANDS[type(expected)].to_pb(expected)}) == expected


def test_nothing_and_wrong_uuids_are_refused():
    with pytest.raises(CommandError, match="empty or of an unknown kind"):
        to_command(wire.Command())
    with pytest.raises(CommandError, match="topic id has 3 bytes, not 16"):
        converted(delete_topic=wire.DeleteTopic(topic_id=b"abc"))


def test_results_are_filled_by_name_also_deep_ones():
    fields = {
        "topics": [
            {
                "topic_id": ID,
                "partitions": [{"partition": 1, "error_code": 0, "isr": [1, 2], "leader_id": 1}],
            }
        ]
    }
    result = to_result("alter_partition", fields)
    (topic,) = result.alter_partition.topics
    assert topic.topic_id == ID
    assert (list(topic.partitions[0].isr), topic.partitions[0].leader_id) == ([1, 2], 1)
    assert to_result("register_broker", {"broker_epoch": 9}).register_broker.broker_epoch == 9
    assert to_result("unregister_broker", {"x": 1}) is None
    assert to_result("register_broker", {}) is None


def test_directories_that_may_be_left_open():
    """Absent means "as they are"; an empty list cordons nothing."""
    beat = wire.BrokerHeartbeat(broker_id=1)
    assert converted(broker_heartbeat=beat).cordoned_log_dirs is None
    beat.cordoned_log_dirs.SetInParent()
    assert converted(broker_heartbeat=beat).cordoned_log_dirs == ()
    beat.cordoned_log_dirs.log_dirs.append(ID)
    assert converted(broker_heartbeat=beat).cordoned_log_dirs == (ID,)
    register = wire.RegisterBroker(cordoned_log_dirs=wire.LogDirectories(log_dirs=[b"short"]))
    with pytest.raises(CommandError) as caught:
        converted(register_broker=register)
    assert caught.value.code.name == "INVALID_REQUEST"


def test_directories_of_replicas():
    topic = wire.PartitionNumbers(topic_id=ID, partitions=[0, 3])
    assignment = wire.DirectoryAssignment(directory_id=ID, topics=[topic])
    request = wire.AssignReplicasToDirs(broker_id=1, broker_epoch=7, directories=[assignment])
    assert converted(assign_replicas_to_dirs=request) == commands.AssignReplicasToDirs(
        1, 7, (commands.DirectoryAssignment(ID, (commands.PartitionNumbers(ID, (0, 3)),)),)
    )
    cordon = wire.CordonLogDirs(broker_id=1, log_dirs=[ID], uncordon=True)
    assert converted(cordon_log_dirs=cordon) == commands.CordonLogDirs(1, (ID,), uncordon=True)
