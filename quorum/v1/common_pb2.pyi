from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class ErrorCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERROR_CODE_NONE: _ClassVar[ErrorCode]
    ERROR_CODE_UNKNOWN_SERVER_ERROR: _ClassVar[ErrorCode]
    ERROR_CODE_OFFSET_OUT_OF_RANGE: _ClassVar[ErrorCode]
    ERROR_CODE_CORRUPT_MESSAGE: _ClassVar[ErrorCode]
    ERROR_CODE_UNKNOWN_TOPIC_OR_PARTITION: _ClassVar[ErrorCode]
    ERROR_CODE_NOT_LEADER_OR_FOLLOWER: _ClassVar[ErrorCode]
    ERROR_CODE_REQUEST_TIMED_OUT: _ClassVar[ErrorCode]
    ERROR_CODE_BROKER_NOT_AVAILABLE: _ClassVar[ErrorCode]
    ERROR_CODE_MESSAGE_TOO_LARGE: _ClassVar[ErrorCode]
    ERROR_CODE_INVALID_TOPIC: _ClassVar[ErrorCode]
    ERROR_CODE_CLUSTER_AUTHORIZATION_FAILED: _ClassVar[ErrorCode]
    ERROR_CODE_UNSUPPORTED_VERSION: _ClassVar[ErrorCode]
    ERROR_CODE_TOPIC_ALREADY_EXISTS: _ClassVar[ErrorCode]
    ERROR_CODE_INVALID_PARTITIONS: _ClassVar[ErrorCode]
    ERROR_CODE_INVALID_REPLICATION_FACTOR: _ClassVar[ErrorCode]
    ERROR_CODE_INVALID_REPLICA_ASSIGNMENT: _ClassVar[ErrorCode]
    ERROR_CODE_INVALID_CONFIG: _ClassVar[ErrorCode]
    ERROR_CODE_NOT_CONTROLLER: _ClassVar[ErrorCode]
    ERROR_CODE_INVALID_REQUEST: _ClassVar[ErrorCode]
    ERROR_CODE_POLICY_VIOLATION: _ClassVar[ErrorCode]
    ERROR_CODE_OUT_OF_ORDER_SEQUENCE_NUMBER: _ClassVar[ErrorCode]
    ERROR_CODE_DUPLICATE_SEQUENCE_NUMBER: _ClassVar[ErrorCode]
    ERROR_CODE_INVALID_PRODUCER_EPOCH: _ClassVar[ErrorCode]
    ERROR_CODE_INVALID_PRODUCER_ID_MAPPING: _ClassVar[ErrorCode]
    ERROR_CODE_INVALID_TRANSACTION_TIMEOUT: _ClassVar[ErrorCode]
    ERROR_CODE_CONCURRENT_TRANSACTIONS: _ClassVar[ErrorCode]
    ERROR_CODE_UNKNOWN_PRODUCER_ID: _ClassVar[ErrorCode]
    ERROR_CODE_FENCED_LEADER_EPOCH: _ClassVar[ErrorCode]
    ERROR_CODE_UNKNOWN_LEADER_EPOCH: _ClassVar[ErrorCode]
    ERROR_CODE_STALE_BROKER_EPOCH: _ClassVar[ErrorCode]
    ERROR_CODE_OFFSET_NOT_AVAILABLE: _ClassVar[ErrorCode]
    ERROR_CODE_PREFERRED_LEADER_NOT_AVAILABLE: _ClassVar[ErrorCode]
    ERROR_CODE_NO_REASSIGNMENT_IN_PROGRESS: _ClassVar[ErrorCode]
    ERROR_CODE_INVALID_UPDATE_VERSION: _ClassVar[ErrorCode]
    ERROR_CODE_FEATURE_UPDATE_FAILED: _ClassVar[ErrorCode]
    ERROR_CODE_SNAPSHOT_NOT_FOUND: _ClassVar[ErrorCode]
    ERROR_CODE_POSITION_OUT_OF_RANGE: _ClassVar[ErrorCode]
    ERROR_CODE_UNKNOWN_TOPIC_ID: _ClassVar[ErrorCode]
    ERROR_CODE_DUPLICATE_BROKER_REGISTRATION: _ClassVar[ErrorCode]
    ERROR_CODE_BROKER_ID_NOT_REGISTERED: _ClassVar[ErrorCode]
    ERROR_CODE_INCONSISTENT_TOPIC_ID: _ClassVar[ErrorCode]
    ERROR_CODE_INCONSISTENT_CLUSTER_ID: _ClassVar[ErrorCode]
    ERROR_CODE_INELIGIBLE_REPLICA: _ClassVar[ErrorCode]
    ERROR_CODE_NEW_LEADER_ELECTED: _ClassVar[ErrorCode]
    ERROR_CODE_INVALID_REGISTRATION: _ClassVar[ErrorCode]
    ERROR_CODE_INVALID_VOTER_KEY: _ClassVar[ErrorCode]
    ERROR_CODE_DUPLICATE_VOTER: _ClassVar[ErrorCode]
    ERROR_CODE_VOTER_NOT_FOUND: _ClassVar[ErrorCode]
    ERROR_CODE_CONTROLLER_ID_NOT_REGISTERED: _ClassVar[ErrorCode]
    ERROR_CODE_OUTCOME_UNKNOWN: _ClassVar[ErrorCode]
    ERROR_CODE_RESOURCE_EXHAUSTED: _ClassVar[ErrorCode]
    ERROR_CODE_QUEUE_FULL: _ClassVar[ErrorCode]
    ERROR_CODE_PRODUCER_WINDOW_EXCEEDED: _ClassVar[ErrorCode]
    ERROR_CODE_VOTER_REMOVED: _ClassVar[ErrorCode]
    ERROR_CODE_DIGEST_MISMATCH: _ClassVar[ErrorCode]
    ERROR_CODE_REPLICA_REGRESSED: _ClassVar[ErrorCode]
