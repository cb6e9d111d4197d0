from quorum.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ConfigResourceType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONFIG_RESOURCE_TYPE_UNSPECIFIED: _ClassVar[ConfigResourceType]
    CONFIG_RESOURCE_TYPE_TOPIC: _ClassVar[ConfigResourceType]
    CONFIG_RESOURCE_TYPE_BROKER: _ClassVar[ConfigResourceType]
    CONFIG_RESOURCE_TYPE_BROKER_LOGGER: _ClassVar[ConfigResourceType]
    CONFIG_RESOURCE_TYPE_CLIENT_METRICS: _ClassVar[ConfigResourceType]
    CONFIG_RESOURCE_TYPE_GROUP: _ClassVar[ConfigResourceType]

class ConfigOperation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONFIG_OPERATION_UNSPECIFIED: _ClassVar[ConfigOperation]
    CONFIG_OPERATION_SET: _ClassVar[ConfigOperation]
    CONFIG_OPERATION_DELETE: _ClassVar[ConfigOperation]
    CONFIG_OPERATION_APPEND: _ClassVar[ConfigOperation]
    CONFIG_OPERATION_SUBTRACT: _ClassVar[ConfigOperation]

class FeatureUpgradeType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FEATURE_UPGRADE_TYPE_UNSPECIFIED: _ClassVar[FeatureUpgradeType]
    FEATURE_UPGRADE_TYPE_UPGRADE: _ClassVar[FeatureUpgradeType]
    FEATURE_UPGRADE_TYPE_SAFE_DOWNGRADE: _ClassVar[FeatureUpgradeType]
    FEATURE_UPGRADE_TYPE_UNSAFE_DOWNGRADE: _ClassVar[FeatureUpgradeType]

class ElectionType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ELECTION_TYPE_UNSPECIFIED: _ClassVar[ElectionType]
    ELECTION_TYPE_PREFERRED: _ClassVar[ElectionType]
    ELECTION_TYPE_UNCLEAN: _ClassVar[ElectionType]

class AclResourceType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACL_RESOURCE_TYPE_UNSPECIFIED: _ClassVar[AclResourceType]
    ACL_RESOURCE_TYPE_ANY: _ClassVar[AclResourceType]
    ACL_RESOURCE_TYPE_TOPIC: _ClassVar[AclResourceType]
    ACL_RESOURCE_TYPE_GROUP: _ClassVar[AclResourceType]
    ACL_RESOURCE_TYPE_CLUSTER: _ClassVar[AclResourceType]
    ACL_RESOURCE_TYPE_TRANSACTIONAL_ID: _ClassVar[AclResourceType]
    ACL_RESOURCE_TYPE_DELEGATION_TOKEN: _ClassVar[AclResourceType]
    ACL_RESOURCE_TYPE_USER: _ClassVar[AclResourceType]

class AclPatternType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACL_PATTERN_TYPE_UNSPECIFIED: _ClassVar[AclPatternType]
    ACL_PATTERN_TYPE_ANY: _ClassVar[AclPatternType]
    ACL_PATTERN_TYPE_MATCH: _ClassVar[AclPatternType]
    ACL_PATTERN_TYPE_LITERAL: _ClassVar[AclPatternType]
    ACL_PATTERN_TYPE_PREFIXED: _ClassVar[AclPatternType]

class AclOperation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACL_OPERATION_UNSPECIFIED: _ClassVar[AclOperation]
    ACL_OPERATION_ANY: _ClassVar[AclOperation]
    ACL_OPERATION_ALL: _ClassVar[AclOperation]
    ACL_OPERATION_READ: _ClassVar[AclOperation]
    ACL_OPERATION_WRITE: _ClassVar[AclOperation]
    ACL_OPERATION_CREATE: _ClassVar[AclOperation]
    ACL_OPERATION_DELETE: _ClassVar[AclOperation]
    ACL_OPERATION_ALTER: _ClassVar[AclOperation]
    ACL_OPERATION_DESCRIBE: _ClassVar[AclOperation]
    ACL_OPERATION_CLUSTER_ACTION: _ClassVar[AclOperation]
    ACL_OPERATION_DESCRIBE_CONFIGS: _ClassVar[AclOperation]
    ACL_OPERATION_ALTER_CONFIGS: _ClassVar[AclOperation]
    ACL_OPERATION_IDEMPOTENT_WRITE: _ClassVar[AclOperation]
    ACL_OPERATION_CREATE_TOKENS: _ClassVar[AclOperation]
    ACL_OPERATION_DESCRIBE_TOKENS: _ClassVar[AclOperation]
    ACL_OPERATION_TWO_PHASE_COMMIT: _ClassVar[AclOperation]

class AclPermissionType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACL_PERMISSION_TYPE_UNSPECIFIED: _ClassVar[AclPermissionType]
    ACL_PERMISSION_TYPE_ANY: _ClassVar[AclPermissionType]
    ACL_PERMISSION_TYPE_DENY: _ClassVar[AclPermissionType]
    ACL_PERMISSION_TYPE_ALLOW: _ClassVar[AclPermissionType]

