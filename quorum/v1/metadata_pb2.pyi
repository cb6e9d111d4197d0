from quorum.v1 import commands_pb2 as _commands_pb2
from quorum.v1 import common_pb2 as _common_pb2
from quorum.v1 import errors_pb2 as _errors_pb2
from quorum.v1 import records_pb2 as _records_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReadLevel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    READ_LEVEL_UNSPECIFIED: _ClassVar[ReadLevel]
    READ_LEVEL_LOCAL: _ClassVar[ReadLevel]
    READ_LEVEL_AT_LEAST: _ClassVar[ReadLevel]
    READ_LEVEL_LINEARIZABLE: _ClassVar[ReadLevel]

class RecordForm(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RECORD_FORM_UNSPECIFIED: _ClassVar[RecordForm]
    RECORD_FORM_ENCODED: _ClassVar[RecordForm]
    RECORD_FORM_TYPED: _ClassVar[RecordForm]

class ConfigSource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONFIG_SOURCE_UNSPECIFIED: _ClassVar[ConfigSource]
    CONFIG_SOURCE_RESOURCE: _ClassVar[ConfigSource]
    CONFIG_SOURCE_CLUSTER: _ClassVar[ConfigSource]
    CONFIG_SOURCE_DEFAULT: _ClassVar[ConfigSource]
READ_LEVEL_UNSPECIFIED: ReadLevel
READ_LEVEL_LOCAL: ReadLevel
READ_LEVEL_AT_LEAST: ReadLevel
READ_LEVEL_LINEARIZABLE: ReadLevel
RECORD_FORM_UNSPECIFIED: RecordForm
RECORD_FORM_ENCODED: RecordForm
RECORD_FORM_TYPED: RecordForm
CONFIG_SOURCE_UNSPECIFIED: ConfigSource
CONFIG_SOURCE_RESOURCE: ConfigSource
CONFIG_SOURCE_CLUSTER: ConfigSource
CONFIG_SOURCE_DEFAULT: ConfigSource

class WriterIdentity(_message.Message):
    __slots__ = ("client_id", "reason", "log_incarnation_number", "log_incarnation")
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_FIELD_NUMBER: _ClassVar[int]
    client_id: str
    reason: str
    log_incarnation_number: int
    log_incarnation: bytes
    def __init__(self, client_id: _Optional[str] = ..., reason: _Optional[str] = ..., log_incarnation_number: _Optional[int] = ..., log_incarnation: _Optional[bytes] = ...) -> None: ...

class WriteRequest(_message.Message):
    __slots__ = ("writer", "producer_id", "producer_epoch", "oldest_open", "command", "is_ordered")
    WRITER_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    OLDEST_OPEN_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    IS_ORDERED_FIELD_NUMBER: _ClassVar[int]
    writer: WriterIdentity
    producer_id: int
    producer_epoch: int
    oldest_open: int
    command: _commands_pb2.Command
    is_ordered: bool
    def __init__(self, writer: _Optional[_Union[WriterIdentity, _Mapping]] = ..., producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., oldest_open: _Optional[int] = ..., command: _Optional[_Union[_commands_pb2.Command, _Mapping]] = ..., is_ordered: bool = ...) -> None: ...

class WriteResponse(_message.Message):
    __slots__ = ("answer",)
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    answer: WriteAnswer
    def __init__(self, answer: _Optional[_Union[WriteAnswer, _Mapping]] = ...) -> None: ...

class WriteStreamRequest(_message.Message):
    __slots__ = ("hello", "groups")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    hello: WriterIdentity
    groups: _containers.RepeatedCompositeFieldContainer[ProducerCommands]
    def __init__(self, hello: _Optional[_Union[WriterIdentity, _Mapping]] = ..., groups: _Optional[_Iterable[_Union[ProducerCommands, _Mapping]]] = ...) -> None: ...

class ProducerCommands(_message.Message):
    __slots__ = ("producer_id", "producer_epoch", "oldest_open", "commands", "is_ordered")
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    OLDEST_OPEN_FIELD_NUMBER: _ClassVar[int]
    COMMANDS_FIELD_NUMBER: _ClassVar[int]
    IS_ORDERED_FIELD_NUMBER: _ClassVar[int]
    producer_id: int
    producer_epoch: int
    oldest_open: int
    commands: _containers.RepeatedCompositeFieldContainer[_commands_pb2.Command]
    is_ordered: bool
    def __init__(self, producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., oldest_open: _Optional[int] = ..., commands: _Optional[_Iterable[_Union[_commands_pb2.Command, _Mapping]]] = ..., is_ordered: bool = ...) -> None: ...

class WriteStreamResponse(_message.Message):
    __slots__ = ("accepted", "answers")
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    accepted: StreamAccepted
    answers: _containers.RepeatedCompositeFieldContainer[WriteAnswer]
    def __init__(self, accepted: _Optional[_Union[StreamAccepted, _Mapping]] = ..., answers: _Optional[_Iterable[_Union[WriteAnswer, _Mapping]]] = ...) -> None: ...

class StreamAccepted(_message.Message):
    __slots__ = ("node_id", "leader_epoch", "producer_window", "commands_max")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_WINDOW_FIELD_NUMBER: _ClassVar[int]
    COMMANDS_MAX_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    leader_epoch: int
    producer_window: int
    commands_max: int
    def __init__(self, node_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., producer_window: _Optional[int] = ..., commands_max: _Optional[int] = ...) -> None: ...

class WriteAnswer(_message.Message):
    __slots__ = ("tag", "error_code", "message", "offset", "epoch", "result", "leader", "producer")
    TAG_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    tag: int
    error_code: _common_pb2.ErrorCode
    message: str
    offset: int
    epoch: int
    result: _commands_pb2.CommandResult
    leader: _errors_pb2.LeaderHint
    producer: _errors_pb2.KnownProducer
    def __init__(self, tag: _Optional[int] = ..., error_code: _Optional[_Union[_common_pb2.ErrorCode, str]] = ..., message: _Optional[str] = ..., offset: _Optional[int] = ..., epoch: _Optional[int] = ..., result: _Optional[_Union[_commands_pb2.CommandResult, _Mapping]] = ..., leader: _Optional[_Union[_errors_pb2.LeaderHint, _Mapping]] = ..., producer: _Optional[_Union[_errors_pb2.KnownProducer, _Mapping]] = ...) -> None: ...

class ReadOptions(_message.Message):
    __slots__ = ("level", "at_least_offset")
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    AT_LEAST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    level: ReadLevel
    at_least_offset: int
    def __init__(self, level: _Optional[_Union[ReadLevel, str]] = ..., at_least_offset: _Optional[int] = ...) -> None: ...

class ReadPosition(_message.Message):
    __slots__ = ("offset", "epoch", "age_ms", "node_id")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    AGE_MS_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    offset: int
    epoch: int
    age_ms: int
    node_id: int
    def __init__(self, offset: _Optional[int] = ..., epoch: _Optional[int] = ..., age_ms: _Optional[int] = ..., node_id: _Optional[int] = ...) -> None: ...

class FetchLogRequest(_message.Message):
    __slots__ = ("offset", "current_leader_epoch", "last_fetched_epoch", "max_bytes", "max_wait_ms", "with_log_digest", "record_form", "include_secrets", "log_incarnation_number")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LAST_FETCHED_EPOCH_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    WITH_LOG_DIGEST_FIELD_NUMBER: _ClassVar[int]
    RECORD_FORM_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_SECRETS_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    offset: int
    current_leader_epoch: int
    last_fetched_epoch: int
    max_bytes: int
    max_wait_ms: int
    with_log_digest: bool
    record_form: RecordForm
    include_secrets: bool
    log_incarnation_number: int
    def __init__(self, offset: _Optional[int] = ..., current_leader_epoch: _Optional[int] = ..., last_fetched_epoch: _Optional[int] = ..., max_bytes: _Optional[int] = ..., max_wait_ms: _Optional[int] = ..., with_log_digest: bool = ..., record_form: _Optional[_Union[RecordForm, str]] = ..., include_secrets: bool = ..., log_incarnation_number: _Optional[int] = ...) -> None: ...

class FetchLogResponse(_message.Message):
    __slots__ = ("leader_id", "leader_epoch", "high_watermark", "log_start_offset", "diverging", "records", "log_incarnation", "log_digest", "batches", "redacted", "log_incarnation_number")
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    DIVERGING_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_FIELD_NUMBER: _ClassVar[int]
    LOG_DIGEST_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    REDACTED_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    leader_id: int
    leader_epoch: int
    high_watermark: int
    log_start_offset: int
    diverging: _errors_pb2.DivergenceHint
    records: bytes
    log_incarnation: bytes
    log_digest: bytes
    batches: _containers.RepeatedCompositeFieldContainer[ChangeBatch]
    redacted: _containers.RepeatedCompositeFieldContainer[RedactedBatch]
    log_incarnation_number: int
    def __init__(self, leader_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., high_watermark: _Optional[int] = ..., log_start_offset: _Optional[int] = ..., diverging: _Optional[_Union[_errors_pb2.DivergenceHint, _Mapping]] = ..., records: _Optional[bytes] = ..., log_incarnation: _Optional[bytes] = ..., log_digest: _Optional[bytes] = ..., batches: _Optional[_Iterable[_Union[ChangeBatch, _Mapping]]] = ..., redacted: _Optional[_Iterable[_Union[RedactedBatch, _Mapping]]] = ..., log_incarnation_number: _Optional[int] = ...) -> None: ...

class RedactedBatch(_message.Message):
    __slots__ = ("base_offset", "log_digest")
    BASE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LOG_DIGEST_FIELD_NUMBER: _ClassVar[int]
    base_offset: int
    log_digest: bytes
    def __init__(self, base_offset: _Optional[int] = ..., log_digest: _Optional[bytes] = ...) -> None: ...

class ListOffsetsRequest(_message.Message):
    __slots__ = ("timestamp", "current_leader_epoch", "log_incarnation_number")
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    timestamp: int
    current_leader_epoch: int
    log_incarnation_number: int
    def __init__(self, timestamp: _Optional[int] = ..., current_leader_epoch: _Optional[int] = ..., log_incarnation_number: _Optional[int] = ...) -> None: ...

class ListOffsetsResponse(_message.Message):
    __slots__ = ("offset", "leader_epoch", "timestamp", "log_incarnation", "log_incarnation_number")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    offset: int
    leader_epoch: int
    timestamp: int
    log_incarnation: bytes
    log_incarnation_number: int
    def __init__(self, offset: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., timestamp: _Optional[int] = ..., log_incarnation: _Optional[bytes] = ..., log_incarnation_number: _Optional[int] = ...) -> None: ...

class OffsetForLeaderEpochRequest(_message.Message):
    __slots__ = ("leader_epoch", "current_leader_epoch", "digest_offset", "log_incarnation_number")
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    DIGEST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    leader_epoch: int
    current_leader_epoch: int
    digest_offset: int
    log_incarnation_number: int
    def __init__(self, leader_epoch: _Optional[int] = ..., current_leader_epoch: _Optional[int] = ..., digest_offset: _Optional[int] = ..., log_incarnation_number: _Optional[int] = ...) -> None: ...

class OffsetForLeaderEpochResponse(_message.Message):
    __slots__ = ("leader_epoch", "end_offset", "log_incarnation", "log_digest", "log_incarnation_number")
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_FIELD_NUMBER: _ClassVar[int]
    LOG_DIGEST_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    leader_epoch: int
    end_offset: int
    log_incarnation: bytes
    log_digest: bytes
    log_incarnation_number: int
    def __init__(self, leader_epoch: _Optional[int] = ..., end_offset: _Optional[int] = ..., log_incarnation: _Optional[bytes] = ..., log_digest: _Optional[bytes] = ..., log_incarnation_number: _Optional[int] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("from_offset", "from_epoch", "client_id", "from_log_digest", "from_log_incarnation", "record_form", "include_secrets", "checkpoint_at_least", "log_incarnation_number")
    FROM_OFFSET_FIELD_NUMBER: _ClassVar[int]
    FROM_EPOCH_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_LOG_DIGEST_FIELD_NUMBER: _ClassVar[int]
    FROM_LOG_INCARNATION_FIELD_NUMBER: _ClassVar[int]
    RECORD_FORM_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_SECRETS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_AT_LEAST_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    from_offset: int
    from_epoch: int
    client_id: str
    from_log_digest: bytes
    from_log_incarnation: bytes
    record_form: RecordForm
    include_secrets: bool
    checkpoint_at_least: int
    log_incarnation_number: int
    def __init__(self, from_offset: _Optional[int] = ..., from_epoch: _Optional[int] = ..., client_id: _Optional[str] = ..., from_log_digest: _Optional[bytes] = ..., from_log_incarnation: _Optional[bytes] = ..., record_form: _Optional[_Union[RecordForm, str]] = ..., include_secrets: bool = ..., checkpoint_at_least: _Optional[int] = ..., log_incarnation_number: _Optional[int] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("state", "changes", "progress")
    STATE_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    state: StateChunk
    changes: Changes
    progress: WatchProgress
    def __init__(self, state: _Optional[_Union[StateChunk, _Mapping]] = ..., changes: _Optional[_Union[Changes, _Mapping]] = ..., progress: _Optional[_Union[WatchProgress, _Mapping]] = ...) -> None: ...

class StateChunk(_message.Message):
    __slots__ = ("offset", "epoch", "chunk", "is_last", "records", "log_digest", "log_incarnation", "typed_records", "log_incarnation_number")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    IS_LAST_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    LOG_DIGEST_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_FIELD_NUMBER: _ClassVar[int]
    TYPED_RECORDS_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    offset: int
    epoch: int
    chunk: int
    is_last: bool
    records: _containers.RepeatedScalarFieldContainer[bytes]
    log_digest: bytes
    log_incarnation: bytes
    typed_records: _containers.RepeatedCompositeFieldContainer[_records_pb2.TypedRecord]
    log_incarnation_number: int
    def __init__(self, offset: _Optional[int] = ..., epoch: _Optional[int] = ..., chunk: _Optional[int] = ..., is_last: bool = ..., records: _Optional[_Iterable[bytes]] = ..., log_digest: _Optional[bytes] = ..., log_incarnation: _Optional[bytes] = ..., typed_records: _Optional[_Iterable[_Union[_records_pb2.TypedRecord, _Mapping]]] = ..., log_incarnation_number: _Optional[int] = ...) -> None: ...

class Changes(_message.Message):
    __slots__ = ("batches", "log_digest")
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    LOG_DIGEST_FIELD_NUMBER: _ClassVar[int]
    batches: _containers.RepeatedCompositeFieldContainer[ChangeBatch]
    log_digest: bytes
    def __init__(self, batches: _Optional[_Iterable[_Union[ChangeBatch, _Mapping]]] = ..., log_digest: _Optional[bytes] = ...) -> None: ...

class AuditHeader(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: bytes
    def __init__(self, name: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...

class ChangeBatch(_message.Message):
    __slots__ = ("base_offset", "end_offset", "epoch", "timestamp_ms", "is_control", "producer_id", "producer_epoch", "sequence", "headers", "records", "typed_records", "log_digest")
    BASE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    IS_CONTROL_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    TYPED_RECORDS_FIELD_NUMBER: _ClassVar[int]
    LOG_DIGEST_FIELD_NUMBER: _ClassVar[int]
    base_offset: int
    end_offset: int
    epoch: int
    timestamp_ms: int
    is_control: bool
    producer_id: int
    producer_epoch: int
    sequence: int
    headers: _containers.RepeatedCompositeFieldContainer[AuditHeader]
    records: _containers.RepeatedScalarFieldContainer[bytes]
    typed_records: _containers.RepeatedCompositeFieldContainer[_records_pb2.TypedRecord]
    log_digest: bytes
    def __init__(self, base_offset: _Optional[int] = ..., end_offset: _Optional[int] = ..., epoch: _Optional[int] = ..., timestamp_ms: _Optional[int] = ..., is_control: bool = ..., producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., sequence: _Optional[int] = ..., headers: _Optional[_Iterable[_Union[AuditHeader, _Mapping]]] = ..., records: _Optional[_Iterable[bytes]] = ..., typed_records: _Optional[_Iterable[_Union[_records_pb2.TypedRecord, _Mapping]]] = ..., log_digest: _Optional[bytes] = ...) -> None: ...

class WatchProgress(_message.Message):
    __slots__ = ("offset", "epoch", "log_incarnation_number", "knows_no_leader")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    KNOWS_NO_LEADER_FIELD_NUMBER: _ClassVar[int]
    offset: int
    epoch: int
    log_incarnation_number: int
    knows_no_leader: bool
    def __init__(self, offset: _Optional[int] = ..., epoch: _Optional[int] = ..., log_incarnation_number: _Optional[int] = ..., knows_no_leader: bool = ...) -> None: ...

class ListTopicsRequest(_message.Message):
    __slots__ = ("read", "after_name", "limit")
    READ_FIELD_NUMBER: _ClassVar[int]
    AFTER_NAME_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    read: ReadOptions
    after_name: str
    limit: int
    def __init__(self, read: _Optional[_Union[ReadOptions, _Mapping]] = ..., after_name: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class TopicListing(_message.Message):
    __slots__ = ("name", "topic_id", "partition_count")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_COUNT_FIELD_NUMBER: _ClassVar[int]
    name: str
    topic_id: bytes
    partition_count: int
    def __init__(self, name: _Optional[str] = ..., topic_id: _Optional[bytes] = ..., partition_count: _Optional[int] = ...) -> None: ...

class ListTopicsResponse(_message.Message):
    __slots__ = ("position", "topics", "has_more")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    HAS_MORE_FIELD_NUMBER: _ClassVar[int]
    position: ReadPosition
    topics: _containers.RepeatedCompositeFieldContainer[TopicListing]
    has_more: bool
    def __init__(self, position: _Optional[_Union[ReadPosition, _Mapping]] = ..., topics: _Optional[_Iterable[_Union[TopicListing, _Mapping]]] = ..., has_more: bool = ...) -> None: ...

class DescribeTopicsRequest(_message.Message):
    __slots__ = ("read", "names", "topic_ids")
    READ_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    TOPIC_IDS_FIELD_NUMBER: _ClassVar[int]
    read: ReadOptions
    names: _containers.RepeatedScalarFieldContainer[str]
    topic_ids: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, read: _Optional[_Union[ReadOptions, _Mapping]] = ..., names: _Optional[_Iterable[str]] = ..., topic_ids: _Optional[_Iterable[bytes]] = ...) -> None: ...

class TopicDescription(_message.Message):
    __slots__ = ("error_code", "name", "topic_id", "partitions")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    error_code: _common_pb2.ErrorCode
    name: str
    topic_id: bytes
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionDescription]
    def __init__(self, error_code: _Optional[_Union[_common_pb2.ErrorCode, str]] = ..., name: _Optional[str] = ..., topic_id: _Optional[bytes] = ..., partitions: _Optional[_Iterable[_Union[PartitionDescription, _Mapping]]] = ...) -> None: ...

class PartitionDescription(_message.Message):
    __slots__ = ("partition", "leader_id", "leader_epoch", "partition_epoch", "replicas", "isr", "offline_replicas", "adding_replicas", "removing_replicas", "eligible_leader_replicas", "leader_recovery_state", "directories")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    ISR_FIELD_NUMBER: _ClassVar[int]
    OFFLINE_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    ADDING_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    REMOVING_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    ELIGIBLE_LEADER_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    LEADER_RECOVERY_STATE_FIELD_NUMBER: _ClassVar[int]
    DIRECTORIES_FIELD_NUMBER: _ClassVar[int]
    partition: int
    leader_id: int
    leader_epoch: int
    partition_epoch: int
    replicas: _containers.RepeatedScalarFieldContainer[int]
    isr: _containers.RepeatedScalarFieldContainer[int]
    offline_replicas: _containers.RepeatedScalarFieldContainer[int]
    adding_replicas: _containers.RepeatedScalarFieldContainer[int]
    removing_replicas: _containers.RepeatedScalarFieldContainer[int]
    eligible_leader_replicas: _containers.RepeatedScalarFieldContainer[int]
    leader_recovery_state: int
    directories: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, partition: _Optional[int] = ..., leader_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., partition_epoch: _Optional[int] = ..., replicas: _Optional[_Iterable[int]] = ..., isr: _Optional[_Iterable[int]] = ..., offline_replicas: _Optional[_Iterable[int]] = ..., adding_replicas: _Optional[_Iterable[int]] = ..., removing_replicas: _Optional[_Iterable[int]] = ..., eligible_leader_replicas: _Optional[_Iterable[int]] = ..., leader_recovery_state: _Optional[int] = ..., directories: _Optional[_Iterable[bytes]] = ...) -> None: ...

class DescribeTopicsResponse(_message.Message):
    __slots__ = ("position", "topics")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    position: ReadPosition
    topics: _containers.RepeatedCompositeFieldContainer[TopicDescription]
    def __init__(self, position: _Optional[_Union[ReadPosition, _Mapping]] = ..., topics: _Optional[_Iterable[_Union[TopicDescription, _Mapping]]] = ...) -> None: ...

class ConfigResource(_message.Message):
    __slots__ = ("type", "name")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    type: _commands_pb2.ConfigResourceType
    name: str
    def __init__(self, type: _Optional[_Union[_commands_pb2.ConfigResourceType, str]] = ..., name: _Optional[str] = ...) -> None: ...

class FetchPositionsRequest(_message.Message):
    __slots__ = ("read", "groups", "log_incarnation_number")
    READ_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    read: ReadOptions
    groups: _containers.RepeatedScalarFieldContainer[str]
    log_incarnation_number: int
    def __init__(self, read: _Optional[_Union[ReadOptions, _Mapping]] = ..., groups: _Optional[_Iterable[str]] = ..., log_incarnation_number: _Optional[int] = ...) -> None: ...

class CommittedPosition(_message.Message):
    __slots__ = ("group", "error_code", "offset", "leader_epoch", "epochs", "log_digest", "log_incarnation", "metadata", "commit_timestamp_ms")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    LOG_DIGEST_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    COMMIT_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    group: str
    error_code: _common_pb2.ErrorCode
    offset: int
    leader_epoch: int
    epochs: _containers.RepeatedCompositeFieldContainer[_commands_pb2.ReadEpoch]
    log_digest: bytes
    log_incarnation: bytes
    metadata: str
    commit_timestamp_ms: int
    def __init__(self, group: _Optional[str] = ..., error_code: _Optional[_Union[_common_pb2.ErrorCode, str]] = ..., offset: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., epochs: _Optional[_Iterable[_Union[_commands_pb2.ReadEpoch, _Mapping]]] = ..., log_digest: _Optional[bytes] = ..., log_incarnation: _Optional[bytes] = ..., metadata: _Optional[str] = ..., commit_timestamp_ms: _Optional[int] = ...) -> None: ...

class FetchPositionsResponse(_message.Message):
    __slots__ = ("position", "positions", "log_incarnation", "log_incarnation_number")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    position: ReadPosition
    positions: _containers.RepeatedCompositeFieldContainer[CommittedPosition]
    log_incarnation: bytes
    log_incarnation_number: int
    def __init__(self, position: _Optional[_Union[ReadPosition, _Mapping]] = ..., positions: _Optional[_Iterable[_Union[CommittedPosition, _Mapping]]] = ..., log_incarnation: _Optional[bytes] = ..., log_incarnation_number: _Optional[int] = ...) -> None: ...

class DescribeConfigsRequest(_message.Message):
    __slots__ = ("read", "resources", "include_defaults")
    READ_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_DEFAULTS_FIELD_NUMBER: _ClassVar[int]
    read: ReadOptions
    resources: _containers.RepeatedCompositeFieldContainer[ConfigResource]
    include_defaults: bool
    def __init__(self, read: _Optional[_Union[ReadOptions, _Mapping]] = ..., resources: _Optional[_Iterable[_Union[ConfigResource, _Mapping]]] = ..., include_defaults: bool = ...) -> None: ...

class ConfigEntry(_message.Message):
    __slots__ = ("name", "value", "source", "is_read_only", "is_sensitive")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    IS_READ_ONLY_FIELD_NUMBER: _ClassVar[int]
    IS_SENSITIVE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ..., source: _Optional[_Union[ConfigSource, str]] = ..., is_read_only: bool = ..., is_sensitive: bool = ...) -> None: ...

class ResourceConfigs(_message.Message):
    __slots__ = ("resource", "error_code", "entries")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    resource: ConfigResource
    error_code: _common_pb2.ErrorCode
    entries: _containers.RepeatedCompositeFieldContainer[ConfigEntry]
    def __init__(self, resource: _Optional[_Union[ConfigResource, _Mapping]] = ..., error_code: _Optional[_Union[_common_pb2.ErrorCode, str]] = ..., entries: _Optional[_Iterable[_Union[ConfigEntry, _Mapping]]] = ...) -> None: ...

class DescribeConfigsResponse(_message.Message):
    __slots__ = ("position", "resources")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    position: ReadPosition
    resources: _containers.RepeatedCompositeFieldContainer[ResourceConfigs]
    def __init__(self, position: _Optional[_Union[ReadPosition, _Mapping]] = ..., resources: _Optional[_Iterable[_Union[ResourceConfigs, _Mapping]]] = ...) -> None: ...

class ReadStreamRequest(_message.Message):
    __slots__ = ("queries", "max_wait_ms")
    QUERIES_FIELD_NUMBER: _ClassVar[int]
    MAX_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    queries: _containers.RepeatedCompositeFieldContainer[ReadQuery]
    max_wait_ms: int
    def __init__(self, queries: _Optional[_Iterable[_Union[ReadQuery, _Mapping]]] = ..., max_wait_ms: _Optional[int] = ...) -> None: ...

class ReadQuery(_message.Message):
    __slots__ = ("tag", "list_topics", "describe_topics", "describe_configs")
    TAG_FIELD_NUMBER: _ClassVar[int]
    LIST_TOPICS_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_TOPICS_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_CONFIGS_FIELD_NUMBER: _ClassVar[int]
    tag: int
    list_topics: ListTopicsRequest
    describe_topics: DescribeTopicsRequest
    describe_configs: DescribeConfigsRequest
    def __init__(self, tag: _Optional[int] = ..., list_topics: _Optional[_Union[ListTopicsRequest, _Mapping]] = ..., describe_topics: _Optional[_Union[DescribeTopicsRequest, _Mapping]] = ..., describe_configs: _Optional[_Union[DescribeConfigsRequest, _Mapping]] = ...) -> None: ...

class ReadStreamResponse(_message.Message):
    __slots__ = ("answers",)
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    answers: _containers.RepeatedCompositeFieldContainer[ReadAnswer]
    def __init__(self, answers: _Optional[_Iterable[_Union[ReadAnswer, _Mapping]]] = ...) -> None: ...

class ReadAnswer(_message.Message):
    __slots__ = ("tag", "error_code", "message", "leader", "list_topics", "describe_topics", "describe_configs")
    TAG_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    LIST_TOPICS_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_TOPICS_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_CONFIGS_FIELD_NUMBER: _ClassVar[int]
    tag: int
    error_code: _common_pb2.ErrorCode
    message: str
    leader: _errors_pb2.LeaderHint
    list_topics: ListTopicsResponse
    describe_topics: DescribeTopicsResponse
    describe_configs: DescribeConfigsResponse
    def __init__(self, tag: _Optional[int] = ..., error_code: _Optional[_Union[_common_pb2.ErrorCode, str]] = ..., message: _Optional[str] = ..., leader: _Optional[_Union[_errors_pb2.LeaderHint, _Mapping]] = ..., list_topics: _Optional[_Union[ListTopicsResponse, _Mapping]] = ..., describe_topics: _Optional[_Union[DescribeTopicsResponse, _Mapping]] = ..., describe_configs: _Optional[_Union[DescribeConfigsResponse, _Mapping]] = ...) -> None: ...
