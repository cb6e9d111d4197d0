"""Valid messages for every RPC of a server, the source of all mutations.

An RPC without messages here fails ``test_every_rpc_has_valid_calls``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from quorate.features import SUPPORTED_FEATURES
from quorum.transport.link import EXCHANGE_METHOD, SERVICE_NAME
from quorum.v1 import admin_pb2, common_pb2, metadata_pb2, raft_pb2
from quorum.v1 import commands_pb2 as wire
from tests.campaigns.mutations import Current

EXCHANGE = f"/{SERVICE_NAME}/{EXCHANGE_METHOD}"
"""The method without a protobuf descriptor: its messages are frames."""
STRANGER = 77
TOPIC = "campaign"
CONFIG = "log.retention.ms"
POSITION = wire.CommitPosition(
    group="mutants",
    offset=9,
    leader_epoch=2,
    epochs=[wire.ReadEpoch(epoch=1), wire.ReadEpoch(epoch=2, start_offset=4, log_digest=b"d" * 16)],
    log_digest=b"e" * 16,
    metadata="m",
)
CREDENTIAL = wire.ScramUpsertion(
    name="mutant",
    mechanism=1,
    iterations=4096,
    salt=b"s" * 32,
    stored_key=b"k" * 32,
    server_key=b"v" * 32,
)
METHODS = {
    f"/{service.full_name}/{method.name}": method
    for module in (raft_pb2, metadata_pb2, admin_pb2, health_pb2, reflection_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
"""Return every method of every service that has a descriptor."""
WRITES = frozenset({"/quorum.v1.MetadataService/Write", "/quorum.v1.MetadataService/WriteStream"})
"""Methods that may change the image; they answer with the offset of each change."""


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The cluster's present state, so that a call can be valid except for one field."""

    cluster_id: str
    leader_id: int
    voters: tuple[tuple[int, bytes], ...]
    current: Current
    topic_id: bytes
    broker_epochs: tuple[int, ...]
    """Epochs of brokers 1, 2 and 3."""


def offer_features(register: wire.RegisterBroker) -> None:
    """Feature levels that a broker of this release supports."""
    for each in SUPPORTED_FEATURES:
        register.features.add(
            name=each.name, min_version=each.min_level, max_version=each.max_level
        )


def commands(cluster_state: ClusterState) -> dict[str, wire.Command]:
    """Return a valid command of each kind, by its name in ``Command.kind``."""
    topic, epochs = cluster_state.topic_id, cluster_state.broker_epochs
    alter = wire.IncrementalAlterConfigs(resource_type=wire.CONFIG_RESOURCE_TYPE_BROKER)
    alter.alterations.add(name="log.retention.bytes", operation=1, value="12345")
    partition = wire.AlterPartition(broker_id=1, broker_epoch=epochs[0])
    partition.topics.add(topic_id=topic).partitions.add(
        isr=[wire.IsrMember(broker_id=1, broker_epoch=epochs[0])]
    )
    create = wire.CreateTopic(name="made", partition_count=1, replication_factor=1)
    create.configs.add(name="retention.ms", value="1000")
    create.assignments.add(partition=0, broker_ids=[1])
    grow = wire.CreatePartitions(topic_name=TOPIC, partition_count=4)
    grow.assignments.add(partition=3, broker_ids=[1])
    register = wire.RegisterBroker(
        broker_id=4,
        cluster_id=cluster_state.cluster_id,
        incarnation_id=b"4" * 16,
        log_dirs=[b"5" * 16],
    )
    register.listeners.add(name="PLAINTEXT", host="broker", port=9092)
    offer_features(register)
    update = wire.UpdateFeatures()
    update.updates.add(name="group.version", level=1, upgrade_type=1)
    assign = wire.AssignReplicasToDirs(broker_id=1, broker_epoch=epochs[0])
    assign.directories.add(directory_id=bytes([9]) * 16).topics.add(topic_id=topic, partitions=[0])
    load = wire.ImportBatch(source_cluster_id="another", records=[b"record"])
    load.begin.SetInParent()
    load.end.offset = 1
    kinds: dict[str, Any] = {
        "incremental_alter_configs": alter,
        "broker_heartbeat": wire.BrokerHeartbeat(
            broker_id=1, broker_epoch=epochs[0], metadata_offset=cluster_state.current.offset
        ),
        "alter_partition": partition,
        "create_topic": create,
        "delete_topic": wire.DeleteTopic(name="made"),
        "create_partitions": grow,
        "register_broker": register,
        "unregister_broker": wire.UnregisterBroker(broker_id=4),
        "update_features": update,
        "allocate_producer_ids": wire.AllocateProducerIds(broker_id=1, broker_epoch=epochs[0]),
        "init_producer_id": wire.InitProducerId(transactional_id="t", timeout_ms=1000),
        "elect_leaders": wire.ElectLeaders(topic_name=TOPIC, partitions=[0], election_type=1),
        "import_batch": load,
        "create_acls": wire.CreateAcls(
            entries=[
                wire.AclEntry(
                    resource_type=2,
                    resource_name=TOPIC,
                    pattern_type=3,
                    principal="User:m",
                    host="*",
                    operation=3,
                    permission_type=3,
                )
            ]
        ),
        "delete_acls": wire.DeleteAcls(filters=[wire.AclFilter(principal="User:m")]),
        "commit_position": POSITION,
        "alter_user_scram_credentials": wire.AlterUserScramCredentials(upsertions=[CREDENTIAL]),
        "cordon_log_dirs": wire.CordonLogDirs(broker_id=1, log_dirs=[bytes([9]) * 16]),
        "assign_replicas_to_dirs": assign,
    }
    made = {name: wire.Command(tag=1, **{name: kind}) for name, kind in kinds.items()}
    made["unregister_broker"].with_position.CopyFrom(POSITION)
    return made


