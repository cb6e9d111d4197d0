from quorum.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PeerHello(_message.Message):
    __slots__ = ("cluster_id", "node_id", "directory_id", "config_digest", "frame_version_min", "frame_version_max", "process_id", "tcp_port", "log_incarnation")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    CONFIG_DIGEST_FIELD_NUMBER: _ClassVar[int]
    FRAME_VERSION_MIN_FIELD_NUMBER: _ClassVar[int]
    FRAME_VERSION_MAX_FIELD_NUMBER: _ClassVar[int]
    PROCESS_ID_FIELD_NUMBER: _ClassVar[int]
    TCP_PORT_FIELD_NUMBER: _ClassVar[int]
    LOG_INCARNATION_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    node_id: int
    directory_id: bytes
    config_digest: bytes
    frame_version_min: int
    frame_version_max: int
    process_id: bytes
    tcp_port: int
    log_incarnation: bytes
    def __init__(self, cluster_id: _Optional[str] = ..., node_id: _Optional[int] = ..., directory_id: _Optional[bytes] = ..., config_digest: _Optional[bytes] = ..., frame_version_min: _Optional[int] = ..., frame_version_max: _Optional[int] = ..., process_id: _Optional[bytes] = ..., tcp_port: _Optional[int] = ..., log_incarnation: _Optional[bytes] = ...) -> None: ...

class ReadRound(_message.Message):
    __slots__ = ("epoch", "number")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    number: int
    def __init__(self, epoch: _Optional[int] = ..., number: _Optional[int] = ...) -> None: ...

class ReadPositionRequest(_message.Message):
    __slots__ = ("cluster_id", "replica", "epoch")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    replica: _common_pb2.ReplicaKey
    epoch: int
    def __init__(self, cluster_id: _Optional[str] = ..., replica: _Optional[_Union[_common_pb2.ReplicaKey, _Mapping]] = ..., epoch: _Optional[int] = ...) -> None: ...

class ReadPositionResponse(_message.Message):
    __slots__ = ("error_code", "current_leader", "read_offset", "leader_endpoints")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    READ_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LEADER_ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    error_code: _common_pb2.ErrorCode
    current_leader: _common_pb2.LeaderAndEpoch
    read_offset: int
    leader_endpoints: _containers.RepeatedCompositeFieldContainer[_common_pb2.Endpoint]
    def __init__(self, error_code: _Optional[_Union[_common_pb2.ErrorCode, str]] = ..., current_leader: _Optional[_Union[_common_pb2.LeaderAndEpoch, _Mapping]] = ..., read_offset: _Optional[int] = ..., leader_endpoints: _Optional[_Iterable[_Union[_common_pb2.Endpoint, _Mapping]]] = ...) -> None: ...

class VoterEntry(_message.Message):
    __slots__ = ("key", "endpoints", "kraft_version_min", "kraft_version_max")
    KEY_FIELD_NUMBER: _ClassVar[int]
    ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    KRAFT_VERSION_MIN_FIELD_NUMBER: _ClassVar[int]
    KRAFT_VERSION_MAX_FIELD_NUMBER: _ClassVar[int]
    key: _common_pb2.ReplicaKey
    endpoints: _containers.RepeatedCompositeFieldContainer[_common_pb2.Endpoint]
    kraft_version_min: int
    kraft_version_max: int
    def __init__(self, key: _Optional[_Union[_common_pb2.ReplicaKey, _Mapping]] = ..., endpoints: _Optional[_Iterable[_Union[_common_pb2.Endpoint, _Mapping]]] = ..., kraft_version_min: _Optional[int] = ..., kraft_version_max: _Optional[int] = ...) -> None: ...

class UpdateOwnVoterRequest(_message.Message):
    __slots__ = ("cluster_id", "voter", "epoch")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    VOTER_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    voter: VoterEntry
    epoch: int
    def __init__(self, cluster_id: _Optional[str] = ..., voter: _Optional[_Union[VoterEntry, _Mapping]] = ..., epoch: _Optional[int] = ...) -> None: ...

class AddOwnVoterRequest(_message.Message):
    __slots__ = ("cluster_id", "voter", "epoch")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    VOTER_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    voter: VoterEntry
    epoch: int
    def __init__(self, cluster_id: _Optional[str] = ..., voter: _Optional[_Union[VoterEntry, _Mapping]] = ..., epoch: _Optional[int] = ...) -> None: ...

