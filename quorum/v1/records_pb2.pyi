from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TypedRecord(_message.Message):
    __slots__ = ("undecoded", "register_broker_record", "unregister_broker_record", "topic_record", "partition_record", "config_record", "partition_change_record", "fence_broker_record", "unfence_broker_record", "remove_topic_record", "delegation_token_record", "user_scram_credential_record", "feature_level_record", "client_quota_record", "producer_ids_record", "broker_registration_change_record", "access_control_entry_record", "remove_access_control_entry_record", "no_op_record", "zk_migration_state_record", "remove_user_scram_credential_record", "begin_transaction_record", "end_transaction_record", "abort_transaction_record", "remove_delegation_token_record", "register_controller_record", "clear_elr_record", "unregister_controller_record", "producer_state_record", "init_producer_record", "expire_producer_record", "broker_fenced_event", "broker_unfenced_event", "broker_shutdown_event", "broker_epoch_record", "transactional_id_record", "remove_transactional_id_record", "begin_import_record", "import_state_record", "committed_position_record", "remove_committed_position_record", "answered_requests_record", "broker_leaving_event")
    UNDECODED_FIELD_NUMBER: _ClassVar[int]
    REGISTER_BROKER_RECORD_FIELD_NUMBER: _ClassVar[int]
    UNREGISTER_BROKER_RECORD_FIELD_NUMBER: _ClassVar[int]
    TOPIC_RECORD_FIELD_NUMBER: _ClassVar[int]
    PARTITION_RECORD_FIELD_NUMBER: _ClassVar[int]
    CONFIG_RECORD_FIELD_NUMBER: _ClassVar[int]
    PARTITION_CHANGE_RECORD_FIELD_NUMBER: _ClassVar[int]
    FENCE_BROKER_RECORD_FIELD_NUMBER: _ClassVar[int]
    UNFENCE_BROKER_RECORD_FIELD_NUMBER: _ClassVar[int]
    REMOVE_TOPIC_RECORD_FIELD_NUMBER: _ClassVar[int]
    DELEGATION_TOKEN_RECORD_FIELD_NUMBER: _ClassVar[int]
    USER_SCRAM_CREDENTIAL_RECORD_FIELD_NUMBER: _ClassVar[int]
    FEATURE_LEVEL_RECORD_FIELD_NUMBER: _ClassVar[int]
    CLIENT_QUOTA_RECORD_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_IDS_RECORD_FIELD_NUMBER: _ClassVar[int]
    BROKER_REGISTRATION_CHANGE_RECORD_FIELD_NUMBER: _ClassVar[int]
    ACCESS_CONTROL_ENTRY_RECORD_FIELD_NUMBER: _ClassVar[int]
    REMOVE_ACCESS_CONTROL_ENTRY_RECORD_FIELD_NUMBER: _ClassVar[int]
    NO_OP_RECORD_FIELD_NUMBER: _ClassVar[int]
    ZK_MIGRATION_STATE_RECORD_FIELD_NUMBER: _ClassVar[int]
    REMOVE_USER_SCRAM_CREDENTIAL_RECORD_FIELD_NUMBER: _ClassVar[int]
    BEGIN_TRANSACTION_RECORD_FIELD_NUMBER: _ClassVar[int]
    END_TRANSACTION_RECORD_FIELD_NUMBER: _ClassVar[int]
    ABORT_TRANSACTION_RECORD_FIELD_NUMBER: _ClassVar[int]
    REMOVE_DELEGATION_TOKEN_RECORD_FIELD_NUMBER: _ClassVar[int]
    REGISTER_CONTROLLER_RECORD_FIELD_NUMBER: _ClassVar[int]
    CLEAR_ELR_RECORD_FIELD_NUMBER: _ClassVar[int]
    UNREGISTER_CONTROLLER_RECORD_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_STATE_RECORD_FIELD_NUMBER: _ClassVar[int]
    INIT_PRODUCER_RECORD_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_PRODUCER_RECORD_FIELD_NUMBER: _ClassVar[int]
    BROKER_FENCED_EVENT_FIELD_NUMBER: _ClassVar[int]
    BROKER_UNFENCED_EVENT_FIELD_NUMBER: _ClassVar[int]
    BROKER_SHUTDOWN_EVENT_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_RECORD_FIELD_NUMBER: _ClassVar[int]
    TRANSACTIONAL_ID_RECORD_FIELD_NUMBER: _ClassVar[int]
    REMOVE_TRANSACTIONAL_ID_RECORD_FIELD_NUMBER: _ClassVar[int]
    BEGIN_IMPORT_RECORD_FIELD_NUMBER: _ClassVar[int]
    IMPORT_STATE_RECORD_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_POSITION_RECORD_FIELD_NUMBER: _ClassVar[int]
    REMOVE_COMMITTED_POSITION_RECORD_FIELD_NUMBER: _ClassVar[int]
    ANSWERED_REQUESTS_RECORD_FIELD_NUMBER: _ClassVar[int]
    BROKER_LEAVING_EVENT_FIELD_NUMBER: _ClassVar[int]
    undecoded: bytes
    register_broker_record: RegisterBrokerRecord
    unregister_broker_record: UnregisterBrokerRecord
    topic_record: TopicRecord
    partition_record: PartitionRecord
    config_record: ConfigRecord
    partition_change_record: PartitionChangeRecord
    fence_broker_record: FenceBrokerRecord
    unfence_broker_record: UnfenceBrokerRecord
    remove_topic_record: RemoveTopicRecord
    delegation_token_record: DelegationTokenRecord
    user_scram_credential_record: UserScramCredentialRecord
    feature_level_record: FeatureLevelRecord
    client_quota_record: ClientQuotaRecord
    producer_ids_record: ProducerIdsRecord
    broker_registration_change_record: BrokerRegistrationChangeRecord
    access_control_entry_record: AccessControlEntryRecord
    remove_access_control_entry_record: RemoveAccessControlEntryRecord
    no_op_record: NoOpRecord
    zk_migration_state_record: ZkMigrationStateRecord
    remove_user_scram_credential_record: RemoveUserScramCredentialRecord
    begin_transaction_record: BeginTransactionRecord
    end_transaction_record: EndTransactionRecord
    abort_transaction_record: AbortTransactionRecord
    remove_delegation_token_record: RemoveDelegationTokenRecord
    register_controller_record: RegisterControllerRecord
    clear_elr_record: ClearElrRecord
    unregister_controller_record: UnregisterControllerRecord
    producer_state_record: ProducerStateRecord
    init_producer_record: InitProducerRecord
    expire_producer_record: ExpireProducerRecord
    broker_fenced_event: BrokerFencedEvent
    broker_unfenced_event: BrokerUnfencedEvent
    broker_shutdown_event: BrokerShutdownEvent
    broker_epoch_record: BrokerEpochRecord
    transactional_id_record: TransactionalIdRecord
    remove_transactional_id_record: RemoveTransactionalIdRecord
    begin_import_record: BeginImportRecord
    import_state_record: ImportStateRecord
    committed_position_record: CommittedPositionRecord
    remove_committed_position_record: RemoveCommittedPositionRecord
    answered_requests_record: AnsweredRequestsRecord
    broker_leaving_event: BrokerLeavingEvent
    def __init__(self, undecoded: _Optional[bytes] = ..., register_broker_record: _Optional[_Union[RegisterBrokerRecord, _Mapping]] = ..., unregister_broker_record: _Optional[_Union[UnregisterBrokerRecord, _Mapping]] = ..., topic_record: _Optional[_Union[TopicRecord, _Mapping]] = ..., partition_record: _Optional[_Union[PartitionRecord, _Mapping]] = ..., config_record: _Optional[_Union[ConfigRecord, _Mapping]] = ..., partition_change_record: _Optional[_Union[PartitionChangeRecord, _Mapping]] = ..., fence_broker_record: _Optional[_Union[FenceBrokerRecord, _Mapping]] = ..., unfence_broker_record: _Optional[_Union[UnfenceBrokerRecord, _Mapping]] = ..., remove_topic_record: _Optional[_Union[RemoveTopicRecord, _Mapping]] = ..., delegation_token_record: _Optional[_Union[DelegationTokenRecord, _Mapping]] = ..., user_scram_credential_record: _Optional[_Union[UserScramCredentialRecord, _Mapping]] = ..., feature_level_record: _Optional[_Union[FeatureLevelRecord, _Mapping]] = ..., client_quota_record: _Optional[_Union[ClientQuotaRecord, _Mapping]] = ..., producer_ids_record: _Optional[_Union[ProducerIdsRecord, _Mapping]] = ..., broker_registration_change_record: _Optional[_Union[BrokerRegistrationChangeRecord, _Mapping]] = ..., access_control_entry_record: _Optional[_Union[AccessControlEntryRecord, _Mapping]] = ..., remove_access_control_entry_record: _Optional[_Union[RemoveAccessControlEntryRecord, _Mapping]] = ..., no_op_record: _Optional[_Union[NoOpRecord, _Mapping]] = ..., zk_migration_state_record: _Optional[_Union[ZkMigrationStateRecord, _Mapping]] = ..., remove_user_scram_credential_record: _Optional[_Union[RemoveUserScramCredentialRecord, _Mapping]] = ..., begin_transaction_record: _Optional[_Union[BeginTransactionRecord, _Mapping]] = ..., end_transaction_record: _Optional[_Union[EndTransactionRecord, _Mapping]] = ..., abort_transaction_record: _Optional[_Union[AbortTransactionRecord, _Mapping]] = ..., remove_delegation_token_record: _Optional[_Union[RemoveDelegationTokenRecord, _Mapping]] = ..., register_controller_record: _Optional[_Union[RegisterControllerRecord, _Mapping]] = ..., clear_elr_record: _Optional[_Union[ClearElrRecord, _Mapping]] = ..., unregister_controller_record: _Optional[_Union[UnregisterControllerRecord, _Mapping]] = ..., producer_state_record: _Optional[_Union[ProducerStateRecord, _Mapping]] = ..., init_producer_record: _Optional[_Union[InitProducerRecord, _Mapping]] = ..., expire_producer_record: _Optional[_Union[ExpireProducerRecord, _Mapping]] = ..., broker_fenced_event: _Optional[_Union[BrokerFencedEvent, _Mapping]] = ..., broker_unfenced_event: _Optional[_Union[BrokerUnfencedEvent, _Mapping]] = ..., broker_shutdown_event: _Optional[_Union[BrokerShutdownEvent, _Mapping]] = ..., broker_epoch_record: _Optional[_Union[BrokerEpochRecord, _Mapping]] = ..., transactional_id_record: _Optional[_Union[TransactionalIdRecord, _Mapping]] = ..., remove_transactional_id_record: _Optional[_Union[RemoveTransactionalIdRecord, _Mapping]] = ..., begin_import_record: _Optional[_Union[BeginImportRecord, _Mapping]] = ..., import_state_record: _Optional[_Union[ImportStateRecord, _Mapping]] = ..., committed_position_record: _Optional[_Union[CommittedPositionRecord, _Mapping]] = ..., remove_committed_position_record: _Optional[_Union[RemoveCommittedPositionRecord, _Mapping]] = ..., answered_requests_record: _Optional[_Union[AnsweredRequestsRecord, _Mapping]] = ..., broker_leaving_event: _Optional[_Union[BrokerLeavingEvent, _Mapping]] = ...) -> None: ...

