from quorum.v1 import commands_pb2 as _commands_pb2
from quorum.v1 import common_pb2 as _common_pb2
from quorum.v1 import metadata_pb2 as _metadata_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DescribeClusterRequest(_message.Message):
    __slots__ = ("read",)
    READ_FIELD_NUMBER: _ClassVar[int]
    read: _metadata_pb2.ReadOptions
    def __init__(self, read: _Optional[_Union[_metadata_pb2.ReadOptions, _Mapping]] = ...) -> None: ...

class BrokerDescription(_message.Message):
    __slots__ = ("broker_id", "broker_epoch", "incarnation_id", "rack", "is_fenced", "is_in_controlled_shutdown", "listeners", "features", "log_dirs", "cordoned_log_dirs")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_ID_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    IS_FENCED_FIELD_NUMBER: _ClassVar[int]
    IS_IN_CONTROLLED_SHUTDOWN_FIELD_NUMBER: _ClassVar[int]
    LISTENERS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    LOG_DIRS_FIELD_NUMBER: _ClassVar[int]
    CORDONED_LOG_DIRS_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    incarnation_id: bytes
    rack: str
    is_fenced: bool
    is_in_controlled_shutdown: bool
    listeners: _containers.RepeatedCompositeFieldContainer[_commands_pb2.BrokerListener]
    features: _containers.RepeatedCompositeFieldContainer[_commands_pb2.SupportedFeature]
    log_dirs: _containers.RepeatedScalarFieldContainer[bytes]
    cordoned_log_dirs: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., incarnation_id: _Optional[bytes] = ..., rack: _Optional[str] = ..., is_fenced: bool = ..., is_in_controlled_shutdown: bool = ..., listeners: _Optional[_Iterable[_Union[_commands_pb2.BrokerListener, _Mapping]]] = ..., features: _Optional[_Iterable[_Union[_commands_pb2.SupportedFeature, _Mapping]]] = ..., log_dirs: _Optional[_Iterable[bytes]] = ..., cordoned_log_dirs: _Optional[_Iterable[bytes]] = ...) -> None: ...

class DescribeClusterResponse(_message.Message):
    __slots__ = ("position", "cluster_id", "leader_id", "leader_epoch", "brokers", "nodes", "log_incarnation")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    BROKERS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_FIELD_NUMBER: _ClassVar[int]
    position: _metadata_pb2.ReadPosition
    cluster_id: str
    leader_id: int
    leader_epoch: int
    brokers: _containers.RepeatedCompositeFieldContainer[BrokerDescription]
    nodes: _containers.RepeatedCompositeFieldContainer[QuorumNode]
    log_incarnation: bytes
    def __init__(self, position: _Optional[_Union[_metadata_pb2.ReadPosition, _Mapping]] = ..., cluster_id: _Optional[str] = ..., leader_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., brokers: _Optional[_Iterable[_Union[BrokerDescription, _Mapping]]] = ..., nodes: _Optional[_Iterable[_Union[QuorumNode, _Mapping]]] = ..., log_incarnation: _Optional[bytes] = ...) -> None: ...

class QuorumNode(_message.Message):
    __slots__ = ("node_id", "endpoints")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    endpoints: _containers.RepeatedCompositeFieldContainer[_common_pb2.Endpoint]
    def __init__(self, node_id: _Optional[int] = ..., endpoints: _Optional[_Iterable[_Union[_common_pb2.Endpoint, _Mapping]]] = ...) -> None: ...

class DescribeQuorumRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class QuorumReplica(_message.Message):
    __slots__ = ("replica_id", "directory_id", "log_end_offset", "last_fetch_timestamp_ms", "last_caught_up_timestamp_ms", "subtree_members", "subtree_low_offset", "compared_end_offset", "is_disqualified", "below", "is_subtree_low_provisional")
    REPLICA_ID_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    LOG_END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LAST_FETCH_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_CAUGHT_UP_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    SUBTREE_MEMBERS_FIELD_NUMBER: _ClassVar[int]
    SUBTREE_LOW_OFFSET_FIELD_NUMBER: _ClassVar[int]
    COMPARED_END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    IS_DISQUALIFIED_FIELD_NUMBER: _ClassVar[int]
    BELOW_FIELD_NUMBER: _ClassVar[int]
    IS_SUBTREE_LOW_PROVISIONAL_FIELD_NUMBER: _ClassVar[int]
    replica_id: int
    directory_id: bytes
    log_end_offset: int
    last_fetch_timestamp_ms: int
    last_caught_up_timestamp_ms: int
    subtree_members: int
    subtree_low_offset: int
    compared_end_offset: int
    is_disqualified: bool
    below: _containers.RepeatedCompositeFieldContainer[ObserverLink]
    is_subtree_low_provisional: bool
    def __init__(self, replica_id: _Optional[int] = ..., directory_id: _Optional[bytes] = ..., log_end_offset: _Optional[int] = ..., last_fetch_timestamp_ms: _Optional[int] = ..., last_caught_up_timestamp_ms: _Optional[int] = ..., subtree_members: _Optional[int] = ..., subtree_low_offset: _Optional[int] = ..., compared_end_offset: _Optional[int] = ..., is_disqualified: bool = ..., below: _Optional[_Iterable[_Union[ObserverLink, _Mapping]]] = ..., is_subtree_low_provisional: bool = ...) -> None: ...