def valid_calls(cluster_state: ClusterState) -> dict[str, list[Any]]:
    """Return valid messages by full method name, without those of ``EXCHANGE``."""
    now = cluster_state.current
    place = [common_pb2.Endpoint(name="CONTROLLER", host="127.0.0.1", port=9)]
    read = metadata_pb2.ReadOptions(level=metadata_pb2.READ_LEVEL_LOCAL)
    writer = metadata_pb2.WriterIdentity(client_id="mutant", reason="campaign")
    given = list(commands(cluster_state).values())
    streamed = []
    for each in given:
        group = metadata_pb2.ProducerCommands(commands=[each])
        streamed.append(metadata_pb2.WriteStreamRequest(hello=writer, groups=[group]))
    return {
        **_peer_calls(cluster_state, place),
        "/quorum.v1.MetadataService/Write": [
            metadata_pb2.WriteRequest(writer=writer, command=each) for each in given
        ],
        "/quorum.v1.MetadataService/WriteStream": streamed,
        "/quorum.v1.MetadataService/FetchLog": [metadata_pb2.FetchLogRequest(max_bytes=1000)],
        "/quorum.v1.MetadataService/ListOffsets": [metadata_pb2.ListOffsetsRequest(timestamp=-1)],
        "/quorum.v1.MetadataService/OffsetForLeaderEpoch": [
            metadata_pb2.OffsetForLeaderEpochRequest(leader_epoch=now.epoch)
        ],
        "/quorum.v1.MetadataService/Watch": [metadata_pb2.WatchRequest(client_id="mutant")],
        "/quorum.v1.MetadataService/ListTopics": [metadata_pb2.ListTopicsRequest(read=read)],
        "/quorum.v1.MetadataService/DescribeTopics": [
            metadata_pb2.DescribeTopicsRequest(read=read, names=[TOPIC])
        ],
        "/quorum.v1.MetadataService/DescribeConfigs": [
            metadata_pb2.DescribeConfigsRequest(
                read=read,
                resources=[metadata_pb2.ConfigResource(type=wire.CONFIG_RESOURCE_TYPE_BROKER)],
            )
        ],
        "/quorum.v1.MetadataService/FetchPositions": [
            metadata_pb2.FetchPositionsRequest(read=read, groups=[POSITION.group])
        ],
        "/quorum.v1.MetadataService/ReadStream": [
            metadata_pb2.ReadStreamRequest(queries=[{"tag": 1, "list_topics": {"read": read}}]),
            metadata_pb2.ReadStreamRequest(
                queries=[{"tag": 2, "describe_topics": {"read": read, "names": [TOPIC]}}],
                max_wait_ms=1000,
            ),
        ],
        **_admin_calls(cluster_state, read, place),
        "/grpc.health.v1.Health/Check": [health_pb2.HealthCheckRequest()],
        "/grpc.health.v1.Health/List": [health_pb2.HealthListRequest()],
        "/grpc.health.v1.Health/Watch": [health_pb2.HealthCheckRequest()],
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": [
            reflection_pb2.ServerReflectionRequest(list_services=""),
            reflection_pb2.ServerReflectionRequest(file_containing_symbol="quorum.v1.AdminService"),
        ],
    }  # fmt: skip