class ScramMechanism(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SCRAM_MECHANISM_UNSPECIFIED: _ClassVar[ScramMechanism]
    SCRAM_MECHANISM_SHA_256: _ClassVar[ScramMechanism]
    SCRAM_MECHANISM_SHA_512: _ClassVar[ScramMechanism]
CONFIG_RESOURCE_TYPE_UNSPECIFIED: ConfigResourceType
CONFIG_RESOURCE_TYPE_TOPIC: ConfigResourceType
CONFIG_RESOURCE_TYPE_BROKER: ConfigResourceType
CONFIG_RESOURCE_TYPE_BROKER_LOGGER: ConfigResourceType
CONFIG_RESOURCE_TYPE_CLIENT_METRICS: ConfigResourceType
CONFIG_RESOURCE_TYPE_GROUP: ConfigResourceType
CONFIG_OPERATION_UNSPECIFIED: ConfigOperation
CONFIG_OPERATION_SET: ConfigOperation
CONFIG_OPERATION_DELETE: ConfigOperation
CONFIG_OPERATION_APPEND: ConfigOperation
CONFIG_OPERATION_SUBTRACT: ConfigOperation
FEATURE_UPGRADE_TYPE_UNSPECIFIED: FeatureUpgradeType
FEATURE_UPGRADE_TYPE_UPGRADE: FeatureUpgradeType
FEATURE_UPGRADE_TYPE_SAFE_DOWNGRADE: FeatureUpgradeType
FEATURE_UPGRADE_TYPE_UNSAFE_DOWNGRADE: FeatureUpgradeType
ELECTION_TYPE_UNSPECIFIED: ElectionType
ELECTION_TYPE_PREFERRED: ElectionType
ELECTION_TYPE_UNCLEAN: ElectionType
ACL_RESOURCE_TYPE_UNSPECIFIED: AclResourceType
ACL_RESOURCE_TYPE_ANY: AclResourceType
ACL_RESOURCE_TYPE_TOPIC: AclResourceType
ACL_RESOURCE_TYPE_GROUP: AclResourceType
ACL_RESOURCE_TYPE_CLUSTER: AclResourceType
ACL_RESOURCE_TYPE_TRANSACTIONAL_ID: AclResourceType
ACL_RESOURCE_TYPE_DELEGATION_TOKEN: AclResourceType
ACL_RESOURCE_TYPE_USER: AclResourceType
ACL_PATTERN_TYPE_UNSPECIFIED: AclPatternType
ACL_PATTERN_TYPE_ANY: AclPatternType
ACL_PATTERN_TYPE_MATCH: AclPatternType
ACL_PATTERN_TYPE_LITERAL: AclPatternType
ACL_PATTERN_TYPE_PREFIXED: AclPatternType
ACL_OPERATION_UNSPECIFIED: AclOperation
ACL_OPERATION_ANY: AclOperation
ACL_OPERATION_ALL: AclOperation
ACL_OPERATION_READ: AclOperation
ACL_OPERATION_WRITE: AclOperation
ACL_OPERATION_CREATE: AclOperation
ACL_OPERATION_DELETE: AclOperation
ACL_OPERATION_ALTER: AclOperation
ACL_OPERATION_DESCRIBE: AclOperation
ACL_OPERATION_CLUSTER_ACTION: AclOperation
ACL_OPERATION_DESCRIBE_CONFIGS: AclOperation
ACL_OPERATION_ALTER_CONFIGS: AclOperation
ACL_OPERATION_IDEMPOTENT_WRITE: AclOperation
ACL_OPERATION_CREATE_TOKENS: AclOperation
ACL_OPERATION_DESCRIBE_TOKENS: AclOperation
ACL_OPERATION_TWO_PHASE_COMMIT: AclOperation
ACL_PERMISSION_TYPE_UNSPECIFIED: AclPermissionType
ACL_PERMISSION_TYPE_ANY: AclPermissionType
ACL_PERMISSION_TYPE_DENY: AclPermissionType
ACL_PERMISSION_TYPE_ALLOW: AclPermissionType
SCRAM_MECHANISM_UNSPECIFIED: ScramMechanism
SCRAM_MECHANISM_SHA_256: ScramMechanism
SCRAM_MECHANISM_SHA_512: ScramMechanism

class Command(_message.Message):
    __slots__ = ("tag", "sequence", "origin", "is_repeat", "with_position", "incremental_alter_configs", "broker_heartbeat", "alter_partition", "create_topic", "delete_topic", "create_partitions", "register_broker", "unregister_broker", "update_features", "allocate_producer_ids", "init_producer_id", "elect_leaders", "import_batch", "create_acls", "delete_acls", "commit_position", "alter_user_scram_credentials", "cordon_log_dirs", "assign_replicas_to_dirs")
    TAG_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    IS_REPEAT_FIELD_NUMBER: _ClassVar[int]
    WITH_POSITION_FIELD_NUMBER: _ClassVar[int]
    INCREMENTAL_ALTER_CONFIGS_FIELD_NUMBER: _ClassVar[int]
    BROKER_HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    ALTER_PARTITION_FIELD_NUMBER: _ClassVar[int]
    CREATE_TOPIC_FIELD_NUMBER: _ClassVar[int]
    DELETE_TOPIC_FIELD_NUMBER: _ClassVar[int]
    CREATE_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    REGISTER_BROKER_FIELD_NUMBER: _ClassVar[int]
    UNREGISTER_BROKER_FIELD_NUMBER: _ClassVar[int]
    UPDATE_FEATURES_FIELD_NUMBER: _ClassVar[int]
    ALLOCATE_PRODUCER_IDS_FIELD_NUMBER: _ClassVar[int]
    INIT_PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    ELECT_LEADERS_FIELD_NUMBER: _ClassVar[int]
    IMPORT_BATCH_FIELD_NUMBER: _ClassVar[int]
    CREATE_ACLS_FIELD_NUMBER: _ClassVar[int]
    DELETE_ACLS_FIELD_NUMBER: _ClassVar[int]
    COMMIT_POSITION_FIELD_NUMBER: _ClassVar[int]
    ALTER_USER_SCRAM_CREDENTIALS_FIELD_NUMBER: _ClassVar[int]
    CORDON_LOG_DIRS_FIELD_NUMBER: _ClassVar[int]
    ASSIGN_REPLICAS_TO_DIRS_FIELD_NUMBER: _ClassVar[int]
    tag: int
    sequence: int
    origin: CommandOrigin
    is_repeat: bool
    with_position: CommitPosition
    incremental_alter_configs: IncrementalAlterConfigs
    broker_heartbeat: BrokerHeartbeat
    alter_partition: AlterPartition
    create_topic: CreateTopic
    delete_topic: DeleteTopic
    create_partitions: CreatePartitions
    register_broker: RegisterBroker
    unregister_broker: UnregisterBroker
    update_features: UpdateFeatures
    allocate_producer_ids: AllocateProducerIds
    init_producer_id: InitProducerId
    elect_leaders: ElectLeaders
    import_batch: ImportBatch
    create_acls: CreateAcls
    delete_acls: DeleteAcls
    commit_position: CommitPosition
    alter_user_scram_credentials: AlterUserScramCredentials
    cordon_log_dirs: CordonLogDirs
    assign_replicas_to_dirs: AssignReplicasToDirs
    def __init__(self, tag: _Optional[int] = ..., sequence: _Optional[int] = ..., origin: _Optional[_Union[CommandOrigin, _Mapping]] = ..., is_repeat: bool = ..., with_position: _Optional[_Union[CommitPosition, _Mapping]] = ..., incremental_alter_configs: _Optional[_Union[IncrementalAlterConfigs, _Mapping]] = ..., broker_heartbeat: _Optional[_Union[BrokerHeartbeat, _Mapping]] = ..., alter_partition: _Optional[_Union[AlterPartition, _Mapping]] = ..., create_topic: _Optional[_Union[CreateTopic, _Mapping]] = ..., delete_topic: _Optional[_Union[DeleteTopic, _Mapping]] = ..., create_partitions: _Optional[_Union[CreatePartitions, _Mapping]] = ..., register_broker: _Optional[_Union[RegisterBroker, _Mapping]] = ..., unregister_broker: _Optional[_Union[UnregisterBroker, _Mapping]] = ..., update_features: _Optional[_Union[UpdateFeatures, _Mapping]] = ..., allocate_producer_ids: _Optional[_Union[AllocateProducerIds, _Mapping]] = ..., init_producer_id: _Optional[_Union[InitProducerId, _Mapping]] = ..., elect_leaders: _Optional[_Union[ElectLeaders, _Mapping]] = ..., import_batch: _Optional[_Union[ImportBatch, _Mapping]] = ..., create_acls: _Optional[_Union[CreateAcls, _Mapping]] = ..., delete_acls: _Optional[_Union[DeleteAcls, _Mapping]] = ..., commit_position: _Optional[_Union[CommitPosition, _Mapping]] = ..., alter_user_scram_credentials: _Optional[_Union[AlterUserScramCredentials, _Mapping]] = ..., cordon_log_dirs: _Optional[_Union[CordonLogDirs, _Mapping]] = ..., assign_replicas_to_dirs: _Optional[_Union[AssignReplicasToDirs, _Mapping]] = ...) -> None: ...

class CommandOrigin(_message.Message):
    __slots__ = ("request_id", "reason", "traceparent")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    reason: str
    traceparent: str
    def __init__(self, request_id: _Optional[str] = ..., reason: _Optional[str] = ..., traceparent: _Optional[str] = ...) -> None: ...

class ConfigAlteration(_message.Message):
    __slots__ = ("name", "operation", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    operation: ConfigOperation
    value: str
    def __init__(self, name: _Optional[str] = ..., operation: _Optional[_Union[ConfigOperation, str]] = ..., value: _Optional[str] = ...) -> None: ...

class IncrementalAlterConfigs(_message.Message):
    __slots__ = ("resource_type", "resource_name", "alterations", "dry_run")
    RESOURCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_NAME_FIELD_NUMBER: _ClassVar[int]
    ALTERATIONS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    resource_type: ConfigResourceType
    resource_name: str
    alterations: _containers.RepeatedCompositeFieldContainer[ConfigAlteration]
    dry_run: bool
    def __init__(self, resource_type: _Optional[_Union[ConfigResourceType, str]] = ..., resource_name: _Optional[str] = ..., alterations: _Optional[_Iterable[_Union[ConfigAlteration, _Mapping]]] = ..., dry_run: bool = ...) -> None: ...

class ReplicaAssignment(_message.Message):
    __slots__ = ("partition", "broker_ids")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    BROKER_IDS_FIELD_NUMBER: _ClassVar[int]
    partition: int
    broker_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, partition: _Optional[int] = ..., broker_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class TopicConfig(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class CreateTopic(_message.Message):
    __slots__ = ("name", "partition_count", "replication_factor", "assignments", "configs", "dry_run")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITION_COUNT_FIELD_NUMBER: _ClassVar[int]
    REPLICATION_FACTOR_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    CONFIGS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    name: str
    partition_count: int
    replication_factor: int
    assignments: _containers.RepeatedCompositeFieldContainer[ReplicaAssignment]
    configs: _containers.RepeatedCompositeFieldContainer[TopicConfig]
    dry_run: bool
    def __init__(self, name: _Optional[str] = ..., partition_count: _Optional[int] = ..., replication_factor: _Optional[int] = ..., assignments: _Optional[_Iterable[_Union[ReplicaAssignment, _Mapping]]] = ..., configs: _Optional[_Iterable[_Union[TopicConfig, _Mapping]]] = ..., dry_run: bool = ...) -> None: ...

class CreateTopicResult(_message.Message):
    __slots__ = ("topic_id", "partition_count", "replication_factor")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_COUNT_FIELD_NUMBER: _ClassVar[int]
    REPLICATION_FACTOR_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    partition_count: int
    replication_factor: int
    def __init__(self, topic_id: _Optional[bytes] = ..., partition_count: _Optional[int] = ..., replication_factor: _Optional[int] = ...) -> None: ...

class DeleteTopic(_message.Message):
    __slots__ = ("name", "topic_id", "dry_run")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    name: str
    topic_id: bytes
    dry_run: bool
    def __init__(self, name: _Optional[str] = ..., topic_id: _Optional[bytes] = ..., dry_run: bool = ...) -> None: ...

class DeleteTopicResult(_message.Message):
    __slots__ = ("topic_id", "name")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    name: str
    def __init__(self, topic_id: _Optional[bytes] = ..., name: _Optional[str] = ...) -> None: ...

class CreatePartitions(_message.Message):
    __slots__ = ("topic_name", "partition_count", "assignments", "dry_run")
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITION_COUNT_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    topic_name: str
    partition_count: int
    assignments: _containers.RepeatedCompositeFieldContainer[ReplicaAssignment]
    dry_run: bool
    def __init__(self, topic_name: _Optional[str] = ..., partition_count: _Optional[int] = ..., assignments: _Optional[_Iterable[_Union[ReplicaAssignment, _Mapping]]] = ..., dry_run: bool = ...) -> None: ...

class CreatePartitionsResult(_message.Message):
    __slots__ = ("topic_id", "partition_count")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_COUNT_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    partition_count: int
    def __init__(self, topic_id: _Optional[bytes] = ..., partition_count: _Optional[int] = ...) -> None: ...

class IsrMember(_message.Message):
    __slots__ = ("broker_id", "broker_epoch")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ...) -> None: ...

class PartitionAlteration(_message.Message):
    __slots__ = ("partition", "leader_epoch", "partition_epoch", "isr", "leader_recovery_state")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ISR_FIELD_NUMBER: _ClassVar[int]
    LEADER_RECOVERY_STATE_FIELD_NUMBER: _ClassVar[int]
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: _containers.RepeatedCompositeFieldContainer[IsrMember]
    leader_recovery_state: int
    def __init__(self, partition: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., partition_epoch: _Optional[int] = ..., isr: _Optional[_Iterable[_Union[IsrMember, _Mapping]]] = ..., leader_recovery_state: _Optional[int] = ...) -> None: ...

class TopicAlteration(_message.Message):
    __slots__ = ("topic_id", "partitions")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionAlteration]
    def __init__(self, topic_id: _Optional[bytes] = ..., partitions: _Optional[_Iterable[_Union[PartitionAlteration, _Mapping]]] = ...) -> None: ...

class AlterPartition(_message.Message):
    __slots__ = ("broker_id", "broker_epoch", "topics", "dry_run")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    topics: _containers.RepeatedCompositeFieldContainer[TopicAlteration]
    dry_run: bool
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., topics: _Optional[_Iterable[_Union[TopicAlteration, _Mapping]]] = ..., dry_run: bool = ...) -> None: ...