class ObserverLink(_message.Message):
    __slots__ = ("observer_id", "fetches_from")
    OBSERVER_ID_FIELD_NUMBER: _ClassVar[int]
    FETCHES_FROM_FIELD_NUMBER: _ClassVar[int]
    observer_id: int
    fetches_from: int
    def __init__(self, observer_id: _Optional[int] = ..., fetches_from: _Optional[int] = ...) -> None: ...

class DescribeQuorumResponse(_message.Message):
    __slots__ = ("cluster_id", "leader_id", "leader_epoch", "high_watermark", "voters", "observers", "nodes", "node_id", "is_leader", "log_start_offset", "log_end_offset", "position", "directory_id", "own_endpoints", "timestamp_ms", "pending_change", "removed", "relay_path", "divergence_resolution", "check_quorum_ms", "relay_low_offset", "is_relay_low_provisional", "replay_stopped", "replicas_ahead", "log_incarnation", "log_incarnation_facts")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    VOTERS_FIELD_NUMBER: _ClassVar[int]
    OBSERVERS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    IS_LEADER_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LOG_END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    OWN_ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    PENDING_CHANGE_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    RELAY_PATH_FIELD_NUMBER: _ClassVar[int]
    DIVERGENCE_RESOLUTION_FIELD_NUMBER: _ClassVar[int]
    CHECK_QUORUM_MS_FIELD_NUMBER: _ClassVar[int]
    RELAY_LOW_OFFSET_FIELD_NUMBER: _ClassVar[int]
    IS_RELAY_LOW_PROVISIONAL_FIELD_NUMBER: _ClassVar[int]
    REPLAY_STOPPED_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_AHEAD_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_FACTS_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: _containers.RepeatedCompositeFieldContainer[QuorumReplica]
    observers: _containers.RepeatedCompositeFieldContainer[QuorumReplica]
    nodes: _containers.RepeatedCompositeFieldContainer[QuorumNode]
    node_id: int
    is_leader: bool
    log_start_offset: int
    log_end_offset: int
    position: _metadata_pb2.ReadPosition
    directory_id: bytes
    own_endpoints: _containers.RepeatedCompositeFieldContainer[_common_pb2.Endpoint]
    timestamp_ms: int
    pending_change: str
    removed: _containers.RepeatedCompositeFieldContainer[RemovedVoter]
    relay_path: _containers.RepeatedScalarFieldContainer[int]
    divergence_resolution: str
    check_quorum_ms: int
    relay_low_offset: int
    is_relay_low_provisional: bool
    replay_stopped: str
    replicas_ahead: _containers.RepeatedCompositeFieldContainer[ReplicaAhead]
    log_incarnation: bytes
    log_incarnation_facts: LogIncarnation
    def __init__(self, cluster_id: _Optional[str] = ..., leader_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., high_watermark: _Optional[int] = ..., voters: _Optional[_Iterable[_Union[QuorumReplica, _Mapping]]] = ..., observers: _Optional[_Iterable[_Union[QuorumReplica, _Mapping]]] = ..., nodes: _Optional[_Iterable[_Union[QuorumNode, _Mapping]]] = ..., node_id: _Optional[int] = ..., is_leader: bool = ..., log_start_offset: _Optional[int] = ..., log_end_offset: _Optional[int] = ..., position: _Optional[_Union[_metadata_pb2.ReadPosition, _Mapping]] = ..., directory_id: _Optional[bytes] = ..., own_endpoints: _Optional[_Iterable[_Union[_common_pb2.Endpoint, _Mapping]]] = ..., timestamp_ms: _Optional[int] = ..., pending_change: _Optional[str] = ..., removed: _Optional[_Iterable[_Union[RemovedVoter, _Mapping]]] = ..., relay_path: _Optional[_Iterable[int]] = ..., divergence_resolution: _Optional[str] = ..., check_quorum_ms: _Optional[int] = ..., relay_low_offset: _Optional[int] = ..., is_relay_low_provisional: bool = ..., replay_stopped: _Optional[str] = ..., replicas_ahead: _Optional[_Iterable[_Union[ReplicaAhead, _Mapping]]] = ..., log_incarnation: _Optional[bytes] = ..., log_incarnation_facts: _Optional[_Union[LogIncarnation, _Mapping]] = ...) -> None: ...