class RemoveOwnVoterRequest(_message.Message):
    __slots__ = ("cluster_id", "replica", "voter", "epoch")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    VOTER_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    replica: _common_pb2.ReplicaKey
    voter: _common_pb2.ReplicaKey
    epoch: int
    def __init__(self, cluster_id: _Optional[str] = ..., replica: _Optional[_Union[_common_pb2.ReplicaKey, _Mapping]] = ..., voter: _Optional[_Union[_common_pb2.ReplicaKey, _Mapping]] = ..., epoch: _Optional[int] = ...) -> None: ...

class OwnVoterResponse(_message.Message):
    __slots__ = ("error_code", "current_leader", "message", "leader_endpoints")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    LEADER_ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    error_code: _common_pb2.ErrorCode
    current_leader: _common_pb2.LeaderAndEpoch
    message: str
    leader_endpoints: _containers.RepeatedCompositeFieldContainer[_common_pb2.Endpoint]
    def __init__(self, error_code: _Optional[_Union[_common_pb2.ErrorCode, str]] = ..., current_leader: _Optional[_Union[_common_pb2.LeaderAndEpoch, _Mapping]] = ..., message: _Optional[str] = ..., leader_endpoints: _Optional[_Iterable[_Union[_common_pb2.Endpoint, _Mapping]]] = ...) -> None: ...

class VoteRequest(_message.Message):
    __slots__ = ("cluster_id", "candidate", "voter", "epoch", "last", "pre_vote")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_FIELD_NUMBER: _ClassVar[int]
    VOTER_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    PRE_VOTE_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    candidate: _common_pb2.ReplicaKey
    voter: _common_pb2.ReplicaKey
    epoch: int
    last: _common_pb2.OffsetAndEpoch
    pre_vote: bool
    def __init__(self, cluster_id: _Optional[str] = ..., candidate: _Optional[_Union[_common_pb2.ReplicaKey, _Mapping]] = ..., voter: _Optional[_Union[_common_pb2.ReplicaKey, _Mapping]] = ..., epoch: _Optional[int] = ..., last: _Optional[_Union[_common_pb2.OffsetAndEpoch, _Mapping]] = ..., pre_vote: bool = ...) -> None: ...

class VoteResponse(_message.Message):
    __slots__ = ("error_code", "current_leader", "granted", "leader_endpoints")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    LEADER_ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    error_code: _common_pb2.ErrorCode
    current_leader: _common_pb2.LeaderAndEpoch
    granted: bool
    leader_endpoints: _containers.RepeatedCompositeFieldContainer[_common_pb2.Endpoint]
    def __init__(self, error_code: _Optional[_Union[_common_pb2.ErrorCode, str]] = ..., current_leader: _Optional[_Union[_common_pb2.LeaderAndEpoch, _Mapping]] = ..., granted: bool = ..., leader_endpoints: _Optional[_Iterable[_Union[_common_pb2.Endpoint, _Mapping]]] = ...) -> None: ...

class BeginQuorumEpochRequest(_message.Message):
    __slots__ = ("cluster_id", "voter", "leader", "epoch", "leader_endpoints")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    VOTER_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LEADER_ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    voter: _common_pb2.ReplicaKey
    leader: _common_pb2.ReplicaKey
    epoch: int
    leader_endpoints: _containers.RepeatedCompositeFieldContainer[_common_pb2.Endpoint]
    def __init__(self, cluster_id: _Optional[str] = ..., voter: _Optional[_Union[_common_pb2.ReplicaKey, _Mapping]] = ..., leader: _Optional[_Union[_common_pb2.ReplicaKey, _Mapping]] = ..., epoch: _Optional[int] = ..., leader_endpoints: _Optional[_Iterable[_Union[_common_pb2.Endpoint, _Mapping]]] = ...) -> None: ...

class BeginQuorumEpochResponse(_message.Message):
    __slots__ = ("error_code", "current_leader", "leader_endpoints", "supported")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    LEADER_ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    SUPPORTED_FIELD_NUMBER: _ClassVar[int]
    error_code: _common_pb2.ErrorCode
    current_leader: _common_pb2.LeaderAndEpoch
    leader_endpoints: _containers.RepeatedCompositeFieldContainer[_common_pb2.Endpoint]
    supported: _containers.RepeatedCompositeFieldContainer[VersionRange]
    def __init__(self, error_code: _Optional[_Union[_common_pb2.ErrorCode, str]] = ..., current_leader: _Optional[_Union[_common_pb2.LeaderAndEpoch, _Mapping]] = ..., leader_endpoints: _Optional[_Iterable[_Union[_common_pb2.Endpoint, _Mapping]]] = ..., supported: _Optional[_Iterable[_Union[VersionRange, _Mapping]]] = ...) -> None: ...