class PartitionAlterationResult(_message.Message):
    __slots__ = ("partition", "error_code", "leader_id", "leader_epoch", "isr", "leader_recovery_state", "partition_epoch")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ISR_FIELD_NUMBER: _ClassVar[int]
    LEADER_RECOVERY_STATE_FIELD_NUMBER: _ClassVar[int]
    PARTITION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    partition: int
    error_code: _common_pb2.ErrorCode
    leader_id: int
    leader_epoch: int
    isr: _containers.RepeatedScalarFieldContainer[int]
    leader_recovery_state: int
    partition_epoch: int
    def __init__(self, partition: _Optional[int] = ..., error_code: _Optional[_Union[_common_pb2.ErrorCode, str]] = ..., leader_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., isr: _Optional[_Iterable[int]] = ..., leader_recovery_state: _Optional[int] = ..., partition_epoch: _Optional[int] = ...) -> None: ...

class TopicAlterationResult(_message.Message):
    __slots__ = ("topic_id", "partitions")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionAlterationResult]
    def __init__(self, topic_id: _Optional[bytes] = ..., partitions: _Optional[_Iterable[_Union[PartitionAlterationResult, _Mapping]]] = ...) -> None: ...

class AlterPartitionResult(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[TopicAlterationResult]
    def __init__(self, topics: _Optional[_Iterable[_Union[TopicAlterationResult, _Mapping]]] = ...) -> None: ...

class BrokerListener(_message.Message):
    __slots__ = ("name", "host", "port", "security_protocol")
    NAME_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    SECURITY_PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    name: str
    host: str
    port: int
    security_protocol: int
    def __init__(self, name: _Optional[str] = ..., host: _Optional[str] = ..., port: _Optional[int] = ..., security_protocol: _Optional[int] = ...) -> None: ...

class SupportedFeature(_message.Message):
    __slots__ = ("name", "min_version", "max_version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MIN_VERSION_FIELD_NUMBER: _ClassVar[int]
    MAX_VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    min_version: int
    max_version: int
    def __init__(self, name: _Optional[str] = ..., min_version: _Optional[int] = ..., max_version: _Optional[int] = ...) -> None: ...

class RegisterBroker(_message.Message):
    __slots__ = ("broker_id", "cluster_id", "incarnation_id", "listeners", "features", "rack", "log_dirs", "previous_broker_epoch", "dry_run", "cordoned_log_dirs")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_ID_FIELD_NUMBER: _ClassVar[int]
    LISTENERS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    LOG_DIRS_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    CORDONED_LOG_DIRS_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    cluster_id: str
    incarnation_id: bytes
    listeners: _containers.RepeatedCompositeFieldContainer[BrokerListener]
    features: _containers.RepeatedCompositeFieldContainer[SupportedFeature]
    rack: str
    log_dirs: _containers.RepeatedScalarFieldContainer[bytes]
    previous_broker_epoch: int
    dry_run: bool
    cordoned_log_dirs: LogDirectories
    def __init__(self, broker_id: _Optional[int] = ..., cluster_id: _Optional[str] = ..., incarnation_id: _Optional[bytes] = ..., listeners: _Optional[_Iterable[_Union[BrokerListener, _Mapping]]] = ..., features: _Optional[_Iterable[_Union[SupportedFeature, _Mapping]]] = ..., rack: _Optional[str] = ..., log_dirs: _Optional[_Iterable[bytes]] = ..., previous_broker_epoch: _Optional[int] = ..., dry_run: bool = ..., cordoned_log_dirs: _Optional[_Union[LogDirectories, _Mapping]] = ...) -> None: ...

class LogDirectories(_message.Message):
    __slots__ = ("log_dirs",)
    LOG_DIRS_FIELD_NUMBER: _ClassVar[int]
    log_dirs: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, log_dirs: _Optional[_Iterable[bytes]] = ...) -> None: ...

class RegisterBrokerResult(_message.Message):
    __slots__ = ("broker_epoch",)
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    broker_epoch: int
    def __init__(self, broker_epoch: _Optional[int] = ...) -> None: ...

class BrokerHeartbeat(_message.Message):
    __slots__ = ("broker_id", "broker_epoch", "metadata_offset", "want_fence", "want_shut_down", "offline_log_dirs", "dry_run", "cordoned_log_dirs")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    METADATA_OFFSET_FIELD_NUMBER: _ClassVar[int]
    WANT_FENCE_FIELD_NUMBER: _ClassVar[int]
    WANT_SHUT_DOWN_FIELD_NUMBER: _ClassVar[int]
    OFFLINE_LOG_DIRS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    CORDONED_LOG_DIRS_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    metadata_offset: int
    want_fence: bool
    want_shut_down: bool
    offline_log_dirs: _containers.RepeatedScalarFieldContainer[bytes]
    dry_run: bool
    cordoned_log_dirs: LogDirectories
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., metadata_offset: _Optional[int] = ..., want_fence: bool = ..., want_shut_down: bool = ..., offline_log_dirs: _Optional[_Iterable[bytes]] = ..., dry_run: bool = ..., cordoned_log_dirs: _Optional[_Union[LogDirectories, _Mapping]] = ...) -> None: ...