class LogIncarnation(_message.Message):
    __slots__ = ("number", "id", "previous_id", "kept_end_offset", "kept_end_epoch", "report_sha256")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_ID_FIELD_NUMBER: _ClassVar[int]
    KEPT_END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    KEPT_END_EPOCH_FIELD_NUMBER: _ClassVar[int]
    REPORT_SHA256_FIELD_NUMBER: _ClassVar[int]
    number: int
    id: bytes
    previous_id: bytes
    kept_end_offset: int
    kept_end_epoch: int
    report_sha256: bytes
    def __init__(self, number: _Optional[int] = ..., id: _Optional[bytes] = ..., previous_id: _Optional[bytes] = ..., kept_end_offset: _Optional[int] = ..., kept_end_epoch: _Optional[int] = ..., report_sha256: _Optional[bytes] = ...) -> None: ...

class ReplicaAhead(_message.Message):
    __slots__ = ("replica_id", "directory_id", "epoch", "is_brought_back")
    REPLICA_ID_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    IS_BROUGHT_BACK_FIELD_NUMBER: _ClassVar[int]
    replica_id: int
    directory_id: bytes
    epoch: int
    is_brought_back: bool
    def __init__(self, replica_id: _Optional[int] = ..., directory_id: _Optional[bytes] = ..., epoch: _Optional[int] = ..., is_brought_back: bool = ...) -> None: ...

class RemovedVoter(_message.Message):
    __slots__ = ("node_id", "directory_id")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    directory_id: bytes
    def __init__(self, node_id: _Optional[int] = ..., directory_id: _Optional[bytes] = ...) -> None: ...

class DescribeFeaturesRequest(_message.Message):
    __slots__ = ("read",)
    READ_FIELD_NUMBER: _ClassVar[int]
    read: _metadata_pb2.ReadOptions
    def __init__(self, read: _Optional[_Union[_metadata_pb2.ReadOptions, _Mapping]] = ...) -> None: ...

class FeatureDescription(_message.Message):
    __slots__ = ("name", "supported_min", "supported_max", "finalized_level")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SUPPORTED_MIN_FIELD_NUMBER: _ClassVar[int]
    SUPPORTED_MAX_FIELD_NUMBER: _ClassVar[int]
    FINALIZED_LEVEL_FIELD_NUMBER: _ClassVar[int]
    name: str
    supported_min: int
    supported_max: int
    finalized_level: int
    def __init__(self, name: _Optional[str] = ..., supported_min: _Optional[int] = ..., supported_max: _Optional[int] = ..., finalized_level: _Optional[int] = ...) -> None: ...

class DescribeFeaturesResponse(_message.Message):
    __slots__ = ("position", "features")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    position: _metadata_pb2.ReadPosition
    features: _containers.RepeatedCompositeFieldContainer[FeatureDescription]
    def __init__(self, position: _Optional[_Union[_metadata_pb2.ReadPosition, _Mapping]] = ..., features: _Optional[_Iterable[_Union[FeatureDescription, _Mapping]]] = ...) -> None: ...

class DescribeImageRequest(_message.Message):
    __slots__ = ("read",)
    READ_FIELD_NUMBER: _ClassVar[int]
    read: _metadata_pb2.ReadOptions
    def __init__(self, read: _Optional[_Union[_metadata_pb2.ReadOptions, _Mapping]] = ...) -> None: ...