class VersionRange(_message.Message):
    __slots__ = ("name", "lowest", "highest")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LOWEST_FIELD_NUMBER: _ClassVar[int]
    HIGHEST_FIELD_NUMBER: _ClassVar[int]
    name: str
    lowest: int
    highest: int
    def __init__(self, name: _Optional[str] = ..., lowest: _Optional[int] = ..., highest: _Optional[int] = ...) -> None: ...

class EndQuorumEpochRequest(_message.Message):
    __slots__ = ("cluster_id", "leader", "epoch", "preferred_successors", "leader_endpoints", "campaign_now", "origin")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    PREFERRED_SUCCESSORS_FIELD_NUMBER: _ClassVar[int]
    LEADER_ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    CAMPAIGN_NOW_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    leader: _common_pb2.ReplicaKey
    epoch: int
    preferred_successors: _containers.RepeatedCompositeFieldContainer[_common_pb2.ReplicaKey]
    leader_endpoints: _containers.RepeatedCompositeFieldContainer[_common_pb2.Endpoint]
    campaign_now: bool
    origin: ChangeOrigin
    def __init__(self, cluster_id: _Optional[str] = ..., leader: _Optional[_Union[_common_pb2.ReplicaKey, _Mapping]] = ..., epoch: _Optional[int] = ..., preferred_successors: _Optional[_Iterable[_Union[_common_pb2.ReplicaKey, _Mapping]]] = ..., leader_endpoints: _Optional[_Iterable[_Union[_common_pb2.Endpoint, _Mapping]]] = ..., campaign_now: bool = ..., origin: _Optional[_Union[ChangeOrigin, _Mapping]] = ...) -> None: ...