class BrokerHeartbeatResult(_message.Message):
    __slots__ = ("is_caught_up", "is_fenced", "should_shut_down")
    IS_CAUGHT_UP_FIELD_NUMBER: _ClassVar[int]
    IS_FENCED_FIELD_NUMBER: _ClassVar[int]
    SHOULD_SHUT_DOWN_FIELD_NUMBER: _ClassVar[int]
    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool
    def __init__(self, is_caught_up: bool = ..., is_fenced: bool = ..., should_shut_down: bool = ...) -> None: ...

class UnregisterBroker(_message.Message):
    __slots__ = ("broker_id", "dry_run")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    dry_run: bool
    def __init__(self, broker_id: _Optional[int] = ..., dry_run: bool = ...) -> None: ...

class CordonLogDirs(_message.Message):
    __slots__ = ("broker_id", "log_dirs", "uncordon", "dry_run")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    LOG_DIRS_FIELD_NUMBER: _ClassVar[int]
    UNCORDON_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    log_dirs: _containers.RepeatedScalarFieldContainer[bytes]
    uncordon: bool
    dry_run: bool
    def __init__(self, broker_id: _Optional[int] = ..., log_dirs: _Optional[_Iterable[bytes]] = ..., uncordon: bool = ..., dry_run: bool = ...) -> None: ...