class DescribeImageResponse(_message.Message):
    __slots__ = ("position", "state_digest", "record_count", "import_status")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    STATE_DIGEST_FIELD_NUMBER: _ClassVar[int]
    RECORD_COUNT_FIELD_NUMBER: _ClassVar[int]
    IMPORT_STATUS_FIELD_NUMBER: _ClassVar[int]
    position: _metadata_pb2.ReadPosition
    state_digest: bytes
    record_count: int
    import_status: ImportStatus
    def __init__(self, position: _Optional[_Union[_metadata_pb2.ReadPosition, _Mapping]] = ..., state_digest: _Optional[bytes] = ..., record_count: _Optional[int] = ..., import_status: _Optional[_Union[ImportStatus, _Mapping]] = ...) -> None: ...

class ImportStatus(_message.Message):
    __slots__ = ("source_cluster_id", "checkpoint_offset", "position", "is_finished")
    SOURCE_CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    IS_FINISHED_FIELD_NUMBER: _ClassVar[int]
    source_cluster_id: str
    checkpoint_offset: int
    position: _commands_pb2.SourcePosition
    is_finished: bool
    def __init__(self, source_cluster_id: _Optional[str] = ..., checkpoint_offset: _Optional[int] = ..., position: _Optional[_Union[_commands_pb2.SourcePosition, _Mapping]] = ..., is_finished: bool = ...) -> None: ...

class DeleteRecordsRequest(_message.Message):
    __slots__ = ("topic", "partition", "before_offset")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    BEFORE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    before_offset: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., before_offset: _Optional[int] = ...) -> None: ...

class DeleteRecordsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CreateSnapshotRequest(_message.Message):
    __slots__ = ("dry_run", "reason")
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    dry_run: bool
    reason: str
    def __init__(self, dry_run: bool = ..., reason: _Optional[str] = ...) -> None: ...

class CreateSnapshotResponse(_message.Message):
    __slots__ = ("node_id", "end_offset", "epoch", "size_bytes", "is_new")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    IS_NEW_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    end_offset: int
    epoch: int
    size_bytes: int
    is_new: bool
    def __init__(self, node_id: _Optional[int] = ..., end_offset: _Optional[int] = ..., epoch: _Optional[int] = ..., size_bytes: _Optional[int] = ..., is_new: bool = ...) -> None: ...