class ChangeOrigin(_message.Message):
    __slots__ = ("principal", "reason")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    principal: str
    reason: str
    def __init__(self, principal: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class EndQuorumEpochResponse(_message.Message):
    __slots__ = ("error_code", "current_leader", "leader_endpoints")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    LEADER_ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    error_code: _common_pb2.ErrorCode
    current_leader: _common_pb2.LeaderAndEpoch
    leader_endpoints: _containers.RepeatedCompositeFieldContainer[_common_pb2.Endpoint]
    def __init__(self, error_code: _Optional[_Union[_common_pb2.ErrorCode, str]] = ..., current_leader: _Optional[_Union[_common_pb2.LeaderAndEpoch, _Mapping]] = ..., leader_endpoints: _Optional[_Iterable[_Union[_common_pb2.Endpoint, _Mapping]]] = ...) -> None: ...

class BootstrapRequest(_message.Message):
    __slots__ = ("cluster_id", "sender", "voter", "epoch", "incarnation_id", "voter_list")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    VOTER_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_ID_FIELD_NUMBER: _ClassVar[int]
    VOTER_LIST_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    sender: _common_pb2.ReplicaKey
    voter: _common_pb2.ReplicaKey
    epoch: int
    incarnation_id: bytes
    voter_list: _containers.RepeatedCompositeFieldContainer[Incarnation]
    def __init__(self, cluster_id: _Optional[str] = ..., sender: _Optional[_Union[_common_pb2.ReplicaKey, _Mapping]] = ..., voter: _Optional[_Union[_common_pb2.ReplicaKey, _Mapping]] = ..., epoch: _Optional[int] = ..., incarnation_id: _Optional[bytes] = ..., voter_list: _Optional[_Iterable[_Union[Incarnation, _Mapping]]] = ...) -> None: ...

class Incarnation(_message.Message):
    __slots__ = ("id", "incarnation_id")
    ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_ID_FIELD_NUMBER: _ClassVar[int]
    id: int
    incarnation_id: bytes
    def __init__(self, id: _Optional[int] = ..., incarnation_id: _Optional[bytes] = ...) -> None: ...

class BootstrapResponse(_message.Message):
    __slots__ = ("error_code", "current_leader", "incarnation_id", "voter_list", "leader_endpoints")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_ID_FIELD_NUMBER: _ClassVar[int]
    VOTER_LIST_FIELD_NUMBER: _ClassVar[int]
    LEADER_ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    error_code: _common_pb2.ErrorCode
    current_leader: _common_pb2.LeaderAndEpoch
    incarnation_id: bytes
    voter_list: _containers.RepeatedCompositeFieldContainer[Incarnation]
    leader_endpoints: _containers.RepeatedCompositeFieldContainer[_common_pb2.Endpoint]
    def __init__(self, error_code: _Optional[_Union[_common_pb2.ErrorCode, str]] = ..., current_leader: _Optional[_Union[_common_pb2.LeaderAndEpoch, _Mapping]] = ..., incarnation_id: _Optional[bytes] = ..., voter_list: _Optional[_Iterable[_Union[Incarnation, _Mapping]]] = ..., leader_endpoints: _Optional[_Iterable[_Union[_common_pb2.Endpoint, _Mapping]]] = ...) -> None: ...

class FetchRequest(_message.Message):
    __slots__ = ("cluster_id", "replica", "current_leader_epoch", "fetch_offset", "last_fetched_epoch", "high_watermark", "max_wait_ms", "max_bytes", "read_round", "digest")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    FETCH_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LAST_FETCHED_EPOCH_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    MAX_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    READ_ROUND_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    replica: _common_pb2.ReplicaKey
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    high_watermark: int
    max_wait_ms: int
    max_bytes: int
    read_round: ReadRound
    digest: bytes
    def __init__(self, cluster_id: _Optional[str] = ..., replica: _Optional[_Union[_common_pb2.ReplicaKey, _Mapping]] = ..., current_leader_epoch: _Optional[int] = ..., fetch_offset: _Optional[int] = ..., last_fetched_epoch: _Optional[int] = ..., high_watermark: _Optional[int] = ..., max_wait_ms: _Optional[int] = ..., max_bytes: _Optional[int] = ..., read_round: _Optional[_Union[ReadRound, _Mapping]] = ..., digest: _Optional[bytes] = ...) -> None: ...

class FetchResponse(_message.Message):
    __slots__ = ("error_code", "current_leader", "high_watermark", "log_start_offset", "diverging", "snapshot_id", "records", "read_round", "leader_endpoints", "leader_age_ms")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    DIVERGING_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    READ_ROUND_FIELD_NUMBER: _ClassVar[int]
    LEADER_ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    LEADER_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    error_code: _common_pb2.ErrorCode
    current_leader: _common_pb2.LeaderAndEpoch
    high_watermark: int
    log_start_offset: int
    diverging: _common_pb2.OffsetAndEpoch
    snapshot_id: _common_pb2.OffsetAndEpoch
    records: bytes
    read_round: ReadRound
    leader_endpoints: _containers.RepeatedCompositeFieldContainer[_common_pb2.Endpoint]
    leader_age_ms: int
    def __init__(self, error_code: _Optional[_Union[_common_pb2.ErrorCode, str]] = ..., current_leader: _Optional[_Union[_common_pb2.LeaderAndEpoch, _Mapping]] = ..., high_watermark: _Optional[int] = ..., log_start_offset: _Optional[int] = ..., diverging: _Optional[_Union[_common_pb2.OffsetAndEpoch, _Mapping]] = ..., snapshot_id: _Optional[_Union[_common_pb2.OffsetAndEpoch, _Mapping]] = ..., records: _Optional[bytes] = ..., read_round: _Optional[_Union[ReadRound, _Mapping]] = ..., leader_endpoints: _Optional[_Iterable[_Union[_common_pb2.Endpoint, _Mapping]]] = ..., leader_age_ms: _Optional[int] = ...) -> None: ...

class FetchSnapshotRequest(_message.Message):
    __slots__ = ("cluster_id", "replica_id", "replica_directory_id", "max_bytes", "topics", "read_round")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    REPLICA_ID_FIELD_NUMBER: _ClassVar[int]
    REPLICA_DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    READ_ROUND_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    replica_id: int
    replica_directory_id: bytes
    max_bytes: int
    topics: _containers.RepeatedCompositeFieldContainer[FetchSnapshotTopic]
    read_round: ReadRound
    def __init__(self, cluster_id: _Optional[str] = ..., replica_id: _Optional[int] = ..., replica_directory_id: _Optional[bytes] = ..., max_bytes: _Optional[int] = ..., topics: _Optional[_Iterable[_Union[FetchSnapshotTopic, _Mapping]]] = ..., read_round: _Optional[_Union[ReadRound, _Mapping]] = ...) -> None: ...

class FetchSnapshotTopic(_message.Message):
    __slots__ = ("name", "partitions")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    name: str
    partitions: _containers.RepeatedCompositeFieldContainer[FetchSnapshotPartition]
    def __init__(self, name: _Optional[str] = ..., partitions: _Optional[_Iterable[_Union[FetchSnapshotPartition, _Mapping]]] = ...) -> None: ...

class FetchSnapshotPartition(_message.Message):
    __slots__ = ("partition", "current_leader_epoch", "snapshot_id", "position")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    partition: int
    current_leader_epoch: int
    snapshot_id: _common_pb2.OffsetAndEpoch
    position: int
    def __init__(self, partition: _Optional[int] = ..., current_leader_epoch: _Optional[int] = ..., snapshot_id: _Optional[_Union[_common_pb2.OffsetAndEpoch, _Mapping]] = ..., position: _Optional[int] = ...) -> None: ...

class FetchSnapshotResponse(_message.Message):
    __slots__ = ("error_code", "topics", "read_round")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    READ_ROUND_FIELD_NUMBER: _ClassVar[int]
    error_code: _common_pb2.ErrorCode
    topics: _containers.RepeatedCompositeFieldContainer[FetchSnapshotTopicData]
    read_round: ReadRound
    def __init__(self, error_code: _Optional[_Union[_common_pb2.ErrorCode, str]] = ..., topics: _Optional[_Iterable[_Union[FetchSnapshotTopicData, _Mapping]]] = ..., read_round: _Optional[_Union[ReadRound, _Mapping]] = ...) -> None: ...

class FetchSnapshotTopicData(_message.Message):
    __slots__ = ("name", "partitions")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    name: str
    partitions: _containers.RepeatedCompositeFieldContainer[FetchSnapshotPartitionData]
    def __init__(self, name: _Optional[str] = ..., partitions: _Optional[_Iterable[_Union[FetchSnapshotPartitionData, _Mapping]]] = ...) -> None: ...

class FetchSnapshotPartitionData(_message.Message):
    __slots__ = ("partition", "error_code", "snapshot_id", "current_leader", "size", "position", "unaligned_records", "chunk_crc", "file_digest", "leader_endpoints")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    UNALIGNED_RECORDS_FIELD_NUMBER: _ClassVar[int]
    CHUNK_CRC_FIELD_NUMBER: _ClassVar[int]
    FILE_DIGEST_FIELD_NUMBER: _ClassVar[int]
    LEADER_ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    partition: int
    error_code: _common_pb2.ErrorCode
    snapshot_id: _common_pb2.OffsetAndEpoch
    current_leader: _common_pb2.LeaderAndEpoch
    size: int
    position: int
    unaligned_records: bytes
    chunk_crc: int
    file_digest: bytes
    leader_endpoints: _containers.RepeatedCompositeFieldContainer[_common_pb2.Endpoint]
    def __init__(self, partition: _Optional[int] = ..., error_code: _Optional[_Union[_common_pb2.ErrorCode, str]] = ..., snapshot_id: _Optional[_Union[_common_pb2.OffsetAndEpoch, _Mapping]] = ..., current_leader: _Optional[_Union[_common_pb2.LeaderAndEpoch, _Mapping]] = ..., size: _Optional[int] = ..., position: _Optional[int] = ..., unaligned_records: _Optional[bytes] = ..., chunk_crc: _Optional[int] = ..., file_digest: _Optional[bytes] = ..., leader_endpoints: _Optional[_Iterable[_Union[_common_pb2.Endpoint, _Mapping]]] = ...) -> None: ...

class ChainDigestRequest(_message.Message):
    __slots__ = ("cluster_id", "replica", "epoch", "offsets")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    replica: _common_pb2.ReplicaKey
    epoch: int
    offsets: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, cluster_id: _Optional[str] = ..., replica: _Optional[_Union[_common_pb2.ReplicaKey, _Mapping]] = ..., epoch: _Optional[int] = ..., offsets: _Optional[_Iterable[int]] = ...) -> None: ...