class CordonLogDirsResult(_message.Message):
    __slots__ = ("cordoned_log_dirs",)
    CORDONED_LOG_DIRS_FIELD_NUMBER: _ClassVar[int]
    cordoned_log_dirs: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, cordoned_log_dirs: _Optional[_Iterable[bytes]] = ...) -> None: ...

class PartitionNumbers(_message.Message):
    __slots__ = ("topic_id", "partitions")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    partitions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, topic_id: _Optional[bytes] = ..., partitions: _Optional[_Iterable[int]] = ...) -> None: ...

class DirectoryAssignment(_message.Message):
    __slots__ = ("directory_id", "topics")
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    directory_id: bytes
    topics: _containers.RepeatedCompositeFieldContainer[PartitionNumbers]
    def __init__(self, directory_id: _Optional[bytes] = ..., topics: _Optional[_Iterable[_Union[PartitionNumbers, _Mapping]]] = ...) -> None: ...

class AssignReplicasToDirs(_message.Message):
    __slots__ = ("broker_id", "broker_epoch", "directories", "dry_run")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    DIRECTORIES_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    directories: _containers.RepeatedCompositeFieldContainer[DirectoryAssignment]
    dry_run: bool
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., directories: _Optional[_Iterable[_Union[DirectoryAssignment, _Mapping]]] = ..., dry_run: bool = ...) -> None: ...