class Int32Values(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, values: _Optional[_Iterable[int]] = ...) -> None: ...

class BytesValues(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, values: _Optional[_Iterable[bytes]] = ...) -> None: ...

class RegisterBrokerRecord(_message.Message):
    __slots__ = ("broker_id", "is_migrating_zk_broker", "incarnation_id", "broker_epoch", "end_points", "features", "rack", "fenced", "in_controlled_shutdown", "log_dirs", "cordoned_log_dirs")
    class ListenerEndpoint(_message.Message):
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
        __slots__ = ("name", "min_supported_version", "max_supported_version")
        NAME_FIELD_NUMBER: _ClassVar[int]
        MIN_SUPPORTED_VERSION_FIELD_NUMBER: _ClassVar[int]
        MAX_SUPPORTED_VERSION_FIELD_NUMBER: _ClassVar[int]
        name: str
        min_supported_version: int
        max_supported_version: int
        def __init__(self, name: _Optional[str] = ..., min_supported_version: _Optional[int] = ..., max_supported_version: _Optional[int] = ...) -> None: ...
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    IS_MIGRATING_ZK_BROKER_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    END_POINTS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    FENCED_FIELD_NUMBER: _ClassVar[int]
    IN_CONTROLLED_SHUTDOWN_FIELD_NUMBER: _ClassVar[int]
    LOG_DIRS_FIELD_NUMBER: _ClassVar[int]
    CORDONED_LOG_DIRS_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    is_migrating_zk_broker: bool
    incarnation_id: bytes
    broker_epoch: int
    end_points: _containers.RepeatedCompositeFieldContainer[RegisterBrokerRecord.ListenerEndpoint]
    features: _containers.RepeatedCompositeFieldContainer[RegisterBrokerRecord.SupportedFeature]
    rack: str
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: _containers.RepeatedScalarFieldContainer[bytes]
    cordoned_log_dirs: BytesValues
    def __init__(self, broker_id: _Optional[int] = ..., is_migrating_zk_broker: bool = ..., incarnation_id: _Optional[bytes] = ..., broker_epoch: _Optional[int] = ..., end_points: _Optional[_Iterable[_Union[RegisterBrokerRecord.ListenerEndpoint, _Mapping]]] = ..., features: _Optional[_Iterable[_Union[RegisterBrokerRecord.SupportedFeature, _Mapping]]] = ..., rack: _Optional[str] = ..., fenced: bool = ..., in_controlled_shutdown: bool = ..., log_dirs: _Optional[_Iterable[bytes]] = ..., cordoned_log_dirs: _Optional[_Union[BytesValues, _Mapping]] = ...) -> None: ...