class ChainDigestResponse(_message.Message):
    __slots__ = ("error_code", "current_leader", "offsets", "points", "leader_endpoints", "replica")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    LEADER_ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    error_code: _common_pb2.ErrorCode
    current_leader: _common_pb2.LeaderAndEpoch
    offsets: _containers.RepeatedScalarFieldContainer[int]
    points: _containers.RepeatedCompositeFieldContainer[DigestAt]
    leader_endpoints: _containers.RepeatedCompositeFieldContainer[_common_pb2.Endpoint]
    replica: _common_pb2.ReplicaKey
    def __init__(self, error_code: _Optional[_Union[_common_pb2.ErrorCode, str]] = ..., current_leader: _Optional[_Union[_common_pb2.LeaderAndEpoch, _Mapping]] = ..., offsets: _Optional[_Iterable[int]] = ..., points: _Optional[_Iterable[_Union[DigestAt, _Mapping]]] = ..., leader_endpoints: _Optional[_Iterable[_Union[_common_pb2.Endpoint, _Mapping]]] = ..., replica: _Optional[_Union[_common_pb2.ReplicaKey, _Mapping]] = ...) -> None: ...

class DigestAt(_message.Message):
    __slots__ = ("offset", "digest")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    offset: int
    digest: bytes
    def __init__(self, offset: _Optional[int] = ..., digest: _Optional[bytes] = ...) -> None: ...