class PartitionAssignmentResult(_message.Message):
    __slots__ = ("partition", "error_code")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    partition: int
    error_code: _common_pb2.ErrorCode
    def __init__(self, partition: _Optional[int] = ..., error_code: _Optional[_Union[_common_pb2.ErrorCode, str]] = ...) -> None: ...

class TopicAssignmentResult(_message.Message):
    __slots__ = ("topic_id", "partitions")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionAssignmentResult]
    def __init__(self, topic_id: _Optional[bytes] = ..., partitions: _Optional[_Iterable[_Union[PartitionAssignmentResult, _Mapping]]] = ...) -> None: ...

class DirectoryAssignmentResult(_message.Message):
    __slots__ = ("directory_id", "topics")
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    directory_id: bytes
    topics: _containers.RepeatedCompositeFieldContainer[TopicAssignmentResult]
    def __init__(self, directory_id: _Optional[bytes] = ..., topics: _Optional[_Iterable[_Union[TopicAssignmentResult, _Mapping]]] = ...) -> None: ...

class AssignReplicasToDirsResult(_message.Message):
    __slots__ = ("directories",)
    DIRECTORIES_FIELD_NUMBER: _ClassVar[int]
    directories: _containers.RepeatedCompositeFieldContainer[DirectoryAssignmentResult]
    def __init__(self, directories: _Optional[_Iterable[_Union[DirectoryAssignmentResult, _Mapping]]] = ...) -> None: ...

class FeatureUpdate(_message.Message):
    __slots__ = ("name", "level", "upgrade_type")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    UPGRADE_TYPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    level: int
    upgrade_type: FeatureUpgradeType
    def __init__(self, name: _Optional[str] = ..., level: _Optional[int] = ..., upgrade_type: _Optional[_Union[FeatureUpgradeType, str]] = ...) -> None: ...

class UpdateFeatures(_message.Message):
    __slots__ = ("updates", "dry_run")
    UPDATES_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    updates: _containers.RepeatedCompositeFieldContainer[FeatureUpdate]
    dry_run: bool
    def __init__(self, updates: _Optional[_Iterable[_Union[FeatureUpdate, _Mapping]]] = ..., dry_run: bool = ...) -> None: ...

class FeatureLevel(_message.Message):
    __slots__ = ("name", "level")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    name: str
    level: int
    def __init__(self, name: _Optional[str] = ..., level: _Optional[int] = ...) -> None: ...

class UpdateFeaturesResult(_message.Message):
    __slots__ = ("features",)
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    features: _containers.RepeatedCompositeFieldContainer[FeatureLevel]
    def __init__(self, features: _Optional[_Iterable[_Union[FeatureLevel, _Mapping]]] = ...) -> None: ...

class AllocateProducerIds(_message.Message):
    __slots__ = ("broker_id", "broker_epoch", "dry_run")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    dry_run: bool
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., dry_run: bool = ...) -> None: ...

class AllocateProducerIdsResult(_message.Message):
    __slots__ = ("first_producer_id", "producer_id_count")
    FIRST_PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_COUNT_FIELD_NUMBER: _ClassVar[int]
    first_producer_id: int
    producer_id_count: int
    def __init__(self, first_producer_id: _Optional[int] = ..., producer_id_count: _Optional[int] = ...) -> None: ...

class InitProducerId(_message.Message):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "timeout_ms", "dry_run")
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    dry_run: bool
    def __init__(self, transactional_id: _Optional[str] = ..., producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., dry_run: bool = ...) -> None: ...

class InitProducerIdResult(_message.Message):
    __slots__ = ("producer_id", "producer_epoch")
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    producer_id: int
    producer_epoch: int
    def __init__(self, producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ...) -> None: ...

class ElectLeaders(_message.Message):
    __slots__ = ("topic_name", "partitions", "election_type", "dry_run")
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    ELECTION_TYPE_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    topic_name: str
    partitions: _containers.RepeatedScalarFieldContainer[int]
    election_type: ElectionType
    dry_run: bool
    def __init__(self, topic_name: _Optional[str] = ..., partitions: _Optional[_Iterable[int]] = ..., election_type: _Optional[_Union[ElectionType, str]] = ..., dry_run: bool = ...) -> None: ...