class TransferLeadershipRequest(_message.Message):
    __slots__ = ("target_id", "current_leader_epoch", "reason")
    TARGET_ID_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    target_id: int
    current_leader_epoch: int
    reason: str
    def __init__(self, target_id: _Optional[int] = ..., current_leader_epoch: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class TransferLeadershipResponse(_message.Message):
    __slots__ = ("leader_id", "leader_epoch")
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    leader_id: int
    leader_epoch: int
    def __init__(self, leader_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ...) -> None: ...

class AddVoterRequest(_message.Message):
    __slots__ = ("voter_id", "directory_id", "endpoints", "readmit", "answer_on_append", "timeout_ms", "min_version", "max_version", "reason")
    VOTER_ID_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    READMIT_FIELD_NUMBER: _ClassVar[int]
    ANSWER_ON_APPEND_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    MIN_VERSION_FIELD_NUMBER: _ClassVar[int]
    MAX_VERSION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    voter_id: int
    directory_id: bytes
    endpoints: _containers.RepeatedCompositeFieldContainer[_common_pb2.Endpoint]
    readmit: bool
    answer_on_append: bool
    timeout_ms: int
    min_version: int
    max_version: int
    reason: str
    def __init__(self, voter_id: _Optional[int] = ..., directory_id: _Optional[bytes] = ..., endpoints: _Optional[_Iterable[_Union[_common_pb2.Endpoint, _Mapping]]] = ..., readmit: bool = ..., answer_on_append: bool = ..., timeout_ms: _Optional[int] = ..., min_version: _Optional[int] = ..., max_version: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class RemoveVoterRequest(_message.Message):
    __slots__ = ("voter_id", "directory_id", "timeout_ms", "reason")
    VOTER_ID_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    voter_id: int
    directory_id: bytes
    timeout_ms: int
    reason: str
    def __init__(self, voter_id: _Optional[int] = ..., directory_id: _Optional[bytes] = ..., timeout_ms: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class UpdateVoterRequest(_message.Message):
    __slots__ = ("voter_id", "directory_id", "endpoints", "timeout_ms", "min_version", "max_version", "current_leader_epoch", "reason")
    VOTER_ID_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    MIN_VERSION_FIELD_NUMBER: _ClassVar[int]
    MAX_VERSION_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    voter_id: int
    directory_id: bytes
    endpoints: _containers.RepeatedCompositeFieldContainer[_common_pb2.Endpoint]
    timeout_ms: int
    min_version: int
    max_version: int
    current_leader_epoch: int
    reason: str
    def __init__(self, voter_id: _Optional[int] = ..., directory_id: _Optional[bytes] = ..., endpoints: _Optional[_Iterable[_Union[_common_pb2.Endpoint, _Mapping]]] = ..., timeout_ms: _Optional[int] = ..., min_version: _Optional[int] = ..., max_version: _Optional[int] = ..., current_leader_epoch: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class AddVoterResponse(_message.Message):
    __slots__ = ("offset", "leader_epoch")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    offset: int
    leader_epoch: int
    def __init__(self, offset: _Optional[int] = ..., leader_epoch: _Optional[int] = ...) -> None: ...

class RemoveVoterResponse(_message.Message):
    __slots__ = ("offset", "leader_epoch")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    offset: int
    leader_epoch: int
    def __init__(self, offset: _Optional[int] = ..., leader_epoch: _Optional[int] = ...) -> None: ...

class UpdateVoterResponse(_message.Message):
    __slots__ = ("offset", "leader_epoch")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    offset: int
    leader_epoch: int
    def __init__(self, offset: _Optional[int] = ..., leader_epoch: _Optional[int] = ...) -> None: ...

class DescribeAclsRequest(_message.Message):
    __slots__ = ("read", "filter")
    READ_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    read: _metadata_pb2.ReadOptions
    filter: _commands_pb2.AclFilter
    def __init__(self, read: _Optional[_Union[_metadata_pb2.ReadOptions, _Mapping]] = ..., filter: _Optional[_Union[_commands_pb2.AclFilter, _Mapping]] = ...) -> None: ...

class DescribeAclsResponse(_message.Message):
    __slots__ = ("position", "entries", "is_enforced")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    IS_ENFORCED_FIELD_NUMBER: _ClassVar[int]
    position: _metadata_pb2.ReadPosition
    entries: _containers.RepeatedCompositeFieldContainer[_commands_pb2.AclEntry]
    is_enforced: bool
    def __init__(self, position: _Optional[_Union[_metadata_pb2.ReadPosition, _Mapping]] = ..., entries: _Optional[_Iterable[_Union[_commands_pb2.AclEntry, _Mapping]]] = ..., is_enforced: bool = ...) -> None: ...

class DescribeUserScramCredentialsRequest(_message.Message):
    __slots__ = ("read", "users", "after_name", "limit")
    READ_FIELD_NUMBER: _ClassVar[int]
    USERS_FIELD_NUMBER: _ClassVar[int]
    AFTER_NAME_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    read: _metadata_pb2.ReadOptions
    users: _containers.RepeatedScalarFieldContainer[str]
    after_name: str
    limit: int
    def __init__(self, read: _Optional[_Union[_metadata_pb2.ReadOptions, _Mapping]] = ..., users: _Optional[_Iterable[str]] = ..., after_name: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ScramCredentialInfo(_message.Message):
    __slots__ = ("mechanism", "iterations")
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    mechanism: _commands_pb2.ScramMechanism
    iterations: int
    def __init__(self, mechanism: _Optional[_Union[_commands_pb2.ScramMechanism, str]] = ..., iterations: _Optional[int] = ...) -> None: ...

class ScramUser(_message.Message):
    __slots__ = ("name", "credentials", "error_code")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CREDENTIALS_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    name: str
    credentials: _containers.RepeatedCompositeFieldContainer[ScramCredentialInfo]
    error_code: _common_pb2.ErrorCode
    def __init__(self, name: _Optional[str] = ..., credentials: _Optional[_Iterable[_Union[ScramCredentialInfo, _Mapping]]] = ..., error_code: _Optional[_Union[_common_pb2.ErrorCode, str]] = ...) -> None: ...

class DescribeUserScramCredentialsResponse(_message.Message):
    __slots__ = ("position", "users", "has_more")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    USERS_FIELD_NUMBER: _ClassVar[int]
    HAS_MORE_FIELD_NUMBER: _ClassVar[int]
    position: _metadata_pb2.ReadPosition
    users: _containers.RepeatedCompositeFieldContainer[ScramUser]
    has_more: bool
    def __init__(self, position: _Optional[_Union[_metadata_pb2.ReadPosition, _Mapping]] = ..., users: _Optional[_Iterable[_Union[ScramUser, _Mapping]]] = ..., has_more: bool = ...) -> None: ...