ERROR_CODE_NONE: ErrorCode
ERROR_CODE_UNKNOWN_SERVER_ERROR: ErrorCode
ERROR_CODE_OFFSET_OUT_OF_RANGE: ErrorCode
ERROR_CODE_CORRUPT_MESSAGE: ErrorCode
ERROR_CODE_UNKNOWN_TOPIC_OR_PARTITION: ErrorCode
ERROR_CODE_NOT_LEADER_OR_FOLLOWER: ErrorCode
ERROR_CODE_REQUEST_TIMED_OUT: ErrorCode
ERROR_CODE_BROKER_NOT_AVAILABLE: ErrorCode
ERROR_CODE_MESSAGE_TOO_LARGE: ErrorCode
ERROR_CODE_INVALID_TOPIC: ErrorCode
ERROR_CODE_CLUSTER_AUTHORIZATION_FAILED: ErrorCode
ERROR_CODE_UNSUPPORTED_VERSION: ErrorCode
ERROR_CODE_TOPIC_ALREADY_EXISTS: ErrorCode
ERROR_CODE_INVALID_PARTITIONS: ErrorCode
ERROR_CODE_INVALID_REPLICATION_FACTOR: ErrorCode
ERROR_CODE_INVALID_REPLICA_ASSIGNMENT: ErrorCode
ERROR_CODE_INVALID_CONFIG: ErrorCode
ERROR_CODE_NOT_CONTROLLER: ErrorCode
ERROR_CODE_INVALID_REQUEST: ErrorCode
ERROR_CODE_POLICY_VIOLATION: ErrorCode
ERROR_CODE_OUT_OF_ORDER_SEQUENCE_NUMBER: ErrorCode
ERROR_CODE_DUPLICATE_SEQUENCE_NUMBER: ErrorCode
ERROR_CODE_INVALID_PRODUCER_EPOCH: ErrorCode
ERROR_CODE_INVALID_PRODUCER_ID_MAPPING: ErrorCode
ERROR_CODE_INVALID_TRANSACTION_TIMEOUT: ErrorCode
ERROR_CODE_CONCURRENT_TRANSACTIONS: ErrorCode
ERROR_CODE_UNKNOWN_PRODUCER_ID: ErrorCode
ERROR_CODE_FENCED_LEADER_EPOCH: ErrorCode
ERROR_CODE_UNKNOWN_LEADER_EPOCH: ErrorCode
ERROR_CODE_STALE_BROKER_EPOCH: ErrorCode
ERROR_CODE_OFFSET_NOT_AVAILABLE: ErrorCode
ERROR_CODE_PREFERRED_LEADER_NOT_AVAILABLE: ErrorCode
ERROR_CODE_NO_REASSIGNMENT_IN_PROGRESS: ErrorCode
ERROR_CODE_INVALID_UPDATE_VERSION: ErrorCode
ERROR_CODE_FEATURE_UPDATE_FAILED: ErrorCode
ERROR_CODE_SNAPSHOT_NOT_FOUND: ErrorCode
ERROR_CODE_POSITION_OUT_OF_RANGE: ErrorCode
ERROR_CODE_UNKNOWN_TOPIC_ID: ErrorCode
ERROR_CODE_DUPLICATE_BROKER_REGISTRATION: ErrorCode
ERROR_CODE_BROKER_ID_NOT_REGISTERED: ErrorCode
ERROR_CODE_INCONSISTENT_TOPIC_ID: ErrorCode
ERROR_CODE_INCONSISTENT_CLUSTER_ID: ErrorCode
ERROR_CODE_INELIGIBLE_REPLICA: ErrorCode
ERROR_CODE_NEW_LEADER_ELECTED: ErrorCode
ERROR_CODE_INVALID_REGISTRATION: ErrorCode
ERROR_CODE_INVALID_VOTER_KEY: ErrorCode
ERROR_CODE_DUPLICATE_VOTER: ErrorCode
ERROR_CODE_VOTER_NOT_FOUND: ErrorCode
ERROR_CODE_CONTROLLER_ID_NOT_REGISTERED: ErrorCode
ERROR_CODE_OUTCOME_UNKNOWN: ErrorCode
ERROR_CODE_RESOURCE_EXHAUSTED: ErrorCode
ERROR_CODE_QUEUE_FULL: ErrorCode
ERROR_CODE_PRODUCER_WINDOW_EXCEEDED: ErrorCode
ERROR_CODE_VOTER_REMOVED: ErrorCode
ERROR_CODE_DIGEST_MISMATCH: ErrorCode
ERROR_CODE_REPLICA_REGRESSED: ErrorCode

class OffsetAndEpoch(_message.Message):
    __slots__ = ("offset", "epoch")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    offset: int
    epoch: int
    def __init__(self, offset: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class ReplicaKey(_message.Message):
    __slots__ = ("id", "directory_id")
    ID_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    id: int
    directory_id: bytes
    def __init__(self, id: _Optional[int] = ..., directory_id: _Optional[bytes] = ...) -> None: ...

class LeaderAndEpoch(_message.Message):
    __slots__ = ("leader_id", "leader_epoch")
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    leader_id: int
    leader_epoch: int
    def __init__(self, leader_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ...) -> None: ...

class Endpoint(_message.Message):
    __slots__ = ("name", "host", "port")
    NAME_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    name: str
    host: str
    port: int
    def __init__(self, name: _Optional[str] = ..., host: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...