class UnregisterBrokerRecord(_message.Message):
    __slots__ = ("broker_id", "broker_epoch")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ...) -> None: ...

class TopicRecord(_message.Message):
    __slots__ = ("name", "topic_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    topic_id: bytes
    def __init__(self, name: _Optional[str] = ..., topic_id: _Optional[bytes] = ...) -> None: ...

class PartitionRecord(_message.Message):
    __slots__ = ("partition_id", "topic_id", "replicas", "isr", "removing_replicas", "adding_replicas", "leader", "leader_recovery_state", "leader_epoch", "partition_epoch", "directories", "eligible_leader_replicas", "last_known_elr")
    PARTITION_ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    ISR_FIELD_NUMBER: _ClassVar[int]
    REMOVING_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    ADDING_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    LEADER_RECOVERY_STATE_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    DIRECTORIES_FIELD_NUMBER: _ClassVar[int]
    ELIGIBLE_LEADER_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    LAST_KNOWN_ELR_FIELD_NUMBER: _ClassVar[int]
    partition_id: int
    topic_id: bytes
    replicas: _containers.RepeatedScalarFieldContainer[int]
    isr: _containers.RepeatedScalarFieldContainer[int]
    removing_replicas: _containers.RepeatedScalarFieldContainer[int]
    adding_replicas: _containers.RepeatedScalarFieldContainer[int]
    leader: int
    leader_recovery_state: int
    leader_epoch: int
    partition_epoch: int
    directories: _containers.RepeatedScalarFieldContainer[bytes]
    eligible_leader_replicas: Int32Values
    last_known_elr: Int32Values
    def __init__(self, partition_id: _Optional[int] = ..., topic_id: _Optional[bytes] = ..., replicas: _Optional[_Iterable[int]] = ..., isr: _Optional[_Iterable[int]] = ..., removing_replicas: _Optional[_Iterable[int]] = ..., adding_replicas: _Optional[_Iterable[int]] = ..., leader: _Optional[int] = ..., leader_recovery_state: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., partition_epoch: _Optional[int] = ..., directories: _Optional[_Iterable[bytes]] = ..., eligible_leader_replicas: _Optional[_Union[Int32Values, _Mapping]] = ..., last_known_elr: _Optional[_Union[Int32Values, _Mapping]] = ...) -> None: ...

class ConfigRecord(_message.Message):
    __slots__ = ("resource_type", "resource_name", "name", "value")
    RESOURCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_NAME_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    resource_type: int
    resource_name: str
    name: str
    value: str
    def __init__(self, resource_type: _Optional[int] = ..., resource_name: _Optional[str] = ..., name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class PartitionChangeRecord(_message.Message):
    __slots__ = ("partition_id", "topic_id", "isr", "leader", "replicas", "removing_replicas", "adding_replicas", "leader_recovery_state", "directories", "eligible_leader_replicas", "last_known_elr")
    PARTITION_ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    ISR_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    REMOVING_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    ADDING_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    LEADER_RECOVERY_STATE_FIELD_NUMBER: _ClassVar[int]
    DIRECTORIES_FIELD_NUMBER: _ClassVar[int]
    ELIGIBLE_LEADER_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    LAST_KNOWN_ELR_FIELD_NUMBER: _ClassVar[int]
    partition_id: int
    topic_id: bytes
    isr: Int32Values
    leader: int
    replicas: Int32Values
    removing_replicas: Int32Values
    adding_replicas: Int32Values
    leader_recovery_state: int
    directories: BytesValues
    eligible_leader_replicas: Int32Values
    last_known_elr: Int32Values
    def __init__(self, partition_id: _Optional[int] = ..., topic_id: _Optional[bytes] = ..., isr: _Optional[_Union[Int32Values, _Mapping]] = ..., leader: _Optional[int] = ..., replicas: _Optional[_Union[Int32Values, _Mapping]] = ..., removing_replicas: _Optional[_Union[Int32Values, _Mapping]] = ..., adding_replicas: _Optional[_Union[Int32Values, _Mapping]] = ..., leader_recovery_state: _Optional[int] = ..., directories: _Optional[_Union[BytesValues, _Mapping]] = ..., eligible_leader_replicas: _Optional[_Union[Int32Values, _Mapping]] = ..., last_known_elr: _Optional[_Union[Int32Values, _Mapping]] = ...) -> None: ...

class FenceBrokerRecord(_message.Message):
    __slots__ = ("id", "epoch")
    ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    id: int
    epoch: int
    def __init__(self, id: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class UnfenceBrokerRecord(_message.Message):
    __slots__ = ("id", "epoch")
    ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    id: int
    epoch: int
    def __init__(self, id: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class RemoveTopicRecord(_message.Message):
    __slots__ = ("topic_id",)
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    def __init__(self, topic_id: _Optional[bytes] = ...) -> None: ...

class DelegationTokenRecord(_message.Message):
    __slots__ = ("owner", "requester", "renewers", "issue_timestamp", "max_timestamp", "expiration_timestamp", "token_id")
    OWNER_FIELD_NUMBER: _ClassVar[int]
    REQUESTER_FIELD_NUMBER: _ClassVar[int]
    RENEWERS_FIELD_NUMBER: _ClassVar[int]
    ISSUE_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    MAX_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    EXPIRATION_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    owner: str
    requester: str
    renewers: _containers.RepeatedScalarFieldContainer[str]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int
    token_id: str
    def __init__(self, owner: _Optional[str] = ..., requester: _Optional[str] = ..., renewers: _Optional[_Iterable[str]] = ..., issue_timestamp: _Optional[int] = ..., max_timestamp: _Optional[int] = ..., expiration_timestamp: _Optional[int] = ..., token_id: _Optional[str] = ...) -> None: ...

class UserScramCredentialRecord(_message.Message):
    __slots__ = ("name", "mechanism", "salt", "stored_key", "server_key", "iterations")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    SALT_FIELD_NUMBER: _ClassVar[int]
    STORED_KEY_FIELD_NUMBER: _ClassVar[int]
    SERVER_KEY_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    name: str
    mechanism: int
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int
    def __init__(self, name: _Optional[str] = ..., mechanism: _Optional[int] = ..., salt: _Optional[bytes] = ..., stored_key: _Optional[bytes] = ..., server_key: _Optional[bytes] = ..., iterations: _Optional[int] = ...) -> None: ...

class FeatureLevelRecord(_message.Message):
    __slots__ = ("name", "feature_level")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FEATURE_LEVEL_FIELD_NUMBER: _ClassVar[int]
    name: str
    feature_level: int
    def __init__(self, name: _Optional[str] = ..., feature_level: _Optional[int] = ...) -> None: ...

class ClientQuotaRecord(_message.Message):
    __slots__ = ("entity", "key", "value", "remove")
    class QuotaEntity(_message.Message):
        __slots__ = ("entity_type", "entity_name")
        ENTITY_TYPE_FIELD_NUMBER: _ClassVar[int]
        ENTITY_NAME_FIELD_NUMBER: _ClassVar[int]
        entity_type: str
        entity_name: str
        def __init__(self, entity_type: _Optional[str] = ..., entity_name: _Optional[str] = ...) -> None: ...
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    REMOVE_FIELD_NUMBER: _ClassVar[int]
    entity: _containers.RepeatedCompositeFieldContainer[ClientQuotaRecord.QuotaEntity]
    key: str
    value: float
    remove: bool
    def __init__(self, entity: _Optional[_Iterable[_Union[ClientQuotaRecord.QuotaEntity, _Mapping]]] = ..., key: _Optional[str] = ..., value: _Optional[float] = ..., remove: bool = ...) -> None: ...

class ProducerIdsRecord(_message.Message):
    __slots__ = ("broker_id", "broker_epoch", "next_producer_id")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    NEXT_PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    next_producer_id: int
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., next_producer_id: _Optional[int] = ...) -> None: ...

class BrokerRegistrationChangeRecord(_message.Message):
    __slots__ = ("broker_id", "broker_epoch", "fenced", "in_controlled_shutdown", "log_dirs", "cordoned_log_dirs")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    FENCED_FIELD_NUMBER: _ClassVar[int]
    IN_CONTROLLED_SHUTDOWN_FIELD_NUMBER: _ClassVar[int]
    LOG_DIRS_FIELD_NUMBER: _ClassVar[int]
    CORDONED_LOG_DIRS_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    fenced: int
    in_controlled_shutdown: int
    log_dirs: _containers.RepeatedScalarFieldContainer[bytes]
    cordoned_log_dirs: BytesValues
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., fenced: _Optional[int] = ..., in_controlled_shutdown: _Optional[int] = ..., log_dirs: _Optional[_Iterable[bytes]] = ..., cordoned_log_dirs: _Optional[_Union[BytesValues, _Mapping]] = ...) -> None: ...

class AccessControlEntryRecord(_message.Message):
    __slots__ = ("id", "resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type")
    ID_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_NAME_FIELD_NUMBER: _ClassVar[int]
    PATTERN_TYPE_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    PERMISSION_TYPE_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int
    def __init__(self, id: _Optional[bytes] = ..., resource_type: _Optional[int] = ..., resource_name: _Optional[str] = ..., pattern_type: _Optional[int] = ..., principal: _Optional[str] = ..., host: _Optional[str] = ..., operation: _Optional[int] = ..., permission_type: _Optional[int] = ...) -> None: ...

class RemoveAccessControlEntryRecord(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    def __init__(self, id: _Optional[bytes] = ...) -> None: ...

class NoOpRecord(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ZkMigrationStateRecord(_message.Message):
    __slots__ = ("zk_migration_state",)
    ZK_MIGRATION_STATE_FIELD_NUMBER: _ClassVar[int]
    zk_migration_state: int
    def __init__(self, zk_migration_state: _Optional[int] = ...) -> None: ...

class RemoveUserScramCredentialRecord(_message.Message):
    __slots__ = ("name", "mechanism")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    name: str
    mechanism: int
    def __init__(self, name: _Optional[str] = ..., mechanism: _Optional[int] = ...) -> None: ...

class BeginTransactionRecord(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class EndTransactionRecord(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AbortTransactionRecord(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class RemoveDelegationTokenRecord(_message.Message):
    __slots__ = ("token_id",)
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    token_id: str
    def __init__(self, token_id: _Optional[str] = ...) -> None: ...

class RegisterControllerRecord(_message.Message):
    __slots__ = ("controller_id", "incarnation_id", "zk_migration_ready", "end_points", "features")
    class ListenerEndpoint(_message.Message):
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
        __slots__ = ("name", "min_supported_version", "max_supported_version")
        NAME_FIELD_NUMBER: _ClassVar[int]
        MIN_SUPPORTED_VERSION_FIELD_NUMBER: _ClassVar[int]
        MAX_SUPPORTED_VERSION_FIELD_NUMBER: _ClassVar[int]
        name: str
        min_supported_version: int
        max_supported_version: int
        def __init__(self, name: _Optional[str] = ..., min_supported_version: _Optional[int] = ..., max_supported_version: _Optional[int] = ...) -> None: ...
    CONTROLLER_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_ID_FIELD_NUMBER: _ClassVar[int]
    ZK_MIGRATION_READY_FIELD_NUMBER: _ClassVar[int]
    END_POINTS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    controller_id: int
    incarnation_id: bytes
    zk_migration_ready: bool
    end_points: _containers.RepeatedCompositeFieldContainer[RegisterControllerRecord.ListenerEndpoint]
    features: _containers.RepeatedCompositeFieldContainer[RegisterControllerRecord.SupportedFeature]
    def __init__(self, controller_id: _Optional[int] = ..., incarnation_id: _Optional[bytes] = ..., zk_migration_ready: bool = ..., end_points: _Optional[_Iterable[_Union[RegisterControllerRecord.ListenerEndpoint, _Mapping]]] = ..., features: _Optional[_Iterable[_Union[RegisterControllerRecord.SupportedFeature, _Mapping]]] = ...) -> None: ...

class ClearElrRecord(_message.Message):
    __slots__ = ("topic_name",)
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    topic_name: str
    def __init__(self, topic_name: _Optional[str] = ...) -> None: ...

class UnregisterControllerRecord(_message.Message):
    __slots__ = ("controller_id",)
    CONTROLLER_ID_FIELD_NUMBER: _ClassVar[int]
    controller_id: int
    def __init__(self, controller_id: _Optional[int] = ...) -> None: ...

class ProducerStateRecord(_message.Message):
    __slots__ = ("producer_id", "producer_epoch", "last_sequence", "oldest_open", "last_timestamp_ms", "applied", "owner", "fingerprints", "successor_id")
    class AppliedSequence(_message.Message):
        __slots__ = ("sequence", "offset", "epoch", "answer")
        SEQUENCE_FIELD_NUMBER: _ClassVar[int]
        OFFSET_FIELD_NUMBER: _ClassVar[int]
        EPOCH_FIELD_NUMBER: _ClassVar[int]
        ANSWER_FIELD_NUMBER: _ClassVar[int]
        sequence: int
        offset: int
        epoch: int
        answer: bytes
        def __init__(self, sequence: _Optional[int] = ..., offset: _Optional[int] = ..., epoch: _Optional[int] = ..., answer: _Optional[bytes] = ...) -> None: ...
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    OLDEST_OPEN_FIELD_NUMBER: _ClassVar[int]
    LAST_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINTS_FIELD_NUMBER: _ClassVar[int]
    SUCCESSOR_ID_FIELD_NUMBER: _ClassVar[int]
    producer_id: int
    producer_epoch: int
    last_sequence: int
    oldest_open: int
    last_timestamp_ms: int
    applied: _containers.RepeatedCompositeFieldContainer[ProducerStateRecord.AppliedSequence]
    owner: bytes
    fingerprints: _containers.RepeatedScalarFieldContainer[bytes]
    successor_id: int
    def __init__(self, producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., last_sequence: _Optional[int] = ..., oldest_open: _Optional[int] = ..., last_timestamp_ms: _Optional[int] = ..., applied: _Optional[_Iterable[_Union[ProducerStateRecord.AppliedSequence, _Mapping]]] = ..., owner: _Optional[bytes] = ..., fingerprints: _Optional[_Iterable[bytes]] = ..., successor_id: _Optional[int] = ...) -> None: ...

class InitProducerRecord(_message.Message):
    __slots__ = ("producer_id", "producer_epoch", "previous_producer_id")
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    producer_id: int
    producer_epoch: int
    previous_producer_id: int
    def __init__(self, producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., previous_producer_id: _Optional[int] = ...) -> None: ...

class ExpireProducerRecord(_message.Message):
    __slots__ = ("producer_id",)
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    producer_id: int
    def __init__(self, producer_id: _Optional[int] = ...) -> None: ...

class BrokerFencedEvent(_message.Message):
    __slots__ = ("broker_id", "broker_epoch", "derivation_version", "unclean")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    DERIVATION_VERSION_FIELD_NUMBER: _ClassVar[int]
    UNCLEAN_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    derivation_version: int
    unclean: bool
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., derivation_version: _Optional[int] = ..., unclean: bool = ...) -> None: ...

class BrokerUnfencedEvent(_message.Message):
    __slots__ = ("broker_id", "broker_epoch", "derivation_version")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    DERIVATION_VERSION_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    derivation_version: int
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., derivation_version: _Optional[int] = ...) -> None: ...

class BrokerShutdownEvent(_message.Message):
    __slots__ = ("broker_id", "broker_epoch", "derivation_version")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    DERIVATION_VERSION_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    derivation_version: int
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., derivation_version: _Optional[int] = ...) -> None: ...

class BrokerEpochRecord(_message.Message):
    __slots__ = ("highest_broker_epoch",)
    HIGHEST_BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    highest_broker_epoch: int
    def __init__(self, highest_broker_epoch: _Optional[int] = ...) -> None: ...

class TransactionalIdRecord(_message.Message):
    __slots__ = ("transactional_id", "producer_id", "previous_producer_id", "producer_epoch", "last_producer_epoch", "timeout_ms", "status", "partitions", "last_update_ms", "start_ms")
    class TransactionPartitions(_message.Message):
        __slots__ = ("topic_name", "partitions")
        TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
        PARTITIONS_FIELD_NUMBER: _ClassVar[int]
        topic_name: str
        partitions: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, topic_name: _Optional[str] = ..., partitions: _Optional[_Iterable[int]] = ...) -> None: ...
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LAST_PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    LAST_UPDATE_MS_FIELD_NUMBER: _ClassVar[int]
    START_MS_FIELD_NUMBER: _ClassVar[int]
    transactional_id: str
    producer_id: int
    previous_producer_id: int
    producer_epoch: int
    last_producer_epoch: int
    timeout_ms: int
    status: int
    partitions: _containers.RepeatedCompositeFieldContainer[TransactionalIdRecord.TransactionPartitions]
    last_update_ms: int
    start_ms: int
    def __init__(self, transactional_id: _Optional[str] = ..., producer_id: _Optional[int] = ..., previous_producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., last_producer_epoch: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., status: _Optional[int] = ..., partitions: _Optional[_Iterable[_Union[TransactionalIdRecord.TransactionPartitions, _Mapping]]] = ..., last_update_ms: _Optional[int] = ..., start_ms: _Optional[int] = ...) -> None: ...

class RemoveTransactionalIdRecord(_message.Message):
    __slots__ = ("transactional_id",)
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    transactional_id: str
    def __init__(self, transactional_id: _Optional[str] = ...) -> None: ...

class BeginImportRecord(_message.Message):
    __slots__ = ("source_cluster_id", "checkpoint_offset", "is_in_checkpoint", "next_offset")
    SOURCE_CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    IS_IN_CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    source_cluster_id: str
    checkpoint_offset: int
    is_in_checkpoint: bool
    next_offset: int
    def __init__(self, source_cluster_id: _Optional[str] = ..., checkpoint_offset: _Optional[int] = ..., is_in_checkpoint: bool = ..., next_offset: _Optional[int] = ...) -> None: ...

class ImportStateRecord(_message.Message):
    __slots__ = ("source_cluster_id", "checkpoint_offset", "is_in_checkpoint", "next_offset", "is_finished", "broker_epoch_max")
    SOURCE_CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    IS_IN_CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    IS_FINISHED_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_MAX_FIELD_NUMBER: _ClassVar[int]
    source_cluster_id: str
    checkpoint_offset: int
    is_in_checkpoint: bool
    next_offset: int
    is_finished: bool
    broker_epoch_max: int
    def __init__(self, source_cluster_id: _Optional[str] = ..., checkpoint_offset: _Optional[int] = ..., is_in_checkpoint: bool = ..., next_offset: _Optional[int] = ..., is_finished: bool = ..., broker_epoch_max: _Optional[int] = ...) -> None: ...

class CommittedPositionRecord(_message.Message):
    __slots__ = ("group", "offset", "leader_epoch", "epochs", "log_digest", "log_incarnation", "metadata", "commit_timestamp_ms")
    class PositionEpoch(_message.Message):
        __slots__ = ("epoch", "start_offset", "log_digest")
        EPOCH_FIELD_NUMBER: _ClassVar[int]
        START_OFFSET_FIELD_NUMBER: _ClassVar[int]
        LOG_DIGEST_FIELD_NUMBER: _ClassVar[int]
        epoch: int
        start_offset: int
        log_digest: bytes
        def __init__(self, epoch: _Optional[int] = ..., start_offset: _Optional[int] = ..., log_digest: _Optional[bytes] = ...) -> None: ...
    GROUP_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    LOG_DIGEST_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    COMMIT_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    group: str
    offset: int
    leader_epoch: int
    epochs: _containers.RepeatedCompositeFieldContainer[CommittedPositionRecord.PositionEpoch]
    log_digest: bytes
    log_incarnation: bytes
    metadata: str
    commit_timestamp_ms: int
    def __init__(self, group: _Optional[str] = ..., offset: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., epochs: _Optional[_Iterable[_Union[CommittedPositionRecord.PositionEpoch, _Mapping]]] = ..., log_digest: _Optional[bytes] = ..., log_incarnation: _Optional[bytes] = ..., metadata: _Optional[str] = ..., commit_timestamp_ms: _Optional[int] = ...) -> None: ...

class RemoveCommittedPositionRecord(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: str
    def __init__(self, group: _Optional[str] = ...) -> None: ...

class AnsweredRequestsRecord(_message.Message):
    __slots__ = ("transactional_id", "requests")
    class AnsweredRequest(_message.Message):
        __slots__ = ("request_id", "offset", "epoch", "answer", "fingerprint")
        REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
        OFFSET_FIELD_NUMBER: _ClassVar[int]
        EPOCH_FIELD_NUMBER: _ClassVar[int]
        ANSWER_FIELD_NUMBER: _ClassVar[int]
        FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
        request_id: str
        offset: int
        epoch: int
        answer: bytes
        fingerprint: bytes
        def __init__(self, request_id: _Optional[str] = ..., offset: _Optional[int] = ..., epoch: _Optional[int] = ..., answer: _Optional[bytes] = ..., fingerprint: _Optional[bytes] = ...) -> None: ...
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    transactional_id: str
    requests: _containers.RepeatedCompositeFieldContainer[AnsweredRequestsRecord.AnsweredRequest]
    def __init__(self, transactional_id: _Optional[str] = ..., requests: _Optional[_Iterable[_Union[AnsweredRequestsRecord.AnsweredRequest, _Mapping]]] = ...) -> None: ...

class BrokerLeavingEvent(_message.Message):
    __slots__ = ("broker_id", "broker_epoch", "derivation_version", "unclean", "start_topic_id", "end_topic_id")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    DERIVATION_VERSION_FIELD_NUMBER: _ClassVar[int]
    UNCLEAN_FIELD_NUMBER: _ClassVar[int]
    START_TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    END_TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    derivation_version: int
    unclean: bool
    start_topic_id: bytes
    end_topic_id: bytes
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., derivation_version: _Optional[int] = ..., unclean: bool = ..., start_topic_id: _Optional[bytes] = ..., end_topic_id: _Optional[bytes] = ...) -> None: ...