class PartitionElectionResult(_message.Message):
    __slots__ = ("partition", "error_code", "leader_id")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    partition: int
    error_code: _common_pb2.ErrorCode
    leader_id: int
    def __init__(self, partition: _Optional[int] = ..., error_code: _Optional[_Union[_common_pb2.ErrorCode, str]] = ..., leader_id: _Optional[int] = ...) -> None: ...

class ElectLeadersResult(_message.Message):
    __slots__ = ("partitions",)
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionElectionResult]
    def __init__(self, partitions: _Optional[_Iterable[_Union[PartitionElectionResult, _Mapping]]] = ...) -> None: ...

class SourcePosition(_message.Message):
    __slots__ = ("is_in_checkpoint", "offset")
    IS_IN_CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    is_in_checkpoint: bool
    offset: int
    def __init__(self, is_in_checkpoint: bool = ..., offset: _Optional[int] = ...) -> None: ...

class ImportBatch(_message.Message):
    __slots__ = ("source_cluster_id", "checkpoint_offset", "begin", "end", "records", "is_last", "dry_run")
    SOURCE_CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    IS_LAST_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    source_cluster_id: str
    checkpoint_offset: int
    begin: SourcePosition
    end: SourcePosition
    records: _containers.RepeatedScalarFieldContainer[bytes]
    is_last: bool
    dry_run: bool
    def __init__(self, source_cluster_id: _Optional[str] = ..., checkpoint_offset: _Optional[int] = ..., begin: _Optional[_Union[SourcePosition, _Mapping]] = ..., end: _Optional[_Union[SourcePosition, _Mapping]] = ..., records: _Optional[_Iterable[bytes]] = ..., is_last: bool = ..., dry_run: bool = ...) -> None: ...

class AclEntry(_message.Message):
    __slots__ = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type")
    RESOURCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_NAME_FIELD_NUMBER: _ClassVar[int]
    PATTERN_TYPE_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    PERMISSION_TYPE_FIELD_NUMBER: _ClassVar[int]
    resource_type: AclResourceType
    resource_name: str
    pattern_type: AclPatternType
    principal: str
    host: str
    operation: AclOperation
    permission_type: AclPermissionType
    def __init__(self, resource_type: _Optional[_Union[AclResourceType, str]] = ..., resource_name: _Optional[str] = ..., pattern_type: _Optional[_Union[AclPatternType, str]] = ..., principal: _Optional[str] = ..., host: _Optional[str] = ..., operation: _Optional[_Union[AclOperation, str]] = ..., permission_type: _Optional[_Union[AclPermissionType, str]] = ...) -> None: ...

class AclFilter(_message.Message):
    __slots__ = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type")
    RESOURCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_NAME_FIELD_NUMBER: _ClassVar[int]
    PATTERN_TYPE_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    PERMISSION_TYPE_FIELD_NUMBER: _ClassVar[int]
    resource_type: AclResourceType
    resource_name: str
    pattern_type: AclPatternType
    principal: str
    host: str
    operation: AclOperation
    permission_type: AclPermissionType
    def __init__(self, resource_type: _Optional[_Union[AclResourceType, str]] = ..., resource_name: _Optional[str] = ..., pattern_type: _Optional[_Union[AclPatternType, str]] = ..., principal: _Optional[str] = ..., host: _Optional[str] = ..., operation: _Optional[_Union[AclOperation, str]] = ..., permission_type: _Optional[_Union[AclPermissionType, str]] = ...) -> None: ...

class CreateAcls(_message.Message):
    __slots__ = ("entries", "dry_run")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[AclEntry]
    dry_run: bool
    def __init__(self, entries: _Optional[_Iterable[_Union[AclEntry, _Mapping]]] = ..., dry_run: bool = ...) -> None: ...

class CreateAclsResult(_message.Message):
    __slots__ = ("created_count",)
    CREATED_COUNT_FIELD_NUMBER: _ClassVar[int]
    created_count: int
    def __init__(self, created_count: _Optional[int] = ...) -> None: ...

class DeleteAcls(_message.Message):
    __slots__ = ("filters", "dry_run")
    FILTERS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    filters: _containers.RepeatedCompositeFieldContainer[AclFilter]
    dry_run: bool
    def __init__(self, filters: _Optional[_Iterable[_Union[AclFilter, _Mapping]]] = ..., dry_run: bool = ...) -> None: ...

class DeleteAclsResult(_message.Message):
    __slots__ = ("removed",)
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    removed: _containers.RepeatedCompositeFieldContainer[AclEntry]
    def __init__(self, removed: _Optional[_Iterable[_Union[AclEntry, _Mapping]]] = ...) -> None: ...

class ScramUpsertion(_message.Message):
    __slots__ = ("name", "mechanism", "iterations", "salt", "stored_key", "server_key")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    SALT_FIELD_NUMBER: _ClassVar[int]
    STORED_KEY_FIELD_NUMBER: _ClassVar[int]
    SERVER_KEY_FIELD_NUMBER: _ClassVar[int]
    name: str
    mechanism: ScramMechanism
    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes
    def __init__(self, name: _Optional[str] = ..., mechanism: _Optional[_Union[ScramMechanism, str]] = ..., iterations: _Optional[int] = ..., salt: _Optional[bytes] = ..., stored_key: _Optional[bytes] = ..., server_key: _Optional[bytes] = ...) -> None: ...