def _peer_calls(cluster_state: ClusterState, place: list[Any]) -> dict[str, list[Any]]:
    now, cluster = cluster_state.current, cluster_state.cluster_id
    leader = common_pb2.ReplicaKey(
        id=cluster_state.leader_id, directory_id=dict(cluster_state.voters)[cluster_state.leader_id]
    )
    stranger = common_pb2.ReplicaKey(id=STRANGER, directory_id=b"s" * 16)
    others = [
        common_pb2.ReplicaKey(id=each, directory_id=disk) for each, disk in cluster_state.voters
    ]
    end = common_pb2.OffsetAndEpoch(offset=now.offset, epoch=now.epoch)
    snapshot = raft_pb2.FetchSnapshotRequest(cluster_id=cluster, max_bytes=1000)
    snapshot.topics.add(name="__cluster_metadata").partitions.add(
        current_leader_epoch=now.epoch, snapshot_id=common_pb2.OffsetAndEpoch()
    )
    return {
        "/quorum.v1.RaftService/Vote": [
            raft_pb2.VoteRequest(cluster_id=cluster, candidate=candidate, voter=voter,
                                 epoch=now.epoch + raised, last=end, pre_vote=not raised)
            for candidate in (stranger, *others) for voter in others for raised in (0, 1)
        ],
        "/quorum.v1.RaftService/BeginQuorumEpoch": [
            raft_pb2.BeginQuorumEpochRequest(cluster_id=cluster, leader=each, epoch=now.epoch + 1,
                                             leader_endpoints=place)
            for each in (leader, stranger)
        ],
        "/quorum.v1.RaftService/EndQuorumEpoch": [
            raft_pb2.EndQuorumEpochRequest(cluster_id=cluster, leader=leader, epoch=now.epoch,
                                           preferred_successors=others, leader_endpoints=place)
        ],
        "/quorum.v1.RaftService/Fetch": [
            raft_pb2.FetchRequest(cluster_id=cluster, current_leader_epoch=now.epoch,
                                  fetch_offset=now.offset, last_fetched_epoch=now.epoch,
                                  max_bytes=1000)
        ],
        "/quorum.v1.RaftService/FetchSnapshot": [snapshot],
        "/quorum.v1.RaftService/ChainDigest": [
            raft_pb2.ChainDigestRequest(cluster_id=cluster, epoch=now.epoch, offsets=[0, 1])
        ],
    }  # fmt: skip


def _admin_calls(cluster_state: ClusterState, read: Any, place: list[Any]) -> dict[str, list[Any]]:
    epoch = cluster_state.current.epoch
    strange = {"voter_id": STRANGER, "directory_id": b"s" * 16, "timeout_ms": 100}
    half_right = {"voter_id": cluster_state.leader_id, "directory_id": b"s" * 16, "timeout_ms": 100}
    return {
        "/quorum.v1.AdminService/DescribeCluster": [admin_pb2.DescribeClusterRequest(read=read)],
        "/quorum.v1.AdminService/DescribeQuorum": [admin_pb2.DescribeQuorumRequest()],
        "/quorum.v1.AdminService/DescribeFeatures": [admin_pb2.DescribeFeaturesRequest(read=read)],
        "/quorum.v1.AdminService/DescribeAcls": [
            admin_pb2.DescribeAclsRequest(read=read, filter=wire.AclFilter(pattern_type=2))
        ],
        "/quorum.v1.AdminService/DescribeUserScramCredentials": [
            admin_pb2.DescribeUserScramCredentialsRequest(read=read, users=["mutant"], limit=1)
        ],
        "/quorum.v1.AdminService/DescribeImage": [admin_pb2.DescribeImageRequest(read=read)],
        "/quorum.v1.AdminService/DeleteRecords": [
            admin_pb2.DeleteRecordsRequest(topic="__cluster_metadata", before_offset=1)
        ],
        "/quorum.v1.AdminService/CreateSnapshot": [admin_pb2.CreateSnapshotRequest(dry_run=True)],
        "/quorum.v1.AdminService/TransferLeadership": [
            admin_pb2.TransferLeadershipRequest(target_id=STRANGER, current_leader_epoch=epoch)
        ],
        "/quorum.v1.AdminService/AddVoter": [
            admin_pb2.AddVoterRequest(**each, endpoints=place) for each in (strange, half_right)
        ],
        "/quorum.v1.AdminService/RemoveVoter": [
            admin_pb2.RemoveVoterRequest(**each) for each in (strange, half_right)
        ],
        "/quorum.v1.AdminService/UpdateVoter": [
            admin_pb2.UpdateVoterRequest(**each, endpoints=place, current_leader_epoch=epoch)
            for each in (strange, half_right)
        ],
    }


def is_authorised(method: str, data: bytes, cluster_state: ClusterState) -> bool:
    """Return whether an operator may make this call, which may change the quorum or the log.

    Such calls are not sent: they may have the effects that a mutated call must not have.
    """
    kind = METHODS[method].input_type
    if kind.full_name not in _OPERATORS:
        return False
    try:
        message = kind._concrete_class.FromString(data)
    except Exception:
        return False
    if kind.name == "CreateSnapshotRequest":
        # It would let the log be trimmed, which the comparison at the end reads.
        return not message.dry_run
    if kind.name == "TransferLeadershipRequest":
        is_known = not message.HasField("target_id") or message.target_id in dict(
            cluster_state.voters
        )
        return is_known and message.current_leader_epoch in (-1, cluster_state.current.epoch)
    disk = dict(cluster_state.voters).get(message.voter_id)
    return disk is not None and message.directory_id in (b"", disk)


_OPERATORS = frozenset(
    f"quorum.v1.{name}Request"
    for name in ("CreateSnapshot", "TransferLeadership", "RemoveVoter", "UpdateVoter")
)