class ScramDeletion(_message.Message):
    __slots__ = ("name", "mechanism")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    name: str
    mechanism: ScramMechanism
    def __init__(self, name: _Optional[str] = ..., mechanism: _Optional[_Union[ScramMechanism, str]] = ...) -> None: ...

class AlterUserScramCredentials(_message.Message):
    __slots__ = ("upsertions", "deletions", "dry_run")
    UPSERTIONS_FIELD_NUMBER: _ClassVar[int]
    DELETIONS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    upsertions: _containers.RepeatedCompositeFieldContainer[ScramUpsertion]
    deletions: _containers.RepeatedCompositeFieldContainer[ScramDeletion]
    dry_run: bool
    def __init__(self, upsertions: _Optional[_Iterable[_Union[ScramUpsertion, _Mapping]]] = ..., deletions: _Optional[_Iterable[_Union[ScramDeletion, _Mapping]]] = ..., dry_run: bool = ...) -> None: ...

class ReadEpoch(_message.Message):
    __slots__ = ("epoch", "start_offset", "log_digest")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LOG_DIGEST_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    start_offset: int
    log_digest: bytes
    def __init__(self, epoch: _Optional[int] = ..., start_offset: _Optional[int] = ..., log_digest: _Optional[bytes] = ...) -> None: ...

class CommitPosition(_message.Message):
    __slots__ = ("group", "offset", "leader_epoch", "epochs", "log_digest", "log_incarnation", "metadata", "dry_run")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    LOG_DIGEST_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    group: str
    offset: int
    leader_epoch: int
    epochs: _containers.RepeatedCompositeFieldContainer[ReadEpoch]
    log_digest: bytes
    log_incarnation: bytes
    metadata: str
    dry_run: bool
    def __init__(self, group: _Optional[str] = ..., offset: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., epochs: _Optional[_Iterable[_Union[ReadEpoch, _Mapping]]] = ..., log_digest: _Optional[bytes] = ..., log_incarnation: _Optional[bytes] = ..., metadata: _Optional[str] = ..., dry_run: bool = ...) -> None: ...

class CommandResult(_message.Message):
    __slots__ = ("create_topic", "delete_topic", "alter_partition", "register_broker", "broker_heartbeat", "allocate_producer_ids", "init_producer_id", "elect_leaders", "update_features", "create_partitions", "create_acls", "delete_acls", "cordon_log_dirs", "assign_replicas_to_dirs")
    CREATE_TOPIC_FIELD_NUMBER: _ClassVar[int]
    DELETE_TOPIC_FIELD_NUMBER: _ClassVar[int]
    ALTER_PARTITION_FIELD_NUMBER: _ClassVar[int]
    REGISTER_BROKER_FIELD_NUMBER: _ClassVar[int]
    BROKER_HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    ALLOCATE_PRODUCER_IDS_FIELD_NUMBER: _ClassVar[int]
    INIT_PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    ELECT_LEADERS_FIELD_NUMBER: _ClassVar[int]
    UPDATE_FEATURES_FIELD_NUMBER: _ClassVar[int]
    CREATE_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    CREATE_ACLS_FIELD_NUMBER: _ClassVar[int]
    DELETE_ACLS_FIELD_NUMBER: _ClassVar[int]
    CORDON_LOG_DIRS_FIELD_NUMBER: _ClassVar[int]
    ASSIGN_REPLICAS_TO_DIRS_FIELD_NUMBER: _ClassVar[int]
    create_topic: CreateTopicResult
    delete_topic: DeleteTopicResult
    alter_partition: AlterPartitionResult
    register_broker: RegisterBrokerResult
    broker_heartbeat: BrokerHeartbeatResult
    allocate_producer_ids: AllocateProducerIdsResult
    init_producer_id: InitProducerIdResult
    elect_leaders: ElectLeadersResult
    update_features: UpdateFeaturesResult
    create_partitions: CreatePartitionsResult
    create_acls: CreateAclsResult
    delete_acls: DeleteAclsResult
    cordon_log_dirs: CordonLogDirsResult
    assign_replicas_to_dirs: AssignReplicasToDirsResult
    def __init__(self, create_topic: _Optional[_Union[CreateTopicResult, _Mapping]] = ..., delete_topic: _Optional[_Union[DeleteTopicResult, _Mapping]] = ..., alter_partition: _Optional[_Union[AlterPartitionResult, _Mapping]] = ..., register_broker: _Optional[_Union[RegisterBrokerResult, _Mapping]] = ..., broker_heartbeat: _Optional[_Union[BrokerHeartbeatResult, _Mapping]] = ..., allocate_producer_ids: _Optional[_Union[AllocateProducerIdsResult, _Mapping]] = ..., init_producer_id: _Optional[_Union[InitProducerIdResult, _Mapping]] = ..., elect_leaders: _Optional[_Union[ElectLeadersResult, _Mapping]] = ..., update_features: _Optional[_Union[UpdateFeaturesResult, _Mapping]] = ..., create_partitions: _Optional[_Union[CreatePartitionsResult, _Mapping]] = ..., create_acls: _Optional[_Union[CreateAclsResult, _Mapping]] = ..., delete_acls: _Optional[_Union[DeleteAclsResult, _Mapping]] = ..., cordon_log_dirs: _Optional[_Union[CordonLogDirsResult, _Mapping]] = ..., assign_replicas_to_dirs: _Optional[_Union[AssignReplicasToDirsResult, _Mapping]] = ...) -> None: ...
